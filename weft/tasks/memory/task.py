"""M15, the synthetic memory problems: add two numbers far apart, or copy symbols after a delay.

A network that cannot store something over `length` steps cannot solve them, so they measure memory and
nothing else. Read next: ../../data/memory.py, which makes the examples; model.py, ready.py, evaluation.py.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from weft.errors import within
from weft.nn.heads.head import Loss
from weft.tasks.memory.data import MemoryData
from weft.tasks.memory.evaluation import MemoryEvaluation
from weft.tasks.memory.model import MemoryModel
from weft.tasks.memory.ready import MemoryReady, MemoryTraining
from weft.tasks.ready import Split
from weft.tasks.task import Progress, Task


class MemoryTask(Task):
    """Generated sequences, and the parts of them to remember.

    Args:
        data: which problem, and how long.
        model: what remembers.
    """

    sections: ClassVar[Mapping[str, type]] = {"data": MemoryData, "model": MemoryModel}
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
        """Squared error of a sum, nats of a copied symbol."""
        return "squared error" if self.data.problem == "adding" else "nats"

    def about(self) -> str:
        """The problem and its length."""
        return f"the {self.data.problem} problem, length {self.data.length}"

    def has(self, split: Split) -> bool:
        """Every split is generated."""
        return True

    def check_ready(self) -> None:
        """Check that the parts fit together."""
        with within("model"):
            self.parts.build(self.data.problem)

    def rehearse(self) -> Loss:
        """Two examples of length 5."""
        small = replace(self.data, length=5, shortest=0)
        return self.parts.build(self.data.problem).loss(small.batch("train", np.arange(2)))

    def prepare(self, run: Path, progress: Progress) -> MemoryReady:
        """Nothing has to be learnt or read."""
        return MemoryReady(self, training=MemoryTraining(self.data))

    def open(self, run: Path) -> MemoryReady:
        """Nothing has to be read."""
        return MemoryReady(self)
