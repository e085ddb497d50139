"""The events of the page: drafts of an answer during the search, then the answer with its details.

Every event is an object with `event`: "draft" (the best answer so far, which may still change) or "done",
which contains the words, the attention and the tree of the search. Read next: pages.py; page/page.js.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from weft.diagnose.copying import copied
from weft.errors import ConfigError
from weft.probe import probe
from weft.search.hypotheses import to_lists
from weft.search.trace import Candidate, Trace
from weft.serve.answers import translator
from weft.serve.continuing import Ask, How, go_on, spaced, writer_of
from weft.serve.edits import moved, without
from weft.serve.job import ClientLeft, Stopped
from weft.serve.limits import Refusal
from weft.serve.sentencewise import translate_each
from weft.serve.served import ServedRun
from weft.tasks.abilities import Weighs
from weft.tasks.remarks import Remarks
from weft.tasks.seq2seq.decoding import Decoding
from weft.tasks.seq2seq.encoding import collate_pairs
from weft.tasks.seq2seq.searching import looked
from weft.tasks.seq2seq.translator import SearchResult, Translator
from weft.text.vocabulary import EOS, SOS, Word

Emit = Callable[[dict[str, Any]], None]
ALTERNATIVES = 8
SHOWN = 1200  # maximum number of candidates in the tree


class ProgressTrace(Trace):
    """A trace that reports the best hypothesis after each step.

    Args:
        tell: called with its tokens.
        stopped: tells whether the client has left.
    """

    def __init__(self, tell: Callable[[list[int]], None], stopped: Stopped) -> None:
        super().__init__()
        self._tell = tell
        self._stopped = stopped
        self._beam: dict[int, list[int]] = {0: []}
        self._seen = 0

    def record(self, time: int, *found: Any) -> None:
        if self._stopped():
            raise ClientLeft
        super().record(time, *found)
        new = self.candidates[self._seen :]
        self._seen += len(new)
        self._beam = {one.slot: [*self._beam[one.parent], one.token] for one in new if one.slot >= 0}
        if self._beam:
            self._tell(self._beam[min(self._beam)])


def watch(run: ServedRun, given: dict[str, Any], emit: Emit, stopped: Stopped) -> None:
    """Answer a text and report the progress.

    Args:
        run: a run with a model.
        given: the checked request: text, sentences, target, prefix, beam, max_tokens, temperature, seed,
            edits.
        emit: called with each event.
        stopped: tells whether the client has left.
    """
    if given["sentences"]:
        translate_each(run, given["sentences"], given, emit, stopped)
    elif run.rewriter:
        _translate(run, run.rewriter.decoding, given, emit, stopped)
    elif run.continues:
        _continue(run, given, emit, stopped)
    else:
        predictor = run.opened.pipeline.predictor(without(run, given["edits"]))
        if not isinstance(predictor, Weighs):
            raise Refusal(400, f"{run.name}: the page does not show runs of the kind {run.kind} yet")
        emit({"event": "done", "kind": run.kind, **_decided(predictor, given["text"])})


def _decided(predictor: Weighs, text: str) -> dict[str, Any]:
    """The class of a text, and the weight of each word."""
    seen = predictor.explain(text)
    probs = dict(zip(predictor.classes, seen.decision.probs.tolist(), strict=True))
    return {
        "text": seen.decision.label,
        "source": seen.words,
        "weights": [_rounded(seen.weights)],
        "shown": seen.shown,
        "probs": dict(sorted(probs.items(), key=lambda pair: -pair[1])[:50]),
    }


def _translate(
    run: ServedRun, decoding: Decoding, given: dict[str, Any], emit: Emit, stopped: Stopped
) -> None:
    beam = given["beam"]
    plain = replace(
        decoding,
        search="beam",
        beam=beam,
        nbest=beam,
        diverse=1,
        require=(),
        coverage=0.0,
        prefix=given["prefix"],
    )
    edits = given["edits"]
    model: Any = without(run, edits)
    found = translator(run, given["target"], plain, stopped, model)
    text = found.readable(given["text"])
    found = found.copying(text)
    source = found.source.encode(text)
    if not source:
        raise Refusal(400, "text: expected words that the model can read, got none")
    if edits.looks:
        words = found.source.words(source, text)
        model = moved(model, edits, words, len(source))
        found = translator(run, given["target"], plain, stopped, model).copying(text)

    def tell(tokens: list[int]) -> None:
        emit({"event": "draft", "text": found.target.decode([one for one in tokens if one != EOS])})

    trace, terms = ProgressTrace(tell, stopped), found.terms(given["text"])
    hypotheses = found.search([source], None if terms else trace, terms=terms)  # a grid of beams has no tree
    best = to_lists(hypotheses, EOS)[0]
    rows, notes = _finished(found, given, best, hypotheses.score[0].tolist())
    path = _path(trace, best[0])
    emit(
        {
            "event": "done",
            "kind": "translate",
            "text": rows[0].text,
            "terms": terms,
            "notes": notes,
            "others": [{"text": row.text, "score": row.score} for row in rows],
            **_looked(found, source, best[0], text, bool(edits.looks)),
            "steps": _steps(path, found),
            "tree": _tree(trace, path, found),
        }
    )


def _finished(
    found: Translator, given: dict[str, Any], best: list[list[int]], scores: list[float]
) -> tuple[list[SearchResult], list[str]]:
    """The answers with what they keep of the text, and what they lack of it."""
    text = given["text"]
    texts = [found.target.decode(tokens) for tokens in best]
    rows = [SearchResult(*one) for one in zip(texts, scores, scores, best, strict=False)]
    if not (given["prefix"] or given["edits"].looks):
        kept = found.finished(text, rows)
        rows = [one._replace(score=row.score) for one, row in zip(kept, rows, strict=True)]
    remarks, lacking = Remarks(), found.lacking(text)
    remarks.see("the text", lost=rows[0].lost, lacking=lacking, lacked=found.lacked if lacking else "")
    return rows, remarks.lines()


def _looked(
    found: Translator, source: list[int], target: list[int], text: str, stepwise: bool
) -> dict[str, Any]:
    """The words of both sides, and the attention of each target word to each source word."""
    target_words = found.target.words(target)
    source_words = found.source.words(source, text)
    words: dict[str, Any] = {
        "source": [word.text for word in source_words],
        "words": [word.text for word in target_words],
        "begins": [word.positions[0] for word in target_words],  # the step that begins each word
    }
    batch = collate_pairs([source], [target]).to(found.device)
    share = None if stepwise else copied(found.model, batch)
    if share is not None:
        each = share[0].tolist()
        words["copied"] = _rounded(
            [sum(each[n] for n in word.positions) / len(word.positions) for word in target_words]
        )
    try:
        if stepwise:
            weights, shown = _stepped(found, source, target), "as it was moved"
        else:
            alignment = found.align(source, target)
            weights, shown = alignment.weights, alignment.shown
    except ConfigError:  # a model without attention has nothing to show
        return {**words, "weights": []}
    rows = [_rounded(row) for row in _by_words(weights, source_words, target_words)]
    return {**words, "weights": rows, "shown": shown}


def _stepped(found: Translator, source: list[int], target: list[int]) -> np.ndarray:
    """Attention [T, S], computed step by step so that it includes edited attention.

    Raises:
        ConfigError: the model has no attention.
    """
    tokens = torch.tensor([source], device=found.device)
    rows = []
    with torch.inference_mode():
        state = found.model.start(tokens, torch.ones_like(tokens, dtype=torch.bool))
        for token in [SOS, *target]:
            with probe() as seen:
                _, state = found.model.step(torch.tensor([token], device=found.device), state)
            rows.append(looked(seen).reshape(-1, len(source))[0])
    return torch.stack(rows).float().cpu().numpy()  # type: ignore[no-any-return]


def _by_words(weights: np.ndarray, source: Sequence[Word], target: Sequence[Word]) -> np.ndarray:
    """Attention [T, S] from pieces to words: sums over source pieces, means over target pieces."""
    columns = np.stack([weights[:, word.positions].sum(1) for word in source], 1)
    if not target:
        return columns[:0]
    return np.stack([columns[word.positions].mean(0) for word in target])


def _path(trace: Trace, best: list[int]) -> list[list[Candidate]]:
    """For each token of the best hypothesis, the candidates after its prefix; the chosen one is first."""
    by_time: dict[int, list[Candidate]] = {}
    for one in trace.candidates:
        by_time.setdefault(one.time, []).append(one)
    slot, path = 0, []
    for time, token in enumerate([*best, EOS], 1):
        here = [one for one in by_time.get(time, []) if one.parent == slot]
        taken = next((one for one in here if one.token == token), None)
        if taken is None:  # cut at max_length, so without eos
            break
        path.append([taken, *sorted((one for one in here if one is not taken), key=lambda one: -one.logp)])
        slot = taken.slot
    return path


def _steps(path: list[list[Candidate]], found: Translator) -> list[dict[str, Any]]:
    """The best hypothesis token by token, with its alternatives."""
    return [
        {
            "piece": _piece(found, here[0].token),
            "choices": [
                {"piece": _piece(found, one.token), "prob": round(float(np.exp(one.logp)), 4)} for one in here
            ],
        }
        for here in path
    ]


def _piece(found: Translator, token: int) -> str:
    return "</s>" if token == EOS else spaced(found.target.pieces([token])[0])


def _tree(trace: Trace, path: list[list[Candidate]], found: Translator) -> list[dict[str, Any]]:
    """The candidates in order of time and rank; `parent` is a slot of the previous step."""
    best = {(here[0].time, here[0].rank) for here in path}
    return [
        {
            "time": one.time,
            "rank": one.rank,
            "parent": one.parent,
            "piece": _piece(found, one.token),
            "logp": round(one.logp, 3),
            "score": round(one.score, 3),
            "fate": one.fate,
            "best": (one.time, one.rank) in best,
        }
        for one in trace.candidates[:SHOWN]
    ]


def _continue(run: ServedRun, given: dict[str, Any], emit: Emit, stopped: Stopped) -> None:
    writer = writer_of(run, without(run, given["edits"]))
    how = How(
        max_tokens=given["max_tokens"],
        temperature=given["temperature"],
        seed=given["seed"],
        ends=writer.ends,
        logprobs=ALTERNATIVES,
    )
    row = None
    for (row,) in go_on(writer, [Ask(given["text"] + given["prefix"], how)], stopped):
        emit({"event": "draft", "text": given["prefix"] + row.text[: row.sure]})
    assert row is not None
    emit(
        {
            "event": "done",
            "kind": run.kind,
            "text": given["prefix"] + row.text,
            "steps": [
                {
                    "piece": token.piece,
                    "prob": round(float(np.exp(token.logp or 0.0)), 4),
                    "choices": [
                        {"piece": piece, "prob": round(float(np.exp(logp)), 4)}
                        for piece, logp in list((token.top or {}).items())[:ALTERNATIVES]
                    ],
                }
                for token, _ in zip(row.tokens, row.added, strict=False)  # without the end
            ],
        }
    )


def _rounded(row: Tensor | np.ndarray | list[float]) -> list[float]:
    values = row.tolist() if isinstance(row, torch.Tensor | np.ndarray) else list(row)
    return [round(float(value), 4) for value in values]
