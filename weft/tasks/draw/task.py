"""Text to picture: a caption becomes a picture, drawn tile by tile in reading order.

The reverse of captioning: the source is words, the target is the numbers of tiles from a palette that is
learnt from the training pictures. Read next: tiles.py, predictor.py, ../pictures/model.py.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from weft.data.report import Report
from weft.errors import DataError, within
from weft.nn.heads.head import Loss
from weft.tasks.draw.evaluation import DrawEvaluation
from weft.tasks.draw.ready import DrawPipeline, DrawTraining, drawable
from weft.tasks.draw.tiles import Tiles
from weft.tasks.pictures.check import check_captions
from weft.tasks.pictures.data import DrawData
from weft.tasks.pictures.model import DrawModel
from weft.tasks.pictures.pictures import read_shape, write_shape
from weft.tasks.seq2seq.batch import collate_pairs
from weft.tasks.seq2seq.decoding import Decoding
from weft.tasks.task import SPLITS, Progress, Split, Task
from weft.text.loading import load_vocabulary
from weft.text.vocabulary import Vocabulary


class Draw(Task):
    """Captions to pictures.

    Args:
        data: the source of pictures and captions.
        model: encoder and decoder.
        decoding: sampling with a temperature, or search for the likeliest picture.
    """

    sections: ClassVar[Mapping[str, type]] = {"data": DrawData, "model": DrawModel, "decoding": Decoding}
    options: ClassVar[Mapping[str, Sequence[str]]] = {
        "predict": ("beam", "sample", "temperature", "top_k", "top_p", "seed", "plot"),
        "evaluate": ("beam",),
    }
    keeps: ClassVar[Sequence[str]] = ("tokenizer.json", "pictures.json", "tiles.npy")
    note: ClassVar[str] = (
        "loss is nats per tile, error the mean squared difference of the pixels (0 to 1) of drawn pictures "
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
        self.model_config = model
        self.decoding = decoding

    def about(self) -> str:
        """The pictures."""
        return f"pictures for captions of {self.data.describe('train')}"

    def has(self, split: Split) -> bool:
        return self.data.has(split)

    def check_ready(self) -> None:
        """Check that the parts fit together, and that every picture named by a caption exists."""
        with within("model"):
            self.model_config.build(5, 7)
        for split in SPLITS:
            if self.data.has(split):
                self.data.find(split)

    def rehearse(self) -> Loss:
        """Two captions, of three words and one word, with pictures of four tiles."""
        return self.model_config.build(11, 13).loss(
            collate_pairs([[5, 6, 7], [8]], [[5, 6, 7, 8], [9, 10, 11, 12]])
        )

    def prepare(self, run: Path, progress: Progress) -> DrawPipeline:
        """Read the pictures; learn the vocabulary and the palette unless the run has them."""
        progress("reading pictures", 0, None)
        train, valid = drawable(self.data.load("train")), drawable(self.data.load("valid"))
        if train.pixels.shape[1:] != valid.pixels.shape[1:]:
            raise DataError(
                f"{self.data.describe('valid')}: expected pictures of {train.pixels.shape[1:]}, as in "
                f"training, got {valid.pixels.shape[1:]}; rescale them all, for example with data.size: 24"
            )
        if not (run / "tokenizer.json").exists():
            progress("learning the palette", 0, None)
            write_shape(run, train.pixels.shape[1:])
            Tiles.learn(train.pixels, self.data.tile, self.data.tiles).save(run)
            texts = [caption for captions in train.captions for caption in captions]
            self.data.vocabulary.learn(texts).save(run / "tokenizer.json")
        vocabulary, tiles, shape = _kept(run)
        training = DrawTraining(self, vocabulary, tiles, train, valid)
        numbers = training.numbers
        lost = np.square(tiles.decode(numbers, shape) / 255.0 - train.pixels / 255.0).mean()
        progress(
            f"training pairs: {len(training.pairs):,} of {len(numbers):,} pictures, {numbers.shape[1]} tiles "
            f"each of {len(tiles.patterns):,} (squared error of the palette alone {lost:.5f})",
            0,
            0,
        )
        return DrawPipeline(self, vocabulary, tiles, shape, training)

    def open(self, run: Path) -> DrawPipeline:
        """Read vocabulary, palette and shape."""
        return DrawPipeline(self, *_kept(run))

    @classmethod
    def check(cls, files: Sequence[Path]) -> Report:
        """Check captions and the pictures they name; see ../pictures/check.py."""
        return check_captions(files)


def _kept(run: Path) -> tuple[Vocabulary, Tiles, tuple[int, ...]]:
    """Vocabulary, palette and shape of a run."""
    shape, _ = read_shape(run)
    return load_vocabulary(run / "tokenizer.json"), Tiles.load(run), shape
