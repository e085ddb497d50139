"""A masked language model (BERT's first task): words predicted from the context on both sides.

Read next: model.py, ready.py, predictor.py.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal

from weft.data.check import check
from weft.data.report import Report
from weft.errors import CheckpointError, within
from weft.nn.heads.head import Loss
from weft.tasks.masked.model import MaskedModel, hide
from weft.tasks.masked.ready import MaskedPipeline, MaskedTraining, read
from weft.tasks.running_text import sentences as text
from weft.tasks.running_text.data import ProseData
from weft.tasks.running_text.evaluation import ContextEvaluation
from weft.tasks.task import SPLITS, Progress, Split, Task
from weft.text.loading import load_vocabulary

VOCABULARY = "tokenizer.json"


class MaskedTask(Task):
    """A model that fills gaps, from running text.

    Args:
        data: where text comes from; lines by themselves, cut at `length` tokens.
        model: what reads them.
    """

    sections: ClassVar[Mapping[str, type]] = {"data": ProseData, "model": MaskedModel}
    evaluation: ClassVar = ContextEvaluation
    better: ClassVar[Mapping[str, Literal["higher", "lower"]]] = {"loss": "lower", "accuracy": "higher"}
    options: ClassVar[Mapping[str, Sequence[str]]] = {"predict": ("nbest", "scores")}
    note: ClassVar[str] = (
        "loss (in nats) and accuracy are of 15 % of the validation tokens, always the same ones; as in "
        "training 80 % of them are masked, 10 % replaced, 10 % left as they are."
    )

    def __init__(self, *, data: ProseData, model: MaskedModel) -> None:
        self.data = data
        self.model_config = model

    def about(self) -> str:
        """The text."""
        return f"masked {self.data.vocabulary.kind} tokens of {self.data.describe('train')}"

    def has(self, split: Split) -> bool:
        return self.data.has(split)

    def check_ready(self) -> None:
        """Check that the files exist and the settings fit."""
        text.check(self.data, words=False)
        with within("model"):
            self.rehearse()
        for split in SPLITS:
            if self.data.has(split):
                self.data.open(split)

    def rehearse(self) -> Loss:
        """Two lines of a vocabulary of 19."""
        return self.model_config.build(19).loss(hide([[5, 6, 7], [8]], 19, share=0.5, seed=[1]))

    def prepare(self, run: Path, progress: Progress) -> MaskedPipeline:
        """Learn the vocabulary, unless the run has one, and read the text."""
        if not (run / VOCABULARY).exists():
            progress("learning the vocabulary", 0, None)
            self.data.vocabulary.learn(self.data.open("train")).save(run / VOCABULARY)
        vocabulary = self.open(run).vocabulary
        progress("reading the text", 0, None)
        train, valid = (read(vocabulary, self.data.open(s), self.data.length) for s in ("train", "valid"))
        progress(f"{sum(map(len, train)):,} tokens of {len(vocabulary):,} kinds", 0, 0)
        training = MaskedTraining(self.data, self.model_config.share, vocabulary, train, valid)
        return MaskedPipeline(self, vocabulary, training=training)

    def open(self, run: Path) -> MaskedPipeline:
        """Read the vocabulary of the run."""
        if not (run / VOCABULARY).exists():
            raise CheckpointError(
                f"{run / VOCABULARY}: is missing; this is not a run directory, or training has not started"
            )
        return MaskedPipeline(self, load_vocabulary(run / VOCABULARY))

    @classmethod
    def check(cls, files: Sequence[Path]) -> Report:
        """Check plain text; see weft/data/check.py."""
        return check(*files, pairs=False)
