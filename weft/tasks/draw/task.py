"""M16, text to picture: a caption becomes a picture, written tile by tile in the order of reading.

The captioner turned round: the source is words, the target is numbers of a palette learnt from the training
pictures. Read next: tiles.py, predictor.py, ../shared/pictures/model.py.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Literal

import numpy as np
from torch import nn

from weft.data.images import data_uri
from weft.data.lines import read_lines
from weft.data.report import Report
from weft.errors import DataError, WeftError, within
from weft.models import Generator
from weft.nn.heads.head import Loss
from weft.tasks.draw.evaluation import DrawEvaluation, evaluate, judged
from weft.tasks.draw.predictor import Painter
from weft.tasks.draw.tiles import Tiles
from weft.tasks.each import each, place
from weft.tasks.ready import SPLITS, Ready, Split
from weft.tasks.shared.pictures.batch import Order
from weft.tasks.shared.pictures.check import check_captions
from weft.tasks.shared.pictures.data import Captions, DrawData
from weft.tasks.shared.pictures.model import DrawModel
from weft.tasks.shared.pictures.shape import read_shape, write_shape
from weft.tasks.shared.writing.batch import PairBatch, collate_pairs
from weft.tasks.shared.writing.decoding import Decoding
from weft.tasks.shared.writing.evaluation import loss_of_pairs
from weft.tasks.task import Progress
from weft.tasks.validation import Sample, Validation, samples_of
from weft.tasks.whole import Answer, Whole, unanswered
from weft.text.vocabulary import Vocabulary

DRAWN = 64
"""Pictures that a validation draws; the loss is over all."""


class Draw(Whole):
    """Captions to pictures.

    Args:
        data: where pictures and captions come from.
        model: what reads and what writes.
        decoding: how a picture is found: by chance with a temperature, or the likeliest one.
    """

    sections: ClassVar[Mapping[str, type]] = {"data": DrawData, "model": DrawModel, "decoding": Decoding}
    options: ClassVar[Mapping[str, Sequence[str]]] = {
        "predict": ("beam", "sample", "temperature", "top_k", "top_p", "seed", "plot"),
        "evaluate": ("beam",),
    }
    keeps: ClassVar[Sequence[str]] = ("tokenizer.json", "pictures.json", "tiles.npy")
    note: ClassVar[str] = (
        "loss is nats a tile, error the mean squared difference of the pixels (0 to 1) of drawn pictures "
        "from the true ones, right the share of generated shapes whose colour, shape and place are as "
        "asked, by the nearest template."
    )
    evaluation: ClassVar = DrawEvaluation
    better: ClassVar[Mapping[str, Literal["higher", "lower"]]] = {
        "loss": "lower",
        "error": "lower",
        "right": "higher",
    }

    def __init__(self, *, data: DrawData, model: DrawModel, decoding: Decoding) -> None:
        self.data = data
        self.parts = model
        self.decoding = decoding
        self.vocabulary: Vocabulary
        self.tiles: Tiles
        self.shape: tuple[int, ...]
        self._pairs: list[tuple[list[int], list[int]]]
        self._valid: Captions

    def about(self) -> str:
        """The pictures."""
        return f"pictures for captions of {self.data.describe('train')}"

    def has(self, split: Split) -> bool:
        """See Task.has."""
        return self.data.has(split)

    def check_ready(self) -> None:
        """See that the parts fit together, and that every picture that a caption names is there."""
        with within("model"):
            self.parts.build(5, 7)
        for split in SPLITS:
            if self.data.has(split):
                self.data.find(split)

    def rehearse(self) -> Loss:
        """Two captions of three words and one, with pictures of four tiles."""
        return self.parts.build(11, 13).loss(collate_pairs([[5, 6, 7], [8]], [[5, 6, 7, 8], [9, 10, 11, 12]]))

    def prepare(self, run: Path, progress: Progress) -> Ready:
        """Read the pictures; learn vocabulary and palette unless the run has them."""
        progress("reading pictures", 0, None)
        train, self._valid = self._pictures(self.data.load("train")), self._pictures(self.data.load("valid"))
        if train.pixels.shape[1:] != self._valid.pixels.shape[1:]:
            raise DataError(
                f"{self.data.describe('valid')}: expected pictures of {train.pixels.shape[1:]}, "
                "as in training, "
                f"got {self._valid.pixels.shape[1:]}; rescale them all, for example with data.size: 24"
            )
        if not (run / "tokenizer.json").exists():
            progress("learning the palette", 0, None)
            write_shape(run, train.pixels.shape[1:])
            Tiles.learn(train.pixels, self.data.tile, self.data.tiles).save(run)
            texts = [caption for captions in train.captions for caption in captions]
            self.data.vocabulary.learn(texts).save(run / "tokenizer.json")
        self.open(run)
        tiles = self.tiles.encode(train.pixels)
        self._pairs = [
            (self.vocabulary.encode(caption)[: self.data.max_length], row.tolist())
            for row, captions in zip(tiles, train.captions, strict=True)
            for caption in captions
        ]
        lost = np.square(self.tiles.decode(tiles, self.shape) / 255.0 - train.pixels / 255.0).mean()
        progress(
            f"training pairs: {len(self._pairs):,} of {len(tiles):,} pictures, {tiles.shape[1]} tiles each "
            f"of {len(self.tiles.patterns):,} (squared error of the palette alone {lost:.5f})",
            0,
            0,
        )
        return self

    def open(self, run: Path) -> Ready:
        """Read vocabulary, palette and shape."""
        self.vocabulary = Vocabulary.load(run / "tokenizer.json")
        self.tiles = Tiles.load(run)
        self.shape, _ = read_shape(run)
        return self

    def model(self) -> Generator:
        """A new model."""
        return self.parts.build(len(self.vocabulary), len(self.tiles))

    def plan(self, seed: int) -> Order:
        """Batches of the training pairs."""
        return Order(len(self._pairs), self.data.batch_rows, seed)

    def collate(self, numbers: np.ndarray) -> PairBatch:
        """Training pairs by number."""
        chosen = [self._pairs[int(number)] for number in numbers]
        return collate_pairs([source for source, _ in chosen], [target for _, target in chosen])

    def validate(self, model: nn.Module) -> Validation:
        """Loss over all, error and what is right of the first pictures."""
        assert isinstance(model, Generator)
        texts = [captions[0] for captions in self._valid.captions]
        tiles = self.tiles.encode(self._valid.pixels)
        drawn = np.stack(list(self.predictor(model).draw(texts[:DRAWN])))
        truth = self._valid.pixels[:DRAWN]
        scores = {
            "loss": loss_of_pairs(
                model, self.vocabulary.encode_batch(texts), [row.tolist() for row in tiles]
            ),
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

    def predictor(self, model: nn.Module, decoding: Decoding | None = None) -> Painter:
        """The trained model at work: `predict(text)` answers with a picture, [height, width, 3] uint8."""
        assert isinstance(model, Generator)
        return Painter(model, self.vocabulary, self.tiles, self.shape, decoding or self.decoding)

    def answers(
        self, model: nn.Module, source: Path | BinaryIO, options: Mapping[str, Any]
    ) -> Iterator[Answer]:
        """A picture for each line, as a data URI; `--plot DIR` makes files and a sheet of them."""
        painter = self.predictor(model, self.decoding.asked(options))
        texts = list(read_lines(source))
        rows, chance = painter.decoding.batch_rows, painter.chance()
        parts = (texts[at : at + rows] for at in range(0, len(texts), rows))
        drawn = (one for part in parts for one in each(part, lambda some: painter.draw(some, chance)))
        for number, (text, picture) in enumerate(zip(texts, drawn, strict=True), 1):
            if isinstance(picture, WeftError):
                yield unanswered(place(source, number), picture)
            else:
                yield Answer(data_uri(picture), (text, picture))

    def evaluate(
        self,
        model: nn.Module,
        *,
        split: Split = "test",
        data: Path | None = None,
        options: Mapping[str, Any] = {},
    ) -> DrawEvaluation:
        """Likelihood, error and what is right; see Task.evaluate. `data` is a captions file."""
        found = self._pictures(self.data.load(split) if data is None else self.data.read(self.data.at(data)))
        if found.pixels.shape[1:] != self.shape:
            raise DataError(
                f"{data or split}: expected pictures of {self.shape}, as the model draws them, "
                f"got {found.pixels.shape[1:]}; rescale them"
            )
        train = None
        with suppress(DataError):
            train = self._pictures(self.data.load("train"))
        title = self.data.describe(split) if data is None else data.name
        return evaluate(self.predictor(model, self.decoding.asked(options)), found, train, title=title)

    @classmethod
    def check(cls, files: Sequence[Path]) -> Report:
        """Captions and the pictures they name: see pictures/check.py."""
        return check_captions(files)

    def _pictures(self, found: Captions) -> Captions:
        if found.pixels.dtype != np.uint8:
            raise DataError(f"{found.names[0]}: expected pictures to draw, got features")
        return found
