"""M15, the synthetic memory problems: add two numbers far apart, or say symbols again after a delay.

What a network cannot hold over `length` steps it cannot solve, so they measure memory and nothing else.
Read next: ../data/memory.py, which makes the examples; model.py, evaluation.py.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Literal

import numpy as np
from torch import nn

from weft.data.lines import read_lines
from weft.errors import ConfigError, DataError, ShapeError, within
from weft.models import Predictor
from weft.nn.heads.head import Loss
from weft.tasks.each import place
from weft.tasks.memory.data import Fresh, MemoryData
from weft.tasks.memory.evaluation import MemoryEvaluation, evaluate, measure
from weft.tasks.memory.model import MemoryModel
from weft.tasks.memory.predictor import Rememberer
from weft.tasks.ready import Ready, Split
from weft.tasks.shared.labels.batch import LabelBatch
from weft.tasks.task import Progress
from weft.tasks.validation import Sample, Validation, samples_of
from weft.tasks.whole import Answer, Whole, unanswered


class MemoryTask(Whole):
    """Generated sequences to what is to be remembered of them.

    Args:
        data: which problem, and how long.
        model: what remembers.
    """

    sections: ClassVar[Mapping[str, type]] = {"data": MemoryData, "model": MemoryModel}
    linewise: ClassVar[bool] = True
    evaluation: ClassVar = MemoryEvaluation
    samples_readable: ClassVar[bool] = False
    better: ClassVar[Mapping[str, Literal["higher", "lower"]]] = {"loss": "lower", "accuracy": "higher"}
    note: ClassVar[str] = (
        "Of the adding problem loss is the mean squared error (1/6 without remembering) and accuracy the "
        "share of sums off by less than 0.04; of the copying problem loss is nats a position and accuracy "
        "the share of recalled symbols (1/8 without remembering)."
    )

    def __init__(self, *, data: MemoryData, model: MemoryModel) -> None:
        self.data = data
        self.parts = model

    @property
    def loss_unit(self) -> str:
        """A sum is off by a square, a copied symbol costs nats."""
        return "squared error" if self.data.problem == "adding" else "nats"

    def about(self) -> str:
        """The problem and its length."""
        return f"the {self.data.problem} problem, length {self.data.length}"

    def has(self, split: Split) -> bool:
        """Every split is generated."""
        return True

    def check_ready(self) -> None:
        """See that the parts fit together."""
        with within("model"):
            self.parts.build(self.data.problem)

    def rehearse(self) -> Loss:
        """Two examples of length 5."""
        small = replace(self.data, length=5, shortest=0)
        return self.parts.build(self.data.problem).loss(small.batch("train", np.arange(2)))

    def prepare(self, run: Path, progress: Progress) -> Ready:
        """Nothing has to be made ready."""
        return self

    def open(self, run: Path) -> Ready:
        """Nothing has to be read."""
        return self

    def model(self) -> Predictor:
        """A new model."""
        return self.parts.build(self.data.problem)

    def plan(self, seed: int) -> Fresh:
        """New examples in every epoch, whatever the seed of the training: theirs is data.seed."""
        return Fresh(self.data.examples, self.data.batch_rows)

    def collate(self, numbers: np.ndarray) -> LabelBatch:
        """Training examples by number."""
        return self.data.batch("train", numbers)

    def validate(self, model: nn.Module) -> Validation:
        """The error and how much was right, at full length."""
        found = measure(self.predictor(model), "valid", self.data.valid)
        shown = samples_of(len(found.outputs))
        samples = [Sample(f"example {n}", found.references[n], found.outputs[n]) for n in shown]
        return Validation(
            {"loss": float(found.errors.mean()), "accuracy": float(found.right.mean())}, samples
        )

    def predictor(self, model: nn.Module) -> Rememberer:
        """The trained model at work: `predict("0.3 0.7* 0.1 0.9*")` gives the sum."""
        assert isinstance(model, Predictor)
        return Rememberer(model, self.data)

    def answers(
        self, model: nn.Module, source: Path | BinaryIO, options: Mapping[str, Any]
    ) -> Iterator[Answer]:
        """A sum, or the letters that are remembered, for each line."""
        rememberer = self.predictor(model)
        for number, line in enumerate(read_lines(source), 1):
            try:
                yield Answer(rememberer.predict(line))
            except (DataError, ShapeError) as error:
                yield unanswered(place(source, number), error)

    def evaluate(
        self,
        model: nn.Module,
        *,
        split: Split = "test",
        data: Path | None = None,
        options: Mapping[str, Any] = {},
    ) -> MemoryEvaluation:
        """The error of sums or the accuracy of copies, beside what is reached without remembering.

        Raises:
            ConfigError: files were given.
        """
        if data is not None:
            raise ConfigError(
                f"--data {data}: memory problems are generated; leave it out, "
                "or answer lines with weft predict"
            )
        count = {"train": self.data.examples, "valid": self.data.valid, "test": self.data.test}[split]
        return evaluate(self.predictor(model), split, count)
