"""The synthetic memory problems: add numbers far apart, copy, recall, follow a ball under cups.

A network that cannot store information over `length` steps cannot solve them, so they measure only memory.
Read next: ../../data/memory.py, which makes the examples; problems.py, model.py, ready.py, evaluation.py.
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
from weft.tasks.memory.ready import MemoryPipeline, MemoryTraining
from weft.tasks.task import Progress, Split, Task


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
        "share of sums off by less than 0.04; for the others, loss is nats per position and "
        "accuracy the share of right answers (1/8 by guessing, or 1 in the number of cups)."
    )

    def __init__(self, *, data: MemoryData, model: MemoryModel) -> None:
        self.data = data
        self.model_config = model

    @property
    def loss_unit(self) -> str:
        """Squared error for sums, nats for symbols."""
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
            self.model_config.build(self.data)

    def rehearse(self) -> Loss:
        """Two short examples."""
        length = max(5, self.data.symbols) if self.data.problem == "selective" else 5
        small = replace(self.data, length=length, shortest=0, test_length=0)
        return self.model_config.build(small).loss(small.batch("train", np.arange(2)))

    def prepare(self, run: Path, progress: Progress) -> MemoryPipeline:
        """Nothing has to be read."""
        return MemoryPipeline(self, training=MemoryTraining(self.data))

    def open(self, run: Path) -> MemoryPipeline:
        """Nothing has to be read."""
        return MemoryPipeline(self)
