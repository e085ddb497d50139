"""A translation: the search with its tree, every hypothesis and where it looked."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from weft.inspect.pharaoh import merge, pharaoh
from weft.inspect.subjects.subject import (
    Hypothesis,
    Kind,
    Looks,
    Searched,
    Subject,
    Vectors,
    checked,
    choices_of,
    example,
    table_of,
)
from weft.probe import probe
from weft.run import Opened
from weft.search.hypotheses import to_lists
from weft.search.trace import Trace
from weft.tasks.pairs.batch import PairBatch, collate_pairs
from weft.tasks.pairs.decoding import Decoding
from weft.tasks.pairs.translator import Translator
from weft.text.vocabulary import EOS, Vocabulary


class TranslateSubject(Kind):
    """Of `weft translate` runs."""

    def read(self, opened: Opened, text: str | None) -> Subject:
        """See Kind."""
        text = checked(example(opened) if text is None else text)
        return of(opened, opened.task.predictor(opened.model), text)


def of(opened: Opened, translator: Translator, text: str) -> Subject:
    """What a translator made of a text.

    Args:
        opened: its run.
        translator: at work; whatever its search is, here it is a plain beam, so that there is a tree.
        text: of its source language.
    """
    how = plain_beam(translator.decoding)
    known = translator.source.base
    translator = Translator(
        translator.model, translator.source, translator.target, how, banned=translator.banned[3:]
    ).beside(text)
    source = translator.source.encode(text)
    trace = Trace()
    found = translator.search([source], trace)
    target = translator.target
    tokens = to_lists(found, EOS)[0]
    hypotheses, batches = [], []
    for place, one in enumerate(tokens):
        batch = collate_pairs([source], [one]).to(translator._device)
        batches.append(batch)
        looks, logp = _looked(translator, batch)
        pieces = target.pieces([*one, EOS])
        if place == 0:
            choices = choices_of(logp, [*one, EOS], _Names(target), ())
        hypotheses.append(
            Hypothesis(
                target.decode(one),
                pieces,
                float(found.score[0, place]),
                float(found.logp[0, place]),
                looks,
                _pharaoh(translator, looks, source, one),
            )
        )
    lengths = found.lengths[0].tolist()
    paths = [row[:length] for row, length in zip(found.tokens[0].tolist(), lengths, strict=True) if length]
    different = {one.token for one in trace.candidates}
    named = dict(zip(different, target.pieces(different), strict=True)) if different else {}
    best = tokens[0]
    return Subject(
        opened=opened,
        text=text,
        answer=hypotheses[0].text,
        source=translator.source.pieces(source) or ["<pad>"],
        target=["<sos>", *target.pieces(best)],
        batch=batches[0],
        hypotheses=hypotheses,
        searched=Searched(trace, named, paths),
        choices=choices,
        chosen_what="each token of the best answer, given those before it",
        vectors=_vectors(translator, known, source, batches[0]),
    )


def plain_beam(how: Decoding) -> Decoding:
    """The same settings for a beam search that keeps its tree and gives every hypothesis of its beam.

    Example:
        >>> how = plain_beam(Decoding(search="sample", temperature=0.5))
        >>> how.search, how.beam, how.nbest
        ('beam', 5, 5)
    """
    beam = max(2, how.beam) if how.search == "beam" else 5
    return replace(how, search="beam", beam=beam, nbest=beam, coverage=0.0, diverse=1, require=())


class _Names:
    """A vocabulary by indexing."""

    def __init__(self, vocabulary: Any) -> None:
        self.vocabulary = vocabulary

    def __getitem__(self, number: int) -> str:
        size = len(self.vocabulary)
        return self.vocabulary.pieces([number])[0] if number < size else f"<{number}>"  # type: ignore[no-any-return]


def _looked(translator: Translator, batch: PairBatch) -> tuple[list[Looks], torch.Tensor]:
    with torch.no_grad(), probe() as seen:
        h = translator.model.features(batch)
    with torch.no_grad():
        logp = translator.model.head(h)[0]
    width = batch.source.shape[1]
    looks: list[Looks] = []
    parts = [part for part in seen["attention"] if part.shape[2] == width]
    if parts:
        weights = torch.cat(parts, 1)[0].float().cpu().numpy()
        steps = batch.target_out.shape[1]
        for layer in range(len(weights) // steps):
            name = "attention" if len(weights) == steps else f"layer {layer + 1}"
            looks.append(Looks(name, weights[layer * steps : (layer + 1) * steps]))
    for layer, heads in enumerate(seen["cross_attention"], 1):
        each = heads[0].float().cpu().numpy()
        looks.append(Looks(f"layer {layer}, mean of {len(each)} heads", each.mean(0)))
        looks += [Looks(f"layer {layer}, head {n}", one) for n, one in enumerate(each, 1)]
    count = len(seen["cross_attention"])
    if count > 1:  # Garg et al. 2019: the last layer but one aligns best, so it comes first
        first = next(n for n, one in enumerate(looks) if one.name.startswith(f"layer {count - 1}, mean"))
        looks.insert(0, looks.pop(first))
    return looks, logp


def _pharaoh(translator: Translator, looks: Sequence[Looks], source: list[int], target: list[int]) -> str:
    if not looks or not target or not source:
        return ""
    sides = (translator.source, source), (translator.target, [*target, EOS])
    words = [[word.positions for word in side.words(tokens)] for side, tokens in sides]
    return pharaoh(merge(looks[0].weights, *words))


def _vectors(
    translator: Translator, named: Vocabulary, source: list[int], batch: PairBatch
) -> Vectors | None:
    model, size = translator.model, len(named)
    table = table_of(model.source_embed, size)
    context: np.ndarray | None = None
    if model.encoder is not None:
        with torch.no_grad():
            memory = model.encoder(model.source_embed(batch.source), batch.source_mask)
        context = memory.states[0].float().cpu().numpy()
    pieces = translator.source.pieces(source)
    if table is None or not source or (context is not None and len(context) != len(source)):
        return None
    return Vectors(named.pieces(range(size)), table, [n for n in source if n < size], pieces, context)
