"""A trained model that draws: captions in, pictures out."""

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from PIL import Image

from weft.data.images import data_uri
from weft.errors import ConfigError
from weft.models import Generator
from weft.search.trace import Trace
from weft.tasks import predictor
from weft.tasks.draw.tiles import FIRST, Tiles
from weft.tasks.inspection import Inspection, PictureWeights, ShownVectors, places, table_of
from weft.tasks.pictures.pictures import parts
from weft.tasks.predictor import Answer, Json, Place, Raw
from weft.tasks.seq2seq.batch_search import BatchSearch
from weft.tasks.seq2seq.decoding import Decoding
from weft.tasks.seq2seq.encoding import PairBatch, collate_pairs, pad
from weft.tasks.seq2seq.inspection import decoded
from weft.text.vocabulary import EOS, PAD, SOS, UNK, Vocabulary
from weft.wording import plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BEYOND = "(not drawn)"
"""Name of a step after the last place of the picture."""

LARGE = 192
"""A picture is enlarged until each side has at least this many pixels; each of its own pixels is a square."""


class DrawnPicture(Answer):
    """A drawn picture.

    Args:
        caption: the input.
        picture: [height, width, 3] uint8.
    """

    def __init__(self, caption: str, picture: np.ndarray) -> None:
        self.caption = caption
        self.picture = picture

    def text(self) -> str:
        """A data URI."""
        return data_uri(self.picture)

    def json(self) -> Json:
        """A data URI."""
        return self.text()

    def pictures(self) -> Mapping[str, bytes]:
        """A PNG of the picture's own pixels, enlarged."""
        times = -(-LARGE // max(self.picture.shape[:2]))
        out = io.BytesIO()
        Image.fromarray(self.picture.repeat(times, 0).repeat(times, 1)).save(out, "png")
        return {".png": out.getvalue()}


class Painter(predictor.Predictor[str]):
    """Draws captions with a model, a vocabulary and a palette.

    Args:
        model: in evaluation mode, on its device.
        vocabulary: of captions.
        tiles: the palette.
        shape: of a picture.
        decoding: settings of search or sampling.

    Raises:
        ConfigError: a search setting does not apply to pictures.
    """

    draws = True
    linewise = False

    def __init__(
        self,
        model: Generator,
        vocabulary: Vocabulary,
        tiles: Tiles,
        shape: tuple[int, ...],
        decoding: Decoding,
    ) -> None:
        if decoding.prefix or decoding.require or decoding.nbest > 1:
            name = "prefix" if decoding.prefix else "require" if decoding.require else "nbest"
            raise ConfigError(f"{name}: does not apply to pictures; leave it out")
        side = tiles.patterns.shape[1]
        self.places = (shape[0] // side) * (shape[1] // side)
        self.model, self.vocabulary, self.tiles, self.shape = model, vocabulary, tiles, shape
        self.decoding = replace(
            decoding, max_ratio=0.0, max_extra=self.places + 1, min_length=self.places, no_repeat_ngram=0
        )
        self.window = self.piped = decoding.batch_rows
        self.search = BatchSearch([model], vocabulary, self.decoding, (PAD, UNK, SOS))
        self._random = self.seeded()  # shared by all answers

    def parse(self, raw: Raw, place: Place) -> str:
        return str(raw)

    def lacking(self, value: str) -> list[str]:
        return self.vocabulary.alphabet.unknown(value)

    def answers(self, inputs: Sequence[str]) -> Iterator[Answer]:
        rows = self.vocabulary.encode_batch(list(inputs))
        for caption, picture in zip(inputs, self.draw(rows, self._random), strict=True):
            yield DrawnPicture(caption, picture)

    def overview(self, answers: Sequence[Any]) -> "Figure | None":
        """A sheet of all pictures with their captions."""
        from weft.figures.sheets import picture_sheet  # imports matplotlib

        return picture_sheet([(answer.caption, answer.picture) for answer in answers])

    def predict(self, raw: str) -> np.ndarray:
        """The picture of one caption, [height, width, 3] uint8."""
        return next(self.draw([self.vocabulary.encode(raw)]))

    def seeded(self) -> torch.Generator:
        """A new generator for sampling, from the seed."""
        return torch.Generator(next(self.model.parameters()).device).manual_seed(self.decoding.seed)

    def draw(
        self, captions: Sequence[list[int]], chance: torch.Generator | None = None
    ) -> Iterator[np.ndarray]:
        """A picture for the tokens of each caption; without `chance`, sampling starts from the seed."""
        device = next(self.model.parameters()).device
        chance = chance or self.seeded()
        for part in parts(len(captions), self.decoding.batch_rows):
            tokens, mask = pad([row or [UNK] for row in captions[part]])
            found = self.search(tokens.to(device), mask.to(device), None, chance)
            numbers = found.tokens[:, 0, : self.places].cpu().numpy()
            yield from self.tiles.decode(np.maximum(numbers, FIRST), self.shape)


def inspect_painting(painter: Painter, text: str) -> Inspection:
    """What `weft inspect` shows of a caption and the picture drawn for it.

    The picture is drawn as `weft predict` draws it; a beam search shows its tree.
    """
    device = next(painter.model.parameters()).device
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
