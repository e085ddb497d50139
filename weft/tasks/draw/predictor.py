"""A trained model that draws: captions in, pictures out."""

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from PIL import Image

from weft.data.images import data_uri
from weft.errors import ConfigError
from weft.models import Generator
from weft.tasks import predictor
from weft.tasks.draw.tiles import FIRST, Tiles
from weft.tasks.pictures.pictures import parts
from weft.tasks.predictor import Answer, Json, Place, Raw
from weft.tasks.seq2seq.batch import pad
from weft.tasks.seq2seq.decoding import Decoding
from weft.tasks.seq2seq.searching import Searching
from weft.text.vocabulary import PAD, SOS, UNK, Vocabulary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LARGE = 192
"""A picture is enlarged until each side has at least this many pixels; each of its own pixels is a square."""


class Drawn(Answer):
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
        self.search = Searching([model], vocabulary, self.decoding, (PAD, UNK, SOS))
        self._random = self.seeded()  # shared by all answers

    def parse(self, raw: Raw, place: Place) -> str:
        """A caption."""
        return str(raw)

    def answers(self, inputs: Sequence[str]) -> Iterator[Answer]:
        rows = self.vocabulary.encode_batch(list(inputs))
        for caption, picture in zip(inputs, self.draw(rows, self._random), strict=True):
            yield Drawn(caption, picture)

    def check_figures(self, *, alignments: bool) -> None:
        if alignments:
            super().check_figures(alignments=True)

    def overview(self, answers: Sequence[Any]) -> "Figure | None":
        """A sheet of all pictures with their captions."""
        from weft.tasks.draw.answer_figure import sheet

        return sheet([(answer.caption, answer.picture) for answer in answers])

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
