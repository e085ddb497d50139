"""Text to picture: a caption becomes a picture, drawn tile by tile in reading order.

The reverse of captioning: the source is words, the target is the numbers of tiles from a palette that is
learnt from the training pictures.
Read next: predictor.py, ../pictures/data.py; ../seq2seq/base.py.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from weft.data.batching import ShuffledBatches
from weft.data.shapes import read_caption
from weft.errors import DataError
from weft.metrics.accuracy import Accuracy
from weft.metrics.metric import ItemKind
from weft.metrics.numbers import Mse
from weft.models import Generator
from weft.search.offered import Decoding, Narrowing, Offer, SearchSettings, offers, options
from weft.tasks.draw.predictor import (
    DrawEvaluation,
    Painter,
    Tiles,
    evaluate,
    inspect_painting,
    labels_of,
    pixels_of,
)
from weft.tasks.evaluation import Sample, Validation, samples_of
from weft.tasks.inspection import Inspection
from weft.tasks.pictures.data import (
    CHECK_OPTIONS,
    Captions,
    DrawData,
    DrawModel,
    Pictures,
    check_captions,
    read_pictures,
)
from weft.tasks.pictures.pictures import read_shape, write_shape
from weft.tasks.seq2seq.base import Seq2SeqPipeline, Seq2SeqTask
from weft.tasks.seq2seq.encoding import PairBatch, collate_pairs
from weft.tasks.seq2seq.evaluation import loss_of_pairs
from weft.tasks.task import (
    EvaluationSettings,
    InspectionSettings,
    PredictExample,
    PredictionSettings,
    Progress,
    Scoring,
    Split,
    Training,
)
from weft.text.loading import load_vocabulary
from weft.text.vocabulary import Vocabulary

DRAWN = 64
"""Number of pictures that a validation draws; its loss is over all of them."""


@dataclass(frozen=True, kw_only=True)
class PaintingSettings(PredictionSettings):
    """What the user asks of pictures.

    Args:
        plot: folder for the pictures, which the command writes.
    """

    asks: ClassVar[Mapping[str, Offer]] = {
        name: one
        for name, one in options(SearchSettings).items()
        if name in ("beam", "seed", *offers(Narrowing))
    }
    plot: Path | None = None


@dataclass(frozen=True, kw_only=True)
class PaintingEvaluationSettings(EvaluationSettings):
    """What the user asks of the scores of pictures."""

    asks: ClassVar[Mapping[str, Offer]] = {"beam": options(SearchSettings)["beam"]}


class DrawTraining(Training):
    """The training pictures as numbers [N, S] of tiles, with their captions."""

    def __init__(
        self, task: "DrawTask", vocabulary: Vocabulary, tiles: Tiles, train: Captions, valid: Captions
    ) -> None:
        self._task = task
        self._data = task.data
        self._vocabulary = vocabulary
        self._tiles = tiles
        self._valid = valid
        self.numbers = tiles.encode(train.pixels)
        self.pairs = [
            (vocabulary.encode(caption)[: self._data.max_length], row.tolist())
            for row, captions in zip(self.numbers, train.captions, strict=True)
            for caption in captions
        ]

    def plan(self, seed: int) -> ShuffledBatches:
        return ShuffledBatches(len(self.pairs), self._data.batch_rows, seed)

    def collate(self, numbers: np.ndarray) -> PairBatch:
        chosen = [self.pairs[int(number)] for number in numbers]
        return collate_pairs([source for source, _ in chosen], [target for _, target in chosen])

    def validate(self, model: Generator) -> Validation:
        texts = [captions[0] for captions in self._valid.captions]
        tiles, shape = self._tiles.encode(self._valid.pixels), self._valid.pixels.shape[1:]
        how, most = self._task.decoding, self._data.max_length
        painter = Painter(model, self._vocabulary, self._tiles, shape, how, most)
        sources = painter._read(texts)
        drawn = np.stack(list(painter.draw(sources[:DRAWN])))
        compared = [pixels_of(drawn, self._valid.pixels[:DRAWN])]
        scores = {
            "loss": loss_of_pairs(model, sources, [row.tolist() for row in tiles])[0],
            "error": compared[0].value(Mse()),
        }
        if right := labels_of(drawn, texts[:DRAWN]):
            scores["right"] = right["all"].value(Accuracy())
            compared.append(right["all"])
        shown = [
            Sample(texts[n], self._valid.names[n], "see weft predict RUN --pictures DIR")
            for n in samples_of(len(drawn))
        ]
        return Validation(scores, shown, compared)


class DrawPipeline(Seq2SeqPipeline[Captions]):
    """Vocabulary, palette and shape of a run."""

    task: "DrawTask"

    def __init__(
        self, task: "DrawTask", vocabulary: Vocabulary, tiles: Tiles, shape: tuple[int, ...]
    ) -> None:
        super().__init__(task, vocabulary)
        self.vocabulary = vocabulary
        self.tiles = tiles
        self.shape = shape

    def rows(self) -> Mapping[str, Sequence[str]]:
        return {}

    def writes(self) -> None:
        """It writes tiles, no text."""

    def common(self) -> Mapping[str, object]:
        return {}

    def model(self) -> Generator:
        return self.task.model_config.build(len(self.vocabulary), len(self.tiles))

    def predictor(self, model: Generator, settings: PredictionSettings | None = None) -> Painter:
        """The trained model; `predict(text)` returns a picture, [height, width, 3] uint8."""
        decoding = self.decoding.with_settings(PaintingSettings.of(settings).searched())
        most = self.task.data.max_length
        return Painter(model, self.vocabulary, self.tiles, self.shape, decoding, most)

    def examples_of(self, split: Split, data: Path | None) -> Captions:
        return drawable(self.task.data.pictures_of(split, data, self.shape))

    def scores(self, model: Generator, examples: Captions, asked: Scoring) -> DrawEvaluation:
        own, train = self.task.data, None
        with suppress(DataError):
            train = drawable(own.load("train"))
        painter = self.predictor(model, PaintingSettings(search=asked.settings.search))
        return evaluate(painter, examples, train, title=asked.title(own))

    def inspection(self, model: Generator, settings: InspectionSettings) -> Inspection:
        return inspect_painting(self.predictor(model), settings.input())


def drawable(found: Captions) -> Captions:
    """`found`, if its pictures are pixels."""
    if found.pixels.dtype != np.uint8:
        raise DataError(f"{found.names[0]}: expected pictures to draw, got features")
    return found


class DrawTask(Seq2SeqTask):
    """Captions to pictures."""

    sections: ClassVar = {"data": DrawData, "model": DrawModel, "decoding": Decoding}
    prediction_settings: ClassVar = PaintingSettings
    evaluation_settings: ClassVar = PaintingEvaluationSettings
    keeps: ClassVar[Sequence[str]] = ("tokenizer.json", "pictures.json", "tiles.npy")
    check = staticmethod(check_captions)
    note: ClassVar[str] = (
        "loss is nats per tile, error the mean squared difference of the pixels (0 to 1) of drawn pictures "
        "from the true ones, right the share of generated shapes whose colour, shape and place are as "
        "asked, by the nearest template."
    )
    evaluation: ClassVar = DrawEvaluation
    check_options: ClassVar = CHECK_OPTIONS
    better: ClassVar = {"loss": "lower", "error": "lower", "right": "higher"}

    data: DrawData
    model_config: DrawModel

    def evaluation_offers(self, split: Split, data: Path | None) -> tuple[ItemKind, ...]:
        """Labels too, if each caption is one of a generated shape."""
        found = self.data.find(split) if data is None else self.data.at(data)
        known = all(read_caption(one.captions[0]) is not None for one in found)
        return self.evaluation.offers if known else ("nats", "numbers")

    @property
    def validation_offers(self) -> tuple[ItemKind, ...]:
        """Only of generated captions is it known what a picture should show."""
        return ("numbers",) if self.data.generated is None else ("numbers", "labels")

    def about(self) -> str:
        return f"pictures for captions of {self.data.describe('train')}"

    def predict_example(self, sources: Sequence[str]) -> PredictExample | None:
        found = super().predict_example(sources)
        return found and found._replace(words=("--pictures", "pictures", "--output", "pictures.txt"))

    def small_model(self) -> Generator:
        return self.model_config.build(11, 13)

    def small_batch(self) -> PairBatch:
        return collate_pairs([[5, 6, 7], [8]], [[5, 6, 7, 8], [9, 10, 11, 12]])

    def read(self, progress: Progress) -> Pictures:
        found = read_pictures(self.data, progress)
        return Pictures(drawable(found.train), drawable(found.valid))

    def learn(self, corpus: Pictures, run: Path, progress: Progress) -> None:
        train = corpus.train
        progress("learning the palette", 0, None)
        write_shape(run, train.pixels.shape[1:])
        Tiles.learn(train.pixels, self.data.tile, self.data.tiles).save(run)
        texts = [caption for captions in train.captions for caption in captions]
        self.data.vocabulary.learn(texts).save(self.saved(run))

    def open(self, run: Path) -> DrawPipeline:
        shape, _ = read_shape(run)
        return DrawPipeline(self, load_vocabulary(self.saved(run)), Tiles.load(run), shape)

    def training(
        self, corpus: Pictures, pipeline: DrawPipeline, run: Path, progress: Progress
    ) -> DrawTraining:
        tiles, shape = pipeline.tiles, pipeline.shape
        training = DrawTraining(self, pipeline.vocabulary, tiles, *corpus)
        numbers = training.numbers
        lost = np.square(tiles.decode(numbers, shape) / 255.0 - corpus.train.pixels / 255.0).mean()
        progress(
            f"training pairs: {len(training.pairs):,} of {len(numbers):,} pictures, {numbers.shape[1]} tiles "
            f"each of {len(tiles.patterns):,} (squared error of the palette alone {lost:.5f})",
            0,
            0,
        )
        return training
