"""A caption and the picture drawn for it: the probabilities of each tile and the words it attended to."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.search.trace import Trace
from weft.tasks.draw.tiles import FIRST, Tiles
from weft.tasks.inspection import (
    Examples,
    Inspection,
    PictureWeights,
    ShownVectors,
    checked,
    places,
    table_of,
)
from weft.tasks.seq2seq.batch import PairBatch, collate_pairs, pad
from weft.tasks.seq2seq.inspection import decoded
from weft.text.vocabulary import EOS, UNK
from weft.wording import plural

if TYPE_CHECKING:
    from weft.tasks.draw.ready import DrawPipeline


BEYOND = "(not drawn)"
"""Name of a step after the last place of the picture."""


def inspected(
    pipeline: "DrawPipeline", model: Any, text: str | None, examples: Examples, options: Mapping[str, Any]
) -> Inspection:
    """See Pipeline.inspected.

    The picture is drawn as `weft predict` draws it; a beam search shows its tree.
    """
    text = checked(examples.middle() if text is None else text)
    painter = pipeline.predictor(model)
    device = next(model.parameters()).device
    words = painter.vocabulary.encode(text) or [UNK]
    tokens, mask = pad([words])
    trace = Trace() if painter.decoding.search == "beam" else None
    found = painter.search(tokens.to(device), mask.to(device), trace, painter.seeded())

    def batch_of(tiles: list[int]) -> PairBatch:
        return collate_pairs([words], [tiles]).to(device)

    shown = decoded(painter.model, _Numbers(painter.tiles), found, trace, batch_of, width=len(words))
    numbers = np.maximum(np.array([shown.tokens[: painter.places]]), FIRST)
    (picture,) = painter.tiles.decode(numbers, painter.shape)
    side = painter.tiles.patterns.shape[1]
    grid = painter.shape[0] // side, painter.shape[1] // side
    pieces = painter.vocabulary.pieces(words)
    where = places(grid)  # a step is named after the place it draws
    looks = []
    if shown.hypotheses[0].looks:
        weights = shown.hypotheses[0].looks[0].weights[: painter.places]
        looks = [(piece, weights[:, n].reshape(grid)) for n, piece in enumerate(pieces)]
    sure = np.array([one.prob for one in shown.choices[: painter.places]])
    looks.append(("(how sure each tile was)", sure.reshape(grid)))
    table = table_of(painter.model.source_embed, len(painter.vocabulary))
    names = painter.vocabulary.pieces(range(len(painter.vocabulary)))
    return Inspection(
        text=text,
        answer=f"{grid[0]} x {grid[1]} tiles, log-probability {shown.hypotheses[0].logp:.2f}",
        source=pieces,
        target=[*shown.target[:1], *_placed(shown.target[1:], where)],
        batch=shown.batch,
        hypotheses=[one._replace(pieces=_placed(one.pieces, where)) for one in shown.hypotheses],
        searched=shown.searched,
        choices=[
            one._replace(given=where[n] if n < len(where) else BEYOND) for n, one in enumerate(shown.choices)
        ],
        chosen_what="each tile in reading order, given those before it",
        vectors=None if table is None else ShownVectors(names, table, words, pieces, None),
        picture=PictureWeights(picture, looks, "the tiles that looked at each word", drawn=True),
    )


def _placed(pieces: list[str], where: list[str]) -> list[str]:
    """The pieces of a drawing, named by their places; the end symbol stays."""
    named = [*where, *[BEYOND] * (len(pieces) - len(where))]
    return [piece if piece == "</s>" else place for piece, place in zip(pieces, named, strict=False)]


class _Numbers:
    """Names tiles by their numbers in the palette."""

    def __init__(self, tiles: Tiles) -> None:
        self.tiles = tiles

    def __len__(self) -> int:
        return len(self.tiles)

    def pieces(self, ids: Iterable[int]) -> list[str]:
        return ["</s>" if one == EOS else f"#{one - FIRST}" for one in ids]

    def decode(self, ids: Iterable[int]) -> str:
        return plural(len(list(ids)), "tile")
