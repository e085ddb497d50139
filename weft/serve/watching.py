"""The events of the page: drafts of an answer during the search, then the answer with its details.

Every event is an object with `event`: "draft" (the best answer so far, which may still change) or "done",
which contains the words, the attention and the tree of the search. A visitor may change the model: set units
to zero, or move attention to other words (../diagnose/ablate.py, ../diagnose/attention.py).
Read next: pages.py; page/page.js.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from weft.diagnose.ablate import silenced
from weft.diagnose.attention import copied, steered
from weft.diagnose.recorded import places, titles_of
from weft.documents.plain import Plain
from weft.errors import ConfigError, DataError, ShapeError
from weft.models import Generator
from weft.probe import probe
from weft.search.hypotheses import to_lists
from weft.search.offered import Decoding
from weft.search.trace import Candidate, Trace
from weft.serve.batcher import ClientLeft, Emit, Stopped
from weft.serve.completions import Ask, How, go_on, spaced, writer_of
from weft.serve.limits import Refusal
from weft.serve.schemas import Cell
from weft.serve.served import ServedRun
from weft.serve.translation import translator
from weft.tasks.abilities import Weighs
from weft.tasks.predictor import Remarks
from weft.tasks.seq2seq.batch_search import looked
from weft.tasks.seq2seq.encoding import collate_pairs
from weft.tasks.seq2seq.translator import SearchResult, Translator
from weft.text.segments import WrittenSentence
from weft.text.sentences import DocumentPlan
from weft.text.vocabulary import EOS, SOS, UNK, Word

STEPS = 1000  # of a search, whose attention can be moved
SHOWN = 1200  # maximum number of candidates in the tree


class ModelEdits(NamedTuple):
    """Changes in one request; none by default."""

    drop: tuple[tuple[int, int], ...] = ()  # (number of a cell, unit), both from 0
    looks: tuple[tuple[int, int], ...] = ()  # (step of the search from 1, source word from 0)


NOTHING = ModelEdits()


def cells_of(run: ServedRun) -> list[Cell]:
    """The recurrent layers of a run, in the order that `drop` numbers them."""
    found = places(run.opened.model)
    titles = titles_of(found)
    return [Cell(name=titles[place.name], size=place.cell.size) for place in found]


def edits_of(
    run: ServedRun, drop: list[list[int]] | None, looks: list[list[int]] | None = None
) -> ModelEdits:
    """The changes that a request contains, checked."""
    cells = cells_of(run) if drop else []
    for number, unit in drop or ():
        if number >= len(cells):
            raise Refusal(404, f"drop: expected a layer from 0 to {len(cells) - 1}, got {number}")
        name, size = cells[number]["name"], cells[number]["size"]
        if unit >= size:
            raise Refusal(404, f"drop: expected a unit of {name} from 0 to {size - 1}, got {unit}")
    for step, _ in looks or ():
        if not 1 <= step <= STEPS:
            raise Refusal(404, f"looks: expected a step from 1 to {STEPS}, got {step}")
    return ModelEdits(*(tuple((first, second) for first, second in pairs or ()) for pairs in (drop, looks)))


def without(run: ServedRun, edits: ModelEdits) -> nn.Module:
    """The run's model, or a copy with the dropped units set to zero."""
    model = run.opened.model
    if not edits.drop:
        return model
    names = [place.name for place in places(model)]
    units: dict[str, list[int]] = {}
    for number, unit in edits.drop:
        units.setdefault(names[number], []).append(unit)
    return silenced(model, units)


def _moved(model: Generator, edits: ModelEdits, words: Sequence[Word], size: int) -> Generator:
    """The model, or a copy whose attention over S source positions is moved to the requested words."""
    looks: dict[int, Tensor] = {}
    for step, number in edits.looks:
        if number >= len(words):
            raise Refusal(404, f"looks: expected a word from 0 to {len(words) - 1}, got {number}")
        weights = looks.setdefault(step, torch.zeros(size))
        weights[list(words[number].positions)] = 1.0
    return steered(model, {step: one / one.sum() for step, one in looks.items()}) if looks else model


class SentencewiseText:
    """A text whose sentences are translated one by one, as by /translate."""

    def __init__(self, text: str, source: str, target: str) -> None:
        self._plain = Plain(text)
        self._plan = DocumentPlan(self._plain.segments, source, target)
        self.sentences = [one.text for one in self._plan.sentences]

    def joined(self, translations: list[str]) -> str:
        """The translation of the text; sentences without one are left out."""
        missing = [""] * (len(self.sentences) - len(translations))
        return self._plain.written(
            self._plan.joined([WrittenSentence(one) for one in [*translations, *missing]])
        )


def several(
    run: ServedRun, text: str, target: str, prefix: str, edits: ModelEdits
) -> SentencewiseText | None:
    """The sentences of a text for a translator; None for one sentence, and where a search is changed."""
    source = next((reads for reads, writes in run.directions() if writes == target), None)
    if source is None or prefix or edits.looks:
        return None
    found = SentencewiseText(text, source, target)
    return found if len(found.sentences) > 1 else None


class ProgressTrace(Trace):
    """A trace that reports the best hypothesis after each step."""

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
    """Answer a text and report the progress."""
    if run.rewriter:
        translate = _translate_each if given["sentences"] else _translate
        translate(run, run.rewriter.decoding, given, emit, stopped)
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


def _translate_each(
    run: ServedRun, own: Decoding, given: dict[str, Any], emit: Emit, stopped: Stopped
) -> None:
    """Translate sentences and report the text so far after each of them."""
    text, beam = given["sentences"], given["beam"]
    decoding = own.as_beam(beam, nbest=1, diverse=1, require=())
    model: Any = without(run, given["edits"])
    used = translator(run, given["target"], decoding, stopped, model).with_glossary(given["terms"])
    found: list[str] = []
    remarks = Remarks()
    for sentence in text.sentences:
        try:
            (answer,) = used.answers([sentence])
        except (ConfigError, DataError, ShapeError) as error:
            raise Refusal(400, f"the sentence {sentence[:40]!r}: {error}") from error
        lacking = used.lacking(sentence)
        lacked = used.lacked if lacking else ""
        remarks.see(repr(sentence[:40]), lost=answer.lost, lacking=lacking, lacked=lacked)
        found.append(answer.found[0].text)
        emit({"event": "draft", "text": text.joined(found)})
    pairs = [list(pair) for pair in zip(text.sentences, found, strict=True)]
    done = {"event": "done", "kind": run.kind, "text": text.joined(found), "sentences": pairs}
    emit({**done, "notes": remarks.lines()})


def _translate(
    run: ServedRun, decoding: Decoding, given: dict[str, Any], emit: Emit, stopped: Stopped
) -> None:
    beam = given["beam"]
    plain = decoding.as_beam(beam, nbest=beam, diverse=1, require=(), coverage=0.0, prefix=given["prefix"])
    edits = given["edits"]
    found, text, source = reading(run, plain, given, stopped)

    def tell(tokens: list[int]) -> None:
        emit({"event": "draft", "text": found.target.decode([one for one in tokens if one != EOS])})

    found = found.with_glossary(given["terms"])
    trace, terms = ProgressTrace(tell, stopped), found.terms(given["text"])
    finished = not (given["prefix"] or edits.looks)
    try:
        asked = ((), ()) if finished else (terms, ())
        hypotheses = found.search([source], None if any(asked) else trace, asked=asked)
    except ConfigError as error:
        if not terms:
            raise
        raise Refusal(400, f"terms: {error}") from error
    best = to_lists(hypotheses, EOS)[0]
    rows, notes = _finished(found, given["text"], best, hypotheses.score[0].tolist(), finished=finished)
    written = rows[0].tokens or best[0]
    if terms and UNK not in (placed := found.target.encode(rows[0].text)):
        written = placed
    tree = _tree(trace, _path(trace, written), found) if written == best[0] else []
    emit(
        {
            "event": "done",
            "kind": "translate",
            "text": rows[0].text,
            "terms": terms,
            "notes": notes,
            "others": [{"text": row.text, "score": row.score} for row in rows],
            **_looked(found, source, written, text, bool(edits.looks)),
            "pieces": len(written),
            "tree": tree,
        }
    )


def reading(
    run: ServedRun, decoding: Decoding, given: dict[str, Any], stopped: Stopped
) -> tuple[Translator, str, list[int]]:
    """The translator with the changes of a request, the text as it reads it, and the text's tokens."""
    edits = given["edits"]
    model: Any = without(run, edits)
    found = translator(run, given["target"], decoding, stopped, model)
    text = found.readable(given["text"])
    found = found.copying(text)
    source = found.source.encode(text)
    if not source:
        raise Refusal(400, "text: expected words that the model can read, got none")
    if edits.looks:
        words = found.source.words(source, text)
        model = _moved(model, edits, words, len(source))
        found = translator(run, given["target"], decoding, stopped, model).copying(text)
    return found, text, source


def _finished(
    found: Translator, text: str, best: list[list[int]], scores: list[float], *, finished: bool
) -> tuple[list[SearchResult], list[str]]:
    """The answers with what they keep of the text, and what they lack of it."""
    texts = [found.target.decode(tokens) for tokens in best]
    rows = [SearchResult(*one) for one in zip(texts, scores, scores, best, strict=False)]
    if finished:
        kept = found.finished(text, rows)
        rows = [one._replace(score=row.score) for one, row in zip(kept, rows, strict=False)]
    remarks, lacking = Remarks(), found.lacking(text)
    lacked = (found.lacked if finished else Translator.unread) if lacking else ""
    remarks.see("the text", lost=rows[0].lost, lacking=lacking, lacked=lacked)
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
    """Attention [T, S], computed step by step so that it includes edited attention."""
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
                {"piece": token.piece, "prob": round(float(np.exp(token.logp or 0.0)), 4)}
                for token, _ in zip(row.tokens, row.added, strict=False)  # without the end
            ],
        }
    )


def _rounded(row: Tensor | np.ndarray | list[float]) -> list[float]:
    values = row.tolist() if isinstance(row, torch.Tensor | np.ndarray) else list(row)
    return [round(float(value), 4) for value in values]
