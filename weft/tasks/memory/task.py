"""M15, the synthetic memory problems: add two numbers far apart, or copy symbols after a delay.

A network that cannot store information over `length` steps cannot solve them, so they measure only memory.
Read next: ../../data/memory.py, which makes the examples; model.py, ready.py, evaluation.py.
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
    """Generated sequences, and what to remember from them.

    Args:
        data: the problem and its length.
        model: the model that remembers.
    """

    sections: ClassVar[Mapping[str, type]] = {"data": MemoryData, "model": MemoryModel}
    evaluation: ClassVar = MemoryEvaluation
    samples_readable: ClassVar[bool] = False
    better: ClassVar[Mapping[str, Literal["higher", "lower"]]] = {"loss": "lower", "accuracy": "higher"}
    note: ClassVar[str] = (
        "For the adding problem, loss is the mean squared error (1/6 without memory) and accuracy the "
        "share of sums off by less than 0.04; for the copying problem, loss is nats per position and "
        "accuracy the share of recalled symbols (1/8 without memory)."
    )

    def __init__(self, *, data: MemoryData, model: MemoryModel) -> None:
        self.data = data
        self.parts = model

    @property
    def loss_unit(self) -> str:
        """Squared error for sums, nats for copied symbols."""
        return "squared error" if self.data.problem == "adding" else "nats"

    def about(self) -> str:
        """The problem and its length."""
        return f"the {self.data.problem} problem, length {self.data.length}"

    def has(self, split: Split) -> bool:
        """True: every split is generated."""
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
        """Return the ready task; nothing has to be read."""
        return MemoryReady(self, training=MemoryTraining(self.data))

    def open(self, run: Path) -> MemoryReady:
        """Return the ready task; nothing has to be read."""
        return MemoryReady(self)
