"""A trained model that draws at work: captions in, pictures out."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch

from weft.errors import ConfigError
from weft.models import Generator
from weft.tasks.draw.tiles import FIRST, Tiles
from weft.tasks.shared.pictures.batch import parts
from weft.tasks.shared.writing.batch import pad
from weft.tasks.shared.writing.decoding import Decoding
from weft.tasks.shared.writing.searching import Searching
from weft.text.vocabulary import PAD, SOS, UNK, Vocabulary


class Painter:
    """Draws captions with a model, a vocabulary and a palette.

    Args:
        model: in evaluation mode, on its device.
        vocabulary: of captions.
        tiles: the palette.
        shape: of a picture.
        decoding: how a picture is searched or drawn by chance.

    Raises:
        ConfigError: a setting of the search that has no meaning for pictures.
    """

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
            raise ConfigError(f"{name}: has no meaning for pictures; leave it out")
        side = tiles.patterns.shape[1]
        self.places = (shape[0] // side) * (shape[1] // side)
        self.model, self.vocabulary, self.tiles, self.shape = model, vocabulary, tiles, shape
        self.decoding = replace(
            decoding, max_ratio=0.0, max_extra=self.places + 1, min_length=self.places, no_repeat_ngram=0
        )
        self._search = Searching([model], vocabulary, self.decoding, (PAD, UNK, SOS))

    def predict(self, text: str) -> np.ndarray:
        """The picture of one caption, [height, width, 3] uint8."""
        return next(self.draw([text]))

    def chance(self) -> torch.Generator:
        """New random numbers of sampling, from the seed."""
        return torch.Generator(next(self.model.parameters()).device).manual_seed(self.decoding.seed)

    def draw(self, texts: Sequence[str], chance: torch.Generator | None = None) -> Iterator[np.ndarray]:
        """A picture for each caption; the random numbers begin with the seed unless given."""
        device = next(self.model.parameters()).device
        chance = chance or self.chance()
        for part in parts(len(texts), self.decoding.batch_rows):
            rows = self.vocabulary.encode_batch(list(texts[part]))
            tokens, mask = pad([row or [UNK] for row in rows])
            found = self._search(tokens.to(device), mask.to(device), None, chance)
            numbers = found.tokens[:, 0, : self.places].cpu().numpy()
            yield from self.tiles.decode(np.maximum(numbers, FIRST), self.shape)
