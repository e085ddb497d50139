"""Scores of drawn pictures, next to baselines."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from weft.data.images import data_uri
from weft.data.shapes import read_caption, recognise
from weft.metrics.means import mean_of, ratio
from weft.metrics.scored import ScoreWithBaselines, fingerprint
from weft.tasks.draw.predictor import Painter
from weft.tasks.draw.tiles import FIRST
from weft.tasks.evaluation import Evaluation
from weft.tasks.pictures.data import Captions
from weft.tasks.seq2seq.encoding import collate_pairs
from weft.tasks.seq2seq.evaluation import scores_of
from weft.wording import plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class DrawEvaluation(Evaluation):
    """Pictures drawn for captions, and their scores."""

    title: str
    outputs: list[str]  # each picture as a data URI
    scores: list[
        ScoreWithBaselines
    ]  # nats per tile, error per pixel; for generated shapes also the share right
    drawn: np.ndarray  # [N, height, width, 3] uint8
    truth: np.ndarray  # the true pictures, in the same form
    texts: list[str]
    ceiling: float | None  # share right of the true pictures cut into tiles; 1 if the palette is lossless
    seconds: float
    shows: ClassVar[str] = "true and drawn pictures"

    def details(self) -> list[str]:
        """The best score that the palette allows, and the speed."""
        lines = []
        if self.ceiling is not None:
            lines.append(f"  of the true pictures, cut into tiles, {self.ceiling:.4f} are right")
        lines.append(f"  {len(self.outputs) / max(self.seconds, 1e-9):,.1f} pictures/s, {self.seconds:.1f} s")
        return lines

    def facts(self) -> dict[str, Any]:
        """The same values and the number of pictures."""
        return {"ceiling": self.ceiling, "seconds": self.seconds}

    def figure(self, name: str) -> "Figure":
        """A column for each of the first captions: the true picture above, the drawn one below."""
        from weft.figures.sheets import true_and_drawn  # imports matplotlib

        return true_and_drawn(self.truth, self.drawn, self.texts, f"{name}: {self.title}")


def evaluate(
    painter: Painter, found: Captions, train: Captions | None, *, max_length: int, title: str
) -> DrawEvaluation:
    """Draw the first caption of each picture and score.

    Args:
        painter: with the trained model.
        found: pictures and captions.
        train: training pictures, for the baselines; None uses the pictures in `found`.
        max_length: tokens of a caption that are read, as in training.
        title: names the data.
    """
    texts = [captions[0] for captions in found.captions]
    sources = [row[:max_length] for row in painter.vocabulary.encode_batch(texts)]
    begun = time.perf_counter()
    drawn = np.stack(list(painter.draw(sources)))
    seconds = time.perf_counter() - begun
    known = found if train is None else train
    tiles = painter.tiles.encode(found.pixels)
    counts = np.bincount(painter.tiles.encode(known.pixels).ravel(), minlength=len(painter.tiles)) + 1.0
    frequency = -np.log(counts[FIRST:] / counts[FIRST:].sum())[tiles - FIRST]  # [N, tiles] nats
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
        title=f"{title}, {plural(len(texts), 'picture')}, {painter.decoding.describe()}",
        outputs=[data_uri(picture) for picture in drawn],
        scores=scores,
        drawn=drawn,
        truth=found.pixels,
        texts=texts,
        ceiling=ceiling,
        seconds=seconds,
    )


def _right(
    drawn: np.ndarray, texts: Sequence[str], known: Sequence[str], items: str
) -> list[ScoreWithBaselines]:
    """Share of generated shapes as the caption says, next to always drawing the most frequent one."""
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
    """Share of pictures that match their generated captions; empty for other captions."""
    return {name: float(right.mean()) for name, right in _hits(pictures, texts).items()}


def _hits(pictures: np.ndarray, texts: Sequence[str]) -> dict[str, np.ndarray]:
    """Whether each picture [N] has the colour, the shape and the place of its caption, and all three."""
    asked = [read_caption(text) for text in texts]
    if not texts or any(one is None for one in asked):
        return {}
    pairs = list(zip([recognise(picture) for picture in pictures], asked, strict=True))
    hits = {
        name: np.array([one is not None and getattr(one, name) == getattr(want, name) for one, want in pairs])
        for name in ("colour", "shape", "place")
    }
    return {**hits, "all": np.array([one == want for one, want in pairs])}
