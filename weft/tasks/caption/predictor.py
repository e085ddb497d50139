"""A trained captioner at work: pictures in, captions out, and where it looked for each word.

Read next: ../../tasks/caption/answer_figure.py, which lays the attention over the picture.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from weft.errors import ConfigError, DataError
from weft.models import Generator
from weft.nn.pictures.front import Front
from weft.probe import probe
from weft.search.hypotheses import to_lists
from weft.tasks.shared.pictures.batch import parts, source
from weft.tasks.shared.pictures.data import read
from weft.tasks.shared.writing.batch import PairBatch, collate_pairs
from weft.tasks.shared.writing.decoding import Decoding
from weft.tasks.shared.writing.searching import Searching
from weft.text.vocabulary import EOS, PAD, SOS, UNK, Vocabulary


class Caption(NamedTuple):
    """One caption of a picture."""

    text: str
    logp: float  # nats
    score: float  # logp normalised by length
    tokens: list[int]


class Captioner:
    """Captions pictures with a model and its vocabulary.

    Args:
        model: in evaluation mode, on its device.
        vocabulary: of the captions.
        decoding: how captions are searched; their length is bounded by max_extra alone.
        shape: of a picture.
        size: that pictures of files are scaled to; None for none.
        others: models that search along, as an ensemble.
    """

    def __init__(
        self,
        model: Generator,
        vocabulary: Vocabulary,
        decoding: Decoding,
        shape: tuple[int, ...],
        size: int | None,
        *,
        others: Sequence[Generator] = (),
    ) -> None:
        self.model, self.vocabulary, self.decoding, self.shape, self.size = (
            model,
            vocabulary,
            decoding,
            shape,
            size,
        )
        assert isinstance(model.source_embed, Front)
        self.front = model.source_embed
        self._search = Searching([model, *others], vocabulary, decoding, (PAD, UNK, SOS))

    def predict(self, picture: str | Path | np.ndarray) -> str:
        """The best caption of one picture: a file, or an array of the shape the model was trained on."""
        if isinstance(picture, str | Path):
            picture = self.read(Path(picture))
        return next(self.captions(picture[None]))[0].text

    def read(self, path: Path) -> np.ndarray:
        """A picture's file, of the model's shape.

        Raises:
            DataError: damaged, or another shape.
        """
        found = read(path, self.size)
        if found.shape != self.shape:
            size, need = (" x ".join(map(str, shape)) for shape in (found.shape, self.shape))
            raise DataError(
                f"expected {need}, as the model was trained on, got {size}; rescale it", path=path
            )
        return found

    def captions(self, pixels: np.ndarray) -> Iterator[list[Caption]]:
        """For each of [N, ..] pictures its n best captions."""
        device = next(self.model.parameters()).device
        chance = torch.Generator(device).manual_seed(self.decoding.seed)
        for part in parts(len(pixels), self.decoding.batch_rows):
            x, mask = source(pixels[part], self.front.places)
            found = self._search(x.to(device), mask.to(device), None, chance)
            for row, texts in enumerate(to_lists(found, EOS)):
                yield [
                    Caption(
                        self.vocabulary.decode(tokens),
                        float(found.logp[row, k]),
                        float(found.score[row, k]),
                        tokens,
                    )
                    for k, tokens in enumerate(texts)
                ]

    def look(self, picture: np.ndarray, tokens: list[int]) -> np.ndarray:
        """Where the decoder looked for each token of a caption: [T, *grid].

        Raises:
            ConfigError: the model has no attention.
        """
        batch = captioned(picture[None], [tokens], self.front.places)
        with torch.no_grad(), probe() as seen:
            self.model.features(batch.to(next(self.model.parameters()).device))
        own = [part for part in seen["attention"] if part.shape[2] == self.front.places]
        if own:
            weights = torch.cat(own, 1)
        elif seen["cross_attention"]:
            layers = seen["cross_attention"]
            weights = layers[max(0, len(layers) - 2)].mean(1)
        else:
            raise ConfigError("this model has no attention to show over a picture")
        return weights[0, : len(tokens)].float().cpu().numpy().reshape(len(tokens), *self.front.grid)


def captioned(pixels: np.ndarray, tokens: list[list[int]], places: int) -> PairBatch:
    """Pictures and their captions' tokens as a batch."""
    x, mask = source(pixels, places)
    return collate_pairs([[1]] * len(tokens), tokens)._replace(source=x, source_mask=mask)
