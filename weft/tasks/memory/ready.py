"""A memory problem, made ready: all examples are generated, so nothing is read.

Read next: predictor.py; evaluation.py.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import nn

from weft.errors import ConfigError
from weft.models import Predictor
from weft.tasks.inspection import Examples, Inspected
from weft.tasks.labels.batch import LabelBatch
from weft.tasks.memory.data import Fresh, MemoryData
from weft.tasks.memory.evaluation import MemoryEvaluation, evaluate, measure
from weft.tasks.memory.predictor import Rememberer
from weft.tasks.task import Pipeline, Split, Training
from weft.tasks.validation import Sample, Validation, samples_of

if TYPE_CHECKING:
    from weft.tasks.memory.task import MemoryTask


class MemoryTraining(Training):
    """The training examples.

    Args:
        data: the recipe's section `data`.
    """

    def __init__(self, data: MemoryData) -> None:
        self._data = data

    def plan(self, seed: int) -> Fresh:
        """New examples in every epoch, from data.seed; `seed` is not used."""
        return Fresh(self._data.examples, self._data.batch_rows)

    def collate(self, numbers: np.ndarray) -> LabelBatch:
        return self._data.batch("train", numbers)

    def validate(self, model: nn.Module) -> Validation:
        """The error and the share of right answers, at full length."""
        assert isinstance(model, Predictor)
        found = measure(Rememberer(model, self._data), "valid", self._data.valid)
        shown = samples_of(len(found.outputs))
        samples = [Sample(f"example {n}", found.references[n], found.outputs[n]) for n in shown]
        scores = {"loss": float(found.errors.mean()), "accuracy": float(found.right.mean())}
        return Validation(scores, samples)


class MemoryPipeline(Pipeline):
    """A memory problem.

    Args:
        task: the recipe.
        training: the examples; None unless prepared for training.
    """

    task: "MemoryTask"

    def __init__(self, task: "MemoryTask", *, training: MemoryTraining | None = None) -> None:
        self.task = task
        self.training = training

    def model(self) -> Predictor:
        """A new model."""
        return self.task.model_config.build(self.task.data)

    def predictor(self, model: nn.Module, options: Mapping[str, Any] = {}) -> Rememberer:
        """The trained model; `predict("0.3 0.7* 0.1 0.9*")` returns the sum."""
        assert isinstance(model, Predictor)
        return Rememberer(model, self.task.data)

    def evaluate(
        self,
        model: nn.Module,
        *,
        split: Split = "test",
        data: Path | None = None,
        options: Mapping[str, Any] = {},
    ) -> MemoryEvaluation:
        """The error of sums or the accuracy of copies, next to the score without memory.

        Raises:
            ConfigError: files were given.
        """
        if data is not None:
            raise ConfigError(
                f"--data {data}: memory problems are generated; leave it out, "
                "or answer lines with weft predict"
            )
        own = self.task.data
        count = {"train": own.examples, "valid": own.valid, "test": own.test}[split]
        return evaluate(self.predictor(model), split, count)

    def inspected(
        self, model: nn.Module, text: str | None, examples: Examples, options: Mapping[str, Any] = {}
    ) -> Inspected:
        from weft.tasks.memory.inspected import inspected

        return inspected(self, model, text, examples, options)
