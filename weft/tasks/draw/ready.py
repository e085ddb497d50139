"""Drawing, made ready: vocabulary, palette and shape of a run, and the pairs while it is trained.

Read next: predictor.py; tiles.py, the palette; evaluation.py.
"""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import nn

from weft.data.batching import ShuffledBatches
from weft.errors import DataError
from weft.models import Generator
from weft.tasks.draw.evaluation import DrawEvaluation, evaluate, judged
from weft.tasks.draw.predictor import Painter
from weft.tasks.draw.tiles import Tiles
from weft.tasks.inspection import Examples, Inspection
from weft.tasks.pictures.data import Captions
from weft.tasks.seq2seq.batch import PairBatch, collate_pairs
from weft.tasks.seq2seq.evaluation import loss_of_pairs
from weft.tasks.task import Pipeline, Split, Training
from weft.tasks.validation import Sample, Validation, samples_of
from weft.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from weft.tasks.draw.task import Draw

DRAWN = 64
"""Number of pictures that a validation draws; its loss is over all of them."""


class DrawTraining(Training):
    """The training pictures with their captions.

    Args:
        task: the recipe.
        vocabulary: of captions.
        tiles: the palette.
        train, valid: pictures of one shape.

    Attributes:
        numbers: [N, S] tile numbers of the training pictures.
        pairs: a caption's tokens with its picture's tiles.
    """

    def __init__(
        self, task: "Draw", vocabulary: Vocabulary, tiles: Tiles, train: Captions, valid: Captions
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
        """Batches of pairs in a new order each epoch."""
        return ShuffledBatches(len(self.pairs), self._data.batch_rows, seed)

    def collate(self, numbers: np.ndarray) -> PairBatch:
        chosen = [self.pairs[int(number)] for number in numbers]
        return collate_pairs([source for source, _ in chosen], [target for _, target in chosen])

    def validate(self, model: nn.Module) -> Validation:
        """Loss over all pictures; error and share right over the first ones."""
        assert isinstance(model, Generator)
        texts = [captions[0] for captions in self._valid.captions]
        tiles, shape = self._tiles.encode(self._valid.pixels), self._valid.pixels.shape[1:]
        painter = Painter(model, self._vocabulary, self._tiles, shape, self._task.decoding)
        sources = [row[: self._data.max_length] for row in self._vocabulary.encode_batch(texts)]
        drawn = np.stack(list(painter.draw(sources[:DRAWN])))
        truth = self._valid.pixels[:DRAWN]
        scores = {
            "loss": loss_of_pairs(model, sources, [row.tolist() for row in tiles]),
            "error": float(np.square(drawn / 255.0 - truth / 255.0).mean()),
        }
        right = judged(drawn, texts[:DRAWN])
        if right:
            scores["right"] = right["all"]
        shown = [
            Sample(texts[n], self._valid.names[n], "see weft predict RUN --plot DIR")
            for n in samples_of(len(drawn))
        ]
        return Validation(scores, shown)


class DrawPipeline(Pipeline):
    """Vocabulary, palette and shape of a run.

    Args:
        task: the recipe.
        vocabulary: of captions.
        tiles: the palette.
        shape: of a picture.
        training: the pictures; None unless prepared for training.
    """

    task: "Draw"

    def __init__(
        self,
        task: "Draw",
        vocabulary: Vocabulary,
        tiles: Tiles,
        shape: tuple[int, ...],
        training: DrawTraining | None = None,
    ) -> None:
        self.task = task
        self.training = training
        self.vocabulary = vocabulary
        self.tiles = tiles
        self.shape = shape

    def model(self) -> Generator:
        return self.task.model_config.build(len(self.vocabulary), len(self.tiles))

    def predictor(self, model: nn.Module, options: Mapping[str, Any] = {}) -> Painter:
        """The trained model; `predict(text)` returns a picture, [height, width, 3] uint8."""
        assert isinstance(model, Generator)
        decoding = self.task.decoding.with_options(options)
        return Painter(model, self.vocabulary, self.tiles, self.shape, decoding)

    def evaluate(
        self,
        model: nn.Module,
        *,
        split: Split = "test",
        data: Path | None = None,
        options: Mapping[str, Any] = {},
    ) -> DrawEvaluation:
        """Likelihood, error and share right; see Pipeline.evaluate. `data` is a captions file."""
        own = self.task.data
        found = drawable(own.load(split) if data is None else own.read(own.at(data)))
        if found.pixels.shape[1:] != self.shape:
            raise DataError(
                f"{data or split}: expected pictures of {self.shape}, as the model draws them, "
                f"got {found.pixels.shape[1:]}; rescale them"
            )
        train = None
        with suppress(DataError):
            train = drawable(own.load("train"))
        title = own.describe(split) if data is None else data.name
        painter = self.predictor(model, options)
        return evaluate(painter, found, train, max_length=own.max_length, title=title)

    def inspected(
        self, model: nn.Module, text: str | None, examples: Examples, options: Mapping[str, Any] = {}
    ) -> Inspection:
        from weft.tasks.draw.inspected import inspected

        return inspected(self, model, text, examples, options)


def drawable(found: Captions) -> Captions:
    """`found`, if its pictures are pixels.

    Raises:
        DataError: the pictures are features.
    """
    if found.pixels.dtype != np.uint8:
        raise DataError(f"{found.names[0]}: expected pictures to draw, got features")
    return found
