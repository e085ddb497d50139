"""A trained model that draws at work: captions in, pictures out; and how good they are, beside floors."""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch

from weft.data.images import data_uri
from weft.data.shapes import read_caption, recognise
from weft.errors import ConfigError
from weft.metrics.floor import beside
from weft.models import Generator
from weft.tasks.pairs.batch import pad
from weft.tasks.pairs.decoding import Decoding
from weft.tasks.pairs.evaluation import mean_loss
from weft.tasks.pairs.searching import Searching
from weft.tasks.pictures.batch import parts
from weft.tasks.pictures.data import Captions
from weft.tasks.pictures.tiles import FIRST, Tiles
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

    def draw(self, texts: Sequence[str]) -> Iterator[np.ndarray]:
        """A picture for each caption."""
        device = next(self.model.parameters()).device
        chance = torch.Generator(device).manual_seed(self.decoding.seed)
        for part in parts(len(texts), self.decoding.batch_rows):
            rows = self.vocabulary.encode_batch(list(texts[part]))
            tokens, mask = pad([row or [UNK] for row in rows])
            found = self._search(tokens.to(device), mask.to(device), None, chance)
            numbers = found.tokens[:, 0, : self.places].cpu().numpy()
            yield from self.tiles.decode(np.maximum(numbers, FIRST), self.shape)


class DrawEvaluation(NamedTuple):
    """Pictures drawn for captions, and all that is known of them."""

    title: str
    outputs: list[str]  # each picture as a data URI
    loss: float  # nats a tile of the true pictures
    unigram: float  # the same of tiles by their frequency in these pictures' training set
    error: float  # mean squared difference of a drawn pixel's channel from the true one's, 0..1
    mean: float  # the same of the mean picture
    right: dict[str, float]  # generated shapes: share with what was asked, by the rule; else empty
    ceiling: float  # the same of the true pictures cut into tiles; 1 where the palette loses nothing
    seconds: float

    def text(self) -> str:
        """For a reader."""
        worse = beside(self.loss, self.unigram, higher=False)
        lines = [
            self.title,
            f"  {self.loss:.4f} nats a tile; floor: tiles by frequency {self.unigram:.4f}{worse}",
        ]
        worse = beside(self.error, self.mean, higher=False)
        lines.append(
            f"  squared error of a pixel {self.error:.4f}; floor: mean picture {self.mean:.4f}{worse}"
        )
        if self.right:
            told = ", ".join(f"{name} {share:.4f}" for name, share in self.right.items())
            lines.append(f"  right by the nearest template: {told}; of the true pictures {self.ceiling:.4f}")
        lines.append(f"  {len(self.outputs) / max(self.seconds, 1e-9):,.1f} pictures/s, {self.seconds:.1f} s")
        return "\n".join(lines)

    def json(self) -> str:
        """For a program."""
        return json.dumps({**self._asdict(), "outputs": len(self.outputs)}, indent=1) + "\n"


def evaluate(painter: Painter, found: Captions, train: np.ndarray, *, title: str) -> DrawEvaluation:
    """Draw the first caption of each picture and score.

    Args:
        painter: at work.
        found: pictures and captions.
        train: training pictures, for the floors; these where they are gone.
        title: which data.
    """
    texts = [captions[0] for captions in found.captions]
    begun = time.perf_counter()
    drawn = np.stack(list(painter.draw(texts)))
    seconds = time.perf_counter() - begun
    tiles = painter.tiles.encode(found.pixels)
    counts = np.bincount(painter.tiles.encode(train).ravel(), minlength=len(painter.tiles)) + 1.0
    logp = np.log(counts[FIRST:] / counts[FIRST:].sum())
    loss = mean_loss(painter.model, painter.vocabulary.encode_batch(texts), [row.tolist() for row in tiles])
    truth = found.pixels / 255.0
    return DrawEvaluation(
        title=f"{title}, {len(texts):,} pictures, {painter.decoding.describe()}",
        outputs=[data_uri(picture) for picture in drawn],
        loss=loss,
        unigram=float(-logp[tiles - FIRST].mean()),
        error=float(np.square(drawn / 255.0 - truth).mean()),
        mean=float(np.square((train / 255.0).mean(0) - truth).mean()),
        right=judged(drawn, texts),
        ceiling=judged(painter.tiles.decode(tiles, painter.shape), texts).get("all", 0.0),
        seconds=seconds,
    )


def judged(pictures: np.ndarray, texts: Sequence[str]) -> dict[str, float]:
    """Share of pictures that show what generated captions ask for; empty for other captions."""
    asked = [read_caption(text) for text in texts]
    if not texts or any(one is None for one in asked):
        return {}
    seen = [recognise(picture) for picture in pictures]
    shares = {
        name: sum(
            one is not None and getattr(one, name) == getattr(want, name)
            for one, want in zip(seen, asked, strict=True)
        )
        / len(texts)
        for name in ("colour", "shape", "place")
    }
    return {**shares, "all": sum(a == b for a, b in zip(seen, asked, strict=True)) / len(texts)}
