"""A trained model that draws: captions in, pictures out; and its scores, next to baselines.

A picture is a sequence of tiles from a palette, which a decoder writes instead of words: a palette of tiles
of one pixel holds colours, one of larger tiles small patterns.
"""

import io
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from PIL import Image

from weft.data.images import CAPTIONED, data_uri, read_array
from weft.data.shapes import Scene, read_caption, recognise
from weft.errors import CheckpointError, ConfigError, DataError
from weft.figures.records import Figure
from weft.metrics.accuracy import Accuracy
from weft.metrics.metric import ItemKind
from weft.metrics.numbers import Mse
from weft.metrics.scored import ComparedOutputs, mean_of, ratio
from weft.models import Generator
from weft.search.hypotheses import to_lists
from weft.search.offered import Decoding
from weft.search.trace import Trace
from weft.tasks import predictor
from weft.tasks.evaluation import Evaluation, unanswered
from weft.tasks.inspection import Inspection, PictureWeights, ShownVectors, places, table_of
from weft.tasks.pictures.data import Captions
from weft.tasks.pictures.pictures import parts
from weft.tasks.predictor import Answer, Json, Place, Raw, as_text, predicted
from weft.tasks.seq2seq.batch_search import BatchSearch, pad
from weft.tasks.seq2seq.encoding import collate_pairs
from weft.tasks.seq2seq.evaluation import scores_of
from weft.tasks.seq2seq.inspection import decoded
from weft.text.pieces import SPECIALS
from weft.text.vocabulary import EOS, PAD, SOS, UNK, Vocabulary
from weft.wording import plural

FIRST = len(SPECIALS)
"""The number of the first tile, after padding, unknown, start and end."""

ROUNDS = 8
CHUNK = 4096  # tiles compared at once


class Tiles:
    """A palette [K, P, P, 3] uint8."""

    def __init__(self, patterns: np.ndarray) -> None:
        self.patterns = patterns

    def __len__(self) -> int:
        """Number of symbols, with the special ones."""
        return FIRST + len(self.patterns)

    @classmethod
    def learn(cls, pictures: np.ndarray, tile: int, count: int) -> "Tiles":
        """All tiles of pictures [N, height, width, 3] if at most `count` differ, else the means of groups.

        k-means finds the groups; it starts from the most frequent tiles and weights them by frequency.
        """
        height, width = pictures.shape[1:3]
        if pictures.ndim != 4 or height % tile or width % tile:
            raise DataError(
                f"expected sides that are multiples of {tile} pixels, "
                f"got {' x '.join(map(str, pictures.shape[1:]))}; set data.size to a multiple of data.tile"
            )
        cut = _cut(pictures, tile).reshape(-1, tile * tile * 3)
        found, times = np.unique(cut, axis=0, return_counts=True)
        order = np.argsort(-times, kind="stable")
        found, times = found[order], times[order]
        centres = found[:count].astype(np.float64)
        if len(found) > count:
            for _ in range(ROUNDS):
                nearest = _nearest(found, centres)
                weight = np.bincount(nearest, times, count)
                for feature in range(found.shape[1]):
                    total = np.bincount(nearest, times * found[:, feature].astype(np.float64), count)
                    centres[:, feature] = np.where(
                        weight > 0, total / np.maximum(weight, 1), centres[:, feature]
                    )
        return cls(np.round(centres).astype(np.uint8).reshape(-1, tile, tile, 3))

    def encode(self, pictures: np.ndarray) -> np.ndarray:
        """[N, height, width, 3] to the numbers [N, S] of the nearest tiles, in reading order."""
        cut = _cut(pictures, self.patterns.shape[1])
        flat = cut.reshape(-1, self.patterns[0].size)
        known = self.patterns.reshape(len(self.patterns), -1).astype(np.float64)
        return FIRST + _nearest(flat, known).reshape(cut.shape[:2])

    def decode(self, numbers: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """[N, S] numbers to pictures [N, *shape]."""
        tile = self.patterns.shape[1]
        height, width = shape[0] // tile, shape[1] // tile
        placed = self.patterns[numbers - FIRST].reshape(-1, height, width, tile, tile, 3)
        return placed.swapaxes(2, 3).reshape(-1, height * tile, width * tile, 3)

    def save(self, run: Path) -> None:
        """Save the palette in a run."""
        np.save(run / "tiles.npy", self.patterns)

    @classmethod
    def load(cls, run: Path) -> "Tiles":
        """The palette of a run."""
        try:
            patterns = read_array(run / "tiles.npy")
            if patterns.ndim != 4 or patterns.dtype != np.uint8 or patterns.shape[3] != 3:
                raise ValueError("no palette")
        except ValueError:  # a DataError is one
            raise CheckpointError(f"{run / 'tiles.npy'}: missing or damaged; train the run again") from None
        return cls(patterns)


def _cut(pictures: np.ndarray, tile: int) -> np.ndarray:
    """[N, height, width, 3] to [N, S, tile, tile, 3]."""
    rows, height, width = pictures.shape[:3]
    placed = pictures.reshape(rows, height // tile, tile, width // tile, tile, 3)
    return placed.swapaxes(2, 3).reshape(rows, -1, tile, tile, 3)


def _nearest(flat: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """For each row of [M, F], the number of the nearest row of [K, F]."""
    square = np.square(centres).sum(1)
    found = np.empty(len(flat), np.int64)
    for at in range(0, len(flat), CHUNK):
        part = flat[at : at + CHUNK].astype(np.float64)
        found[at : at + CHUNK] = (square - 2 * part @ centres.T).argmin(1)
    return found


BEYOND = "(not drawn)"
"""Name of a step after the last place of the picture."""

LARGE = 192
"""A picture is enlarged until each side has at least this many pixels; each of its own pixels is a square."""


@dataclass(eq=False)
class DrawnPicture(Answer):
    """A drawn picture."""

    caption: str
    picture: np.ndarray  # [height, width, 3] uint8
    lost: str = ""  # what was not read of the caption, as text

    def text(self) -> str:
        return data_uri(self.picture)

    def json(self) -> Json:
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
        max_length: tokens of a caption that are read, as in training; 0 for all.

    Example:
        >>> from weft.tasks.draw.predictor import Tiles
        >>> from weft.tasks.pictures.data import DrawModel
        >>> from weft.search.offered import Decoding
        >>> from weft.text.vocabulary import Vocabulary
        >>> words = Vocabulary.train(["a cat sat"], kind="word", size=None)
        >>> tiles = Tiles(np.full((1, 2, 2, 3), 255, np.uint8))  # one white tile
        >>> model = DrawModel(size=16).build(len(words), len(tiles)).eval()
        >>> picture = Painter(model, words, tiles, (4, 6, 3), Decoding(search="greedy")).predict("a cat")
        >>> picture.shape, int(picture.min())  # [height, width, channels]
        ((4, 6, 3), 255)
    """

    draws = True
    linewise = False
    file_columns: ClassVar = CAPTIONED[:2]

    def __init__(
        self,
        model: Generator,
        vocabulary: Vocabulary,
        tiles: Tiles,
        shape: tuple[int, ...],
        decoding: Decoding,
        max_length: int = 0,
    ) -> None:
        if decoding.prefix or decoding.require or decoding.nbest > 1:
            name = "prefix" if decoding.prefix else "require" if decoding.require else "nbest"
            raise ConfigError(f"{name}: does not apply to pictures; leave it out")
        side = tiles.patterns.shape[1]
        self._places = (shape[0] // side) * (shape[1] // side)
        self.model, self.vocabulary, self._tiles, self._shape = model, vocabulary, tiles, shape
        self._max_length = max_length
        self.decoding = replace(
            decoding, max_ratio=0.0, max_extra=self._places + 1, min_length=self._places, no_repeat_ngram=0
        )
        self.window = self.piped = decoding.batch_rows
        self._search = BatchSearch([model], vocabulary, self.decoding, (PAD, UNK, SOS))
        self._random: torch.Generator = self._search.seeded()  # shared by all answers

    def parse(self, raw: Raw, place: Place) -> str:
        text = as_text(raw, place)
        if not text.strip():
            raise place.refuse("the caption is empty; write one")
        return text

    def lacking(self, value: str) -> list[str]:
        return self.vocabulary.alphabet.unknown(value)

    def answers(self, inputs: Sequence[str]) -> Iterator[Answer]:
        for caption, picture in zip(inputs, self.draw(self._read(inputs), self._random), strict=True):
            long = len(self.vocabulary.encode(caption)) > (self._max_length or math.inf)
            lost = f"the caption is read up to its first {self._max_length} tokens, as in training"
            yield DrawnPicture(caption, picture, lost if long else "")

    def _read(self, captions: Sequence[str]) -> list[list[int]]:
        return [row[: self._max_length or None] for row in self.vocabulary.encode_batch(list(captions))]

    def overview(self, answers: Sequence[Any]) -> "Figure | None":
        from weft.figures.sheets import picture_sheet  # imports matplotlib

        return picture_sheet([(answer.caption, answer.picture) for answer in answers])

    def value(self, answer: DrawnPicture) -> np.ndarray:
        """[height, width, 3] uint8."""
        return answer.picture

    def draw(
        self, captions: Sequence[list[int]], chance: torch.Generator | None = None
    ) -> Iterator[np.ndarray]:
        """A picture for the tokens of each caption; without `chance`, sampling starts from the seed."""
        chance = chance or self._search.seeded()
        for part in parts(len(captions), self.decoding.batch_rows):
            tokens, mask = pad([row or [UNK] for row in captions[part]])
            found = self._search(tokens, mask, chance=chance)
            numbers = found.tokens[:, 0, : self._places].cpu().numpy()
            yield from self._tiles.decode(np.maximum(numbers, FIRST), self._shape)


def inspect_painting(painter: Painter, text: str) -> Inspection:
    """What `weft inspect` shows of a caption: the picture as `weft predict` draws it; of a beam its tree."""
    words = painter._read([text])[0] or [UNK]
    trace = Trace() if painter.decoding.search == "beam" else None
    found = painter._search(*pad([words]), trace, painter._search.seeded())
    shown = decoded(
        painter.model,
        _Numbers(painter._tiles),
        found,
        trace,
        lambda tiles: collate_pairs([words], [tiles]),
        text=text,
        width=len(words),
    )
    numbers = np.maximum(np.array([to_lists(found, EOS)[0][0][: painter._places]]), FIRST)
    (picture,) = painter._tiles.decode(numbers, painter._shape)
    side = painter._tiles.patterns.shape[1]
    grid = painter._shape[0] // side, painter._shape[1] // side
    pieces = painter.vocabulary.pieces(words)
    where = places(grid)  # a step is named after the place it draws
    looks = []
    if shown.hypotheses[0].looks:
        weights = shown.hypotheses[0].looks[0].weights[: painter._places]
        looks = [(piece, weights[:, n].reshape(grid)) for n, piece in enumerate(pieces)]
    sure = np.array([one.prob for one in shown.choices[: painter._places]])
    looks.append(("(how sure each tile was)", sure.reshape(grid)))
    table = table_of(painter.model.source_embed, len(painter.vocabulary))
    every = painter.vocabulary.pieces(range(len(painter.vocabulary)))
    return replace(
        shown,
        answer=f"{grid[0]} x {grid[1]} tiles, log-probability {shown.hypotheses[0].logp:.2f}",
        source=pieces,
        target=[*shown.target[:1], *_placed(shown.target[1:], where)],
        hypotheses=[one._replace(pieces=_placed(one.pieces, where)) for one in shown.hypotheses],
        choices=[
            one._replace(given=where[n] if n < len(where) else BEYOND) for n, one in enumerate(shown.choices)
        ],
        chosen_what="each tile in reading order, given those before it",
        vectors=None if table is None else ShownVectors(every, table, words, pieces, None),
        picture=PictureWeights(picture, looks, "the tiles that looked at each word", drawn=True),
    )


def _placed(pieces: Sequence[str], where: list[str]) -> list[str]:
    """The pieces of a drawing, named by their places; the end symbol stays."""
    named = [*where, *[BEYOND] * (len(pieces) - len(where))]
    return [piece if piece == "</s>" else place for piece, place in zip(pieces, named, strict=False)]


class _Numbers:
    def __init__(self, tiles: Tiles) -> None:
        self.tiles = tiles

    def __len__(self) -> int:
        return len(self.tiles)

    def pieces(self, ids: Iterable[int]) -> list[str]:
        return ["</s>" if one == EOS else f"#{one - FIRST}" for one in ids]

    def decode(self, ids: Iterable[int]) -> str:
        return plural(len(list(ids)), "tile")


@dataclass(frozen=True)
class DrawEvaluation(Evaluation):
    """Pictures drawn for captions, and their scores."""

    drawn: np.ndarray  # [N, height, width, 3] uint8
    truth: np.ndarray  # the true pictures, in the same form
    texts: list[str]
    ceiling: float | None  # share right of the true pictures cut into tiles; 1 if the palette is lossless
    seconds: float
    shows: ClassVar[str] = "true and drawn pictures"
    offers: ClassVar[tuple[ItemKind, ...]] = ("nats", "numbers", "labels")

    def details(self) -> list[str]:
        """The best score that the palette allows, and the speed."""
        lines = []
        if self.ceiling is not None:
            lines.append(f"  of the true pictures, cut into tiles, {self.ceiling:.4f} are right")
        lines.append(f"  {len(self.outputs) / max(self.seconds, 1e-9):,.1f} pictures/s, {self.seconds:.1f} s")
        return lines

    def facts(self) -> dict[str, Any]:
        return {"ceiling": self.ceiling, "seconds": self.seconds}

    def figure(self, name: str) -> "Figure":
        """A column for each of the first captions: the true picture above, the drawn one below."""
        from weft.figures.sheets import true_and_drawn  # imports matplotlib

        return true_and_drawn(self.truth, self.drawn, self.texts, f"{name}: {self.title}")


def evaluate(painter: Painter, found: Captions, train: Captions | None, *, title: str) -> DrawEvaluation:
    """Draw the first caption of each picture and score."""
    known = found if train is None else train
    given = (
        painter.given(captions[0], Place(name))
        for name, captions in zip(found.names, found.captions, strict=True)
    )
    answers, wrong, seconds = predicted(painter, given, DrawnPicture).checked()
    drawn = np.stack([one.picture for one in answers if one is not None])
    texts = [one.caption for one in answers if one is not None]
    truth = found.pixels[[one is not None for one in answers]]
    sources, tiles = painter._read(texts), painter._tiles.encode(truth)
    counts = np.bincount(painter._tiles.encode(known.pixels).ravel(), minlength=len(painter._tiles)) + 1.0
    frequency = -np.log(counts[FIRST:] / counts[FIRST:].sum())[tiles - FIRST]  # [N, tiles] nats
    likely = scores_of(
        painter.model,
        [row.tolist() for row in tiles],
        lambda numbers, rows: collate_pairs([sources[n] for n in numbers], rows),
    )
    logp, tokens = np.array(likely).T
    # the number of tiles is known: frequencies pay nothing for <eos>
    lowest, about = {"tiles by frequency": frequency.sum(1)}, "unit:tile of the true pictures, <eos> counted"
    likelihood = ComparedOutputs(-logp, tokens, texts, lowest, "nats", about=about)
    pixels = pixels_of(drawn, truth, known.pixels)._replace(sources=texts)
    labels = labels_of(drawn, texts, [captions[0] for captions in known.captions])
    tile = ratio("nats a tile", about, higher_is_better=False)
    scores = [
        mean_of(tile, -logp, tokens, beside=lowest, items=likelihood.fingerprint()),
        pixels.scored(Mse()).renamed("squared error of a pixel"),
        *(one.scored(Accuracy()).counted("picture").renamed(f"{name} right") for name, one in labels.items()),
    ]
    ceiling = judged(painter._tiles.decode(tiles, painter._shape), texts).get("all")
    return DrawEvaluation(
        title=f"{title}, {plural(len(texts), 'picture')}, {painter.decoding.describe()}"
        f"{unanswered(wrong, 'left out')}",
        outputs=[data_uri(picture) for picture in drawn],
        scores=scores,
        compared=[likelihood, pixels, *([labels["all"]] if labels else [])],
        drawn=drawn,
        truth=truth,
        texts=texts,
        ceiling=ceiling,
        seconds=seconds,
        wrong=wrong,
    )


def pixels_of(drawn: np.ndarray, truth: np.ndarray, known: np.ndarray | None = None) -> ComparedOutputs:
    """Pixels [N, P] from 0 to 1, beside the mean of known pictures, if there are any."""
    own, true = (one.reshape(len(one), -1) / 255.0 for one in (drawn, truth))
    lowest = {}
    if known is not None:
        lowest["the mean picture"] = np.broadcast_to((known / 255.0).mean(0).ravel(), true.shape)
    return ComparedOutputs(own, true, None, lowest, "numbers", about="channels from 0 to 1")


def labels_of(
    drawn: np.ndarray, texts: Sequence[str], known: Sequence[str] = ()
) -> dict[str, ComparedOutputs]:
    """The colour, shape and place of drawn shapes [N, height, width, 3] by the nearest template, and all.

    Nothing of captions that are not those of generated shapes.
    """
    asked, often = ([read_caption(text) for text in each] for each in (texts, known))
    if not texts or any(one is None for one in asked):
        return {}
    seen, found = [recognise(picture) for picture in drawn], {}
    for name in ("colour", "shape", "place", "all"):
        said, wanted, usual = ([_label(one, name) for one in scenes] for scenes in (seen, asked, often))
        called = f"most frequent {'drawing' if name == 'all' else name}"
        lowest = {called: [Counter(usual).most_common(1)[0][0]] * len(said)} if usual else {}
        about = "by the nearest template"
        found[name] = ComparedOutputs(said, wanted, None, lowest, "labels", about=about)
    return found


def _label(scene: Scene | None, name: str) -> str:
    if scene is None:
        return ""
    return scene.caption if name == "all" else str(getattr(scene, name))


def judged(pictures: np.ndarray, texts: Sequence[str]) -> dict[str, float]:
    """Share of pictures that match their generated captions; empty for other captions."""
    return {name: one.value(Accuracy()) for name, one in labels_of(pictures, texts).items()}
