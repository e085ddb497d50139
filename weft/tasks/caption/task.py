"""Captioning: describes a picture in a sentence; each word attends to the picture.

Read next: ../pictures/data.py, ../pictures/model.py, predictor.py, evaluation.py.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from weft.data.report import Report
from weft.errors import DataError, within
from weft.nn.heads.head import Loss
from weft.nn.pictures.front import Front
from weft.tasks.caption.evaluation import CaptionEvaluation
from weft.tasks.caption.predictor import captioned
from weft.tasks.caption.ready import CaptionPipeline, CaptionTraining
from weft.tasks.pictures.check import check_captions
from weft.tasks.pictures.data import SIDE, CaptionData
from weft.tasks.pictures.model import CaptionModel
from weft.tasks.pictures.pictures import read_shape, write_shape
from weft.tasks.seq2seq.decoding import EVALUATED, PREDICTED, Decoding
from weft.tasks.task import SPLITS, Progress, Split, Task
from weft.text.loading import load_vocabulary
from weft.text.vocabulary import Vocabulary


class Caption(Task):
    """Pictures to captions.

    Args:
        data: the source of pictures and captions.
        model: encoder and decoder.
        decoding: search settings for the trained model; validation is greedy.
    """

    sections: ClassVar[Mapping[str, type]] = {
        "data": CaptionData,
        "model": CaptionModel,
        "decoding": Decoding,
    }
    options: ClassVar[Mapping[str, Sequence[str]]] = {
        "predict": (*PREDICTED, "coco"),
        "evaluate": EVALUATED,
    }
    keeps: ClassVar[Sequence[str]] = ("tokenizer.json", "pictures.json")
    note: ClassVar[str] = (
        "Exact is the share of captions that match a reference word for word; BLEU-4 and CIDEr-D are "
        "computed as COCO's evaluation does, on greedy output in lower case without punctuation."
    )
    evaluation: ClassVar = CaptionEvaluation
    better: ClassVar[Mapping[str, Literal["higher", "lower"]]] = {
        "loss": "lower",
        "exact": "higher",
        "bleu4": "higher",
        "cider": "higher",
    }

    def __init__(self, *, data: CaptionData, model: CaptionModel, decoding: Decoding) -> None:
        self.data = data
        self.model_config = model
        self.decoding = decoding

    def about(self) -> str:
        """The pictures."""
        return f"captions of {self.data.describe('train')}"

    def has(self, split: Split) -> bool:
        return self.data.has(split)

    def check_ready(self) -> None:
        """Check that the parts fit together, and that every picture named by a caption exists."""
        with within("model"):
            self.model_config.build(self._likely(), 5)
        for split in SPLITS:
            if self.data.has(split):
                self.data.find(split)

    def rehearse(self) -> Loss:
        """Two pictures, with captions of three words and one word."""
        shape = self._likely()
        model = self.model_config.build(shape, 11)
        assert isinstance(model.source_embed, Front)
        pixels = np.zeros((2, *shape), np.float32)
        return model.loss(captioned(pixels, [[5, 6, 7], [8]], model.source_embed.places))

    def prepare(self, run: Path, progress: Progress) -> CaptionPipeline:
        """Read the pictures; learn the vocabulary unless the run has it."""
        progress("reading pictures", 0, None)
        train, valid = self.data.load("train"), self.data.load("valid")
        shape, other = train.pixels.shape[1:], valid.pixels.shape[1:]
        if shape != other:
            raise DataError(
                f"{self.data.describe('valid')}: expected pictures of {shape}, as in training, got {other}; "
                "rescale them all, for example with data.size: 32"
            )
        if not (run / "tokenizer.json").exists():
            write_shape(run, shape)
            texts = [caption for captions in train.captions for caption in captions]
            self.data.vocabulary.learn(texts).save(run / "tokenizer.json")
        vocabulary, shape = _kept(run)
        training = CaptionTraining(self, vocabulary, train, valid)
        progress(
            f"training captions: {training.count:,} of {len(train.names):,} pictures ({training.cut:,} cut "
            f"at {self.data.max_length} tokens), {len(vocabulary):,} tokens",
            0,
            0,
        )
        return CaptionPipeline(self, vocabulary, shape, training)

    def open(self, run: Path) -> CaptionPipeline:
        """Read the vocabulary and the shape of pictures."""
        return CaptionPipeline(self, *_kept(run))

    @classmethod
    def check(cls, files: Sequence[Path]) -> Report:
        """Check captions and the pictures they name; see ../pictures/check.py."""
        return check_captions(files)

    def _likely(self) -> tuple[int, ...]:
        """The shape of pictures before any is read."""
        side = self.data.size or SIDE
        return (side, side, 3)


def _kept(run: Path) -> tuple[Vocabulary, tuple[int, ...]]:
    """Vocabulary and shape of a run."""
    return load_vocabulary(run / "tokenizer.json"), read_shape(run)[0]
