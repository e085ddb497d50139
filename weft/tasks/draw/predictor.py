"""A trained model that draws at work: captions in, pictures out; and how good they are, beside baselines."""

import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch

from weft.data.images import data_uri
from weft.data.shapes import read_caption, recognise
from weft.errors import ConfigError
from weft.metrics.means import mean_of, ratio
from weft.metrics.scored import Scored, as_json, fingerprint, report
from weft.models import Generator
from weft.tasks.draw.tiles import FIRST, Tiles
from weft.tasks.shared.pictures.batch import parts
from weft.tasks.shared.pictures.data import Captions
from weft.tasks.shared.writing.batch import collate_pairs, pad
from weft.tasks.shared.writing.decoding import Decoding
from weft.tasks.shared.writing.scoring import scores_of
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


class DrawEvaluation(NamedTuple):
    """Pictures drawn for captions, and all that is known of them."""

    title: str
    outputs: list[str]  # each picture as a data URI
    scored: list[Scored]  # nats a tile, error of a pixel; of generated shapes, what is right
    drawn: np.ndarray  # [N, height, width, 3] uint8
    truth: np.ndarray  # the same of the true pictures
    texts: list[str]
    ceiling: float | None  # right of the true pictures cut into tiles; 1 where the palette loses nothing
    seconds: float

    def text(self) -> str:
        """For a reader."""
        lines = [self.title, *report(self.scored)]
        if self.ceiling is not None:
            lines.append(f"  of the true pictures, cut into tiles, {self.ceiling:.4f} are right")
        lines.append(f"  {len(self.outputs) / max(self.seconds, 1e-9):,.1f} pictures/s, {self.seconds:.1f} s")
        return "\n".join(lines)

    def json(self) -> str:
        """For a program."""
        whole = {
            "title": self.title,
            "scores": as_json(self.scored),
            "ceiling": self.ceiling,
            "outputs": len(self.outputs),
            "seconds": self.seconds,
        }
        return json.dumps(whole, indent=1) + "\n"


def evaluate(painter: Painter, found: Captions, train: Captions | None, *, title: str) -> DrawEvaluation:
    """Draw the first caption of each picture and score.

    Args:
        painter: at work.
        found: pictures and captions.
        train: training pictures, for the baselines; None where they are gone, then these are taken.
        title: which data.
    """
    texts = [captions[0] for captions in found.captions]
    begun = time.perf_counter()
    drawn = np.stack(list(painter.draw(texts)))
    seconds = time.perf_counter() - begun
    known = found if train is None else train
    tiles = painter.tiles.encode(found.pixels)
    counts = np.bincount(painter.tiles.encode(known.pixels).ravel(), minlength=len(painter.tiles)) + 1.0
    frequency = -np.log(counts[FIRST:] / counts[FIRST:].sum())[tiles - FIRST]  # [N, tiles] nats
    sources = painter.vocabulary.encode_batch(texts)
    logp = scores_of(
        painter.model,
        [row.tolist() for row in tiles],
        lambda numbers, rows: collate_pairs([sources[n] for n in numbers], rows),
    )
    nats, written = -np.array(logp).T
    truth, items = found.pixels / 255.0, fingerprint(texts)
    away = np.square(drawn / 255.0 - truth).reshape(len(drawn), -1).mean(1)
    mean = float(np.square((known.pixels / 255.0).mean(0) - truth).mean())
    tile = ratio("nats a tile", "unit:tile of the true pictures, <eos> counted", higher_is_better=False)
    error = ratio("squared error of a pixel", "channels from 0 to 1", higher_is_better=False)
    lowest = {"tiles by frequency": float(frequency.mean())}
    scores = [
        mean_of(tile, nats, -written, baselines=lowest, items=items),
        mean_of(error, away, baselines={"the mean picture": mean}, items=items),
        *_right(drawn, texts, [captions[0] for captions in known.captions], items),
    ]
    ceiling = judged(painter.tiles.decode(tiles, painter.shape), texts).get("all")
    return DrawEvaluation(
        title=f"{title}, {len(texts):,} pictures, {painter.decoding.describe()}",
        outputs=[data_uri(picture) for picture in drawn],
        scored=scores,
        drawn=drawn,
        truth=found.pixels,
        texts=texts,
        ceiling=ceiling,
        seconds=seconds,
    )


def _right(drawn: np.ndarray, texts: Sequence[str], known: Sequence[str], items: str) -> list[Scored]:
    """Of generated shapes the share with what was asked, beside always drawing what is most often asked."""
    hits = _hits(drawn, texts)
    often = [read_caption(text) for text in known]
    found = []
    for name, right in hits.items():
        asked = Counter(one if name == "all" else getattr(one, name) for one in often)
        usual = asked.most_common(1)[0][0]
        wanted = [read_caption(text) for text in texts]
        share = float(np.mean([(one if name == "all" else getattr(one, name)) == usual for one in wanted]))
        metric = ratio(f"{name} right", "by the nearest template", higher_is_better=True)
        found.append(mean_of(metric, right, baselines={"always the most frequent": share}, items=items))
    return found


def judged(pictures: np.ndarray, texts: Sequence[str]) -> dict[str, float]:
    """Share of pictures that show what generated captions ask for; empty for other captions."""
    return {name: float(right.mean()) for name, right in _hits(pictures, texts).items()}


def _hits(pictures: np.ndarray, texts: Sequence[str]) -> dict[str, np.ndarray]:
    """Which pictures [N] show the colour, shape and place that was asked for, and all of them."""
    asked = [read_caption(text) for text in texts]
    if not texts or any(one is None for one in asked):
        return {}
    pairs = list(zip([recognise(picture) for picture in pictures], asked, strict=True))
    hits = {
        name: np.array([one is not None and getattr(one, name) == getattr(want, name) for one, want in pairs])
        for name in ("colour", "shape", "place")
    }
    return {**hits, "all": np.array([one == want for one, want in pairs])}
