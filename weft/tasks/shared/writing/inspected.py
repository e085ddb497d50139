"""What `weft inspect` shows of a written text: the search tree, every hypothesis and its attention."""

from collections.abc import Sequence

import torch

from weft.search.trace import Trace
from weft.tasks.inspection import (
    AttentionMap,
    Inspected,
    Vectors,
    Words,
    checked,
    gathered,
    sentences,
    table_of,
)
from weft.tasks.shared.inspected.decoded import decoded, plain_beam
from weft.tasks.shared.writing.alignment import Alignment
from weft.tasks.shared.writing.batch import PairBatch, collate_pairs
from weft.tasks.shared.writing.data import PairData
from weft.tasks.shared.writing.translator import Translator, between_words
from weft.text.vocabulary import EOS, UNK, Vocabulary


def of(translator: Translator, text: str, data: PairData) -> Inspected:
    """The translations of a text and their search.

    Args:
        translator: its search is replaced by a plain beam search, which has a tree.
        text: of its source language.
        data: its validation sentences give more words in context.

    Raises:
        DataError: the text is empty, or too long.
    """
    text = checked(text)
    how = plain_beam(translator.decoding)
    known = translator.source.base
    translator = Translator(
        translator.model, translator.source, translator.target, how, banned=translator.banned[3:]
    ).copying(text)
    source = translator.source.encode(text)
    trace = Trace()
    found = translator.search([source], trace)

    def batch_of(tokens: list[int]) -> PairBatch:
        return collate_pairs([source], [tokens]).to(translator.device)

    shown = decoded(
        translator.model,
        translator.target,
        found,
        trace,
        batch_of,
        width=batch_of([]).source.shape[1],
        pharaoh=lambda looks, tokens: _pharaoh(translator, looks, source, tokens),
    )
    return Inspected(
        text=text,
        answer=shown.hypotheses[0].text,
        source=translator.source.pieces(source) or ["<pad>"],
        target=shown.target,
        batch=shown.batch,
        hypotheses=shown.hypotheses,
        searched=shown.searched,
        choices=shown.choices,
        chosen_what="each token of the best answer, given those before it",
        vectors=_vectors(translator, known, source, text, data),
        copied=shown.copied,
    )


def _pharaoh(
    translator: Translator, looks: Sequence[AttentionMap], source: list[int], target: list[int]
) -> str:
    if not looks or not target or not source:
        return ""
    return between_words(translator, Alignment(looks[0].weights, source, [*target, EOS], looks[0].name))


def _vectors(
    translator: Translator, named: Vocabulary, source: list[int], text: str, data: PairData
) -> Vectors | None:
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
    return Vectors(
        named.pieces(range(size)),
        table,
        [n for n in source if n < size],
        reading.pieces(source),
        None if own is None else own[1],
        gathered(zip(beside, contexts(beside), strict=True)) if beside else None,
    )
