"""What `weft inspect` shows of a search: every hypothesis with attention and probabilities.

`decoded` serves every task that searches; `inspect_translation` shows a text and its translations.
Read next: ../inspection.py; the predictors of captions and speech.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import torch
from torch import Tensor

from weft.diagnose.attention import copied
from weft.models import Generator
from weft.probe import probe
from weft.search.hypotheses import Hypotheses, to_lists
from weft.search.offered import Decoding
from weft.search.trace import Trace
from weft.tasks.inspection import (
    AttentionMap,
    Hypothesis,
    Inspection,
    SearchTree,
    ShownVectors,
    Words,
    checked,
    choices_of,
    gathered,
    sentences,
    table_of,
)
from weft.tasks.seq2seq.encoding import collate_pairs
from weft.tasks.seq2seq.sections import PairData
from weft.tasks.seq2seq.translator import Alignment, Translator, between_words
from weft.text.vocabulary import EOS, UNK, Vocabulary


class TokenNames(Protocol):
    """Names of tokens: a vocabulary, or the numbers of tiles."""

    def __len__(self) -> int: ...

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """The name of each token."""

    def decode(self, ids: Iterable[int]) -> str:
        """All tokens as a text."""


def name_in(names: TokenNames) -> Callable[[int], str]:
    """The name of a token by its number; one without a name is shown as its number."""
    return lambda number: names.pieces([number])[0] if number < len(names) else f"<{number}>"


def plain_beam(how: Decoding) -> Decoding:
    """The same settings for a beam search that records its tree and returns all hypotheses of its beam."""
    beam = max(2, how.beam) if how.search == "beam" else 5
    return how.as_beam(beam, nbest=beam, coverage=0.0, diverse=1, require=(), shortlist=0)


def decoded(
    model: Generator,
    names: TokenNames,
    found: Hypotheses,
    trace: Trace | None,
    batch_of: Callable[[list[int]], Any],
    *,
    text: str,
    width: int,
    pharaoh: Callable[[Sequence[AttentionMap], list[int]], str] = lambda looks, tokens: "",
) -> Inspection:
    """What the views show of each hypothesis of one source; the caller adds what it knows of the source.

    The decoder can attend to S (`width`) positions.
    """
    hypotheses, choices = [], []
    every, device = to_lists(found, EOS)[0], next(model.parameters()).device
    batches = [batch_of(one).to(device) for one in every]
    for place, (one, batch) in enumerate(zip(every, batches, strict=True)):
        looks, logp = attention_maps(model, batch, width)
        pieces = names.pieces([*one, EOS])
        if place == 0:
            choices = choices_of(logp, [*one, EOS], name_in(names))
        hypotheses.append(
            Hypothesis(
                names.decode(one),
                pieces,
                float(found.score[0, place]),
                float(found.logp[0, place]),
                looks,
                pharaoh(looks, one),
            )
        )
    searched = None
    if trace is not None and trace.candidates:
        rows = zip(found.tokens[0].tolist(), found.lengths[0].tolist(), strict=True)
        different = sorted({one.token for one in trace.candidates})
        named = dict(zip(different, names.pieces(different), strict=True))
        searched = SearchTree(trace, named, [row[:length] for row, length in rows if length])
    share = copied(model, batches[0])
    own = None if share is None else share[0].float().cpu().numpy()
    return Inspection(
        text=text,
        answer=hypotheses[0].text,
        target=["<sos>", *names.pieces(every[0])],
        batch=batches[0],
        hypotheses=hypotheses,
        searched=searched,
        choices=choices,
        copied=own,
    )


def attention_maps(model: Generator, batch: Any, width: int) -> tuple[list[AttentionMap], Tensor]:
    """The attention for each token, over `width` places of the source, and the log-probabilities [T, V]."""
    with torch.no_grad(), probe() as seen:
        h = model.features(batch)
    with torch.no_grad():
        logp: Tensor = model.head(h)[0]
    looks: list[AttentionMap] = []
    parts = [part for part in seen["attention"] if part.shape[2] == width]
    if parts:
        weights = torch.cat(parts, 1)[0].float().cpu().numpy()
        steps = batch.target_out.shape[1]
        for layer in range(len(weights) // steps):
            name = "attention" if len(weights) == steps else f"decoder, layer {layer + 1}"
            looks.append(AttentionMap(name, weights[layer * steps : (layer + 1) * steps]))
    for layer, heads in enumerate(seen["cross_attention"], 1):
        each = heads[0].float().cpu().numpy()
        looks.append(AttentionMap(f"decoder, layer {layer}, mean of {len(each)} heads", each.mean(0)))
        looks += [AttentionMap(f"decoder, layer {layer}, head {n}", one) for n, one in enumerate(each, 1)]
    count = len(seen["cross_attention"])
    if count > 1:  # Garg et al. 2019: the last layer but one aligns best, so it comes first
        best = next(
            n for n, one in enumerate(looks) if one.name.startswith(f"decoder, layer {count - 1}, mean")
        )
        looks.insert(0, looks.pop(best))
    return looks, logp


def inspect_translation(translator: Translator, text: str, data: PairData) -> Inspection:
    """The translations of a text and their search."""
    text = checked(text)
    how = plain_beam(translator.decoding)
    known = translator.source.base
    translator = Translator(
        translator.model, translator.source, translator.target, how, banned=translator.banned[3:]
    ).copying(text)
    source = translator.source.encode(text)
    trace = Trace()
    found = translator.search([source], trace)

    def pharaoh(looks: Sequence[AttentionMap], target: list[int]) -> str:
        if not looks or not target or not source:
            return ""
        return between_words(translator, Alignment(looks[0].weights, source, [*target, EOS], looks[0].name))

    shown = decoded(
        translator.model,
        translator.target,
        found,
        trace,
        lambda tokens: collate_pairs([source], [tokens]),
        text=text,
        width=max(1, len(source)),
        pharaoh=pharaoh,
    )
    return replace(
        shown,
        source=translator.source.pieces(source) or ["<pad>"],
        chosen_what="each token of the best answer, given those before it",
        vectors=_vectors(translator, known, source, text, data),
    )


def _vectors(
    translator: Translator, named: Vocabulary, source: list[int], text: str, data: PairData
) -> ShownVectors | None:
    model, reading, size = translator.model, translator.source, len(named)
    table = table_of(model.source_embed, size)

    def contexts(lines: list[str]) -> list[Words | None]:
        rows = reading.encode_batch(lines)
        if model.encoder is None or not any(rows):
            return [None] * len(rows)
        batch = collate_pairs([row or [UNK] for row in rows], [[] for _ in rows]).to(translator.device)
        with torch.no_grad():
            memory = model.encoder(model.source_embed(batch.source), batch.source_mask)
        found: list[Words | None] = []
        for row, states, mask in zip(rows, memory.states, memory.mask, strict=True):
            own = states[mask].float().cpu().numpy()
            found.append((reading.pieces(row), own) if row and len(own) == len(row) else None)
        return found

    own = contexts([text])[0]
    if table is None or not source or (model.encoder is not None and own is None):
        return None
    beside = sentences(lambda: (line for _, line, _ in data.open("valid")))
    return ShownVectors(
        named.pieces(range(size)),
        table,
        [n for n in source if n < size],
        reading.pieces(source),
        None if own is None else own[1],
        gathered(zip(beside, contexts(beside), strict=True)) if beside else None,
    )
