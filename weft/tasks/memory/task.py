"""The synthetic memory problems: add numbers far apart, copy, recall, follow a ball under cups.

A network that cannot store information over `length` steps cannot solve them, so they measure only memory.
Read next: data.py, which draws the examples; predictor.py.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
from torch import nn

from weft.data.report import Report
from weft.errors import ConfigError
from weft.metrics.metric import ItemKind
from weft.models import Labeller
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.encoder import Encoder
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.heads.categorical import Categorical
from weft.nn.heads.head import Loss, Point
from weft.nn.ops import Linear
from weft.nn.pools import Pool, Summary
from weft.setting_types import Section, Size
from weft.tasks.evaluation import Sample, Validation, samples_of
from weft.tasks.inspection import Inspection
from weft.tasks.labels.base import LabelBatch, LabelTask
from weft.tasks.memory.data import NUM_SIGNS, PROBLEMS, EndlessBatches, MemoryData
from weft.tasks.memory.predictor import MemoryEvaluation, Rememberer, evaluate, inspect_problem, measure
from weft.tasks.task import (
    InspectionSettings,
    Pipeline,
    PredictExample,
    PredictionSettings,
    Progress,
    ScoredSettings,
    Scoring,
    Split,
    Training,
)


@dataclass(frozen=True, kw_only=True)
class MemoryModel(Section):
    """The model that remembers.

    Args:
        encoder: a part of nn/encoders; it reads the sequence.
        pool: a part of nn/pools.py; it makes the vector from which the sum is computed. The other problems
            do not use it.
        embedding: features of a symbol, or of a number with its mark; 0 feeds number and mark unchanged.
    """

    encoder: Callable[..., Encoder] = RecurrentEncoder
    pool: Callable[..., Pool] = Summary
    embedding: Size = 0

    def build(self, data: MemoryData) -> Labeller:
        """A new model."""
        if data.problem != "adding":
            signs = len(PROBLEMS[data.problem].names(data.symbols))
            size = self.embedding or signs
            encoder = self.encoder(size)
            return Labeller(Tokens(signs, size), encoder, Categorical(encoder.size, NUM_SIGNS))
        embed = Linear(2, self.embedding) if self.embedding else nn.Identity()
        encoder = self.encoder(self.embedding or 2)
        pool = self.pool(encoder.size)
        return Labeller(embed, encoder, Point(pool.size), pool=pool)


@dataclass(eq=False)
class MemoryTraining(Training):
    """The training examples."""

    data: MemoryData

    def plan(self, seed: int) -> EndlessBatches:
        """New examples in every epoch, from data.seed; `seed` is not used."""
        return EndlessBatches(self.data.examples, self.data.batch_rows)

    def collate(self, numbers: np.ndarray) -> LabelBatch:
        return self.data.batch("train", numbers)

    def validate(self, model: Labeller) -> Validation:
        found = measure(Rememberer(model, self.data), "valid", self.data.valid)
        shown = samples_of(len(found.outputs))
        samples = [Sample(f"example {n}", found.references[n], found.outputs[n]) for n in shown]
        accuracy = float(found.right(found.answers).mean())
        scores = {"loss": float(found.errors.mean()), "accuracy": accuracy}
        return Validation(scores, samples, [found.compared()])


@dataclass(eq=False)
class MemoryPipeline(Pipeline):
    """A memory problem."""

    task: "MemoryTask"

    def model(self) -> Labeller:
        return self.task.model_config.build(self.task.data)

    def predictor(self, model: Labeller, settings: PredictionSettings | None = None) -> Rememberer:
        """The trained model; `predict("0.3 0.7* 0.1 0.9*")` returns the sum."""
        asked = self.task.prediction_settings.of(settings)
        if not isinstance(asked, ScoredSettings):
            return Rememberer(model, self.task.data)
        return Rememberer(model, self.task.data, scores=asked.scores, plot=asked.plot is not None)

    def score(self, model: Labeller, asked: Scoring) -> MemoryEvaluation:
        if asked.data is not None:
            raise ConfigError(
                f"--data {asked.data}: memory problems are generated; leave it out, "
                "or answer lines with weft predict"
            )
        own = self.task.data
        count = {"train": own.examples, "valid": own.valid, "test": own.test}[asked.split]
        return evaluate(self.predictor(model), asked.split, count)

    def inspection(self, model: Labeller, settings: InspectionSettings) -> Inspection:
        return inspect_problem(self.predictor(model), None if settings.text is None else settings.input())


class MemoryTask(LabelTask[MemoryData, MemoryModel]):
    """Generated sequences, and what to remember from them."""

    sections: ClassVar = {"data": MemoryData, "model": MemoryModel}
    evaluation: ClassVar = MemoryEvaluation
    prediction_settings: ClassVar = ScoredSettings
    samples_readable: ClassVar[bool] = False
    better: ClassVar = {"loss": "lower", "accuracy": "higher"}
    note: ClassVar[str] = (
        "For the adding problem, loss is the mean squared error (1/6 without memory) and accuracy the "
        "share of sums off by less than 0.04; for the others, loss is nats per position and "
        "accuracy the share of right answers (1/8 by guessing, or 1 in the number of cups)."
    )

    def __init__(self, *, data: MemoryData, model: MemoryModel) -> None:
        super().__init__(data=data, model=model)
        if data.problem == "adding":  # a sum has no probability
            self.prediction_settings = PredictionSettings  # type: ignore[assignment,misc]

    def evaluation_offers(self, split: Split, data: Path | None) -> tuple[ItemKind, ...]:
        return self.validation_offers

    @property
    def validation_offers(self) -> tuple[ItemKind, ...]:
        return ("numbers",) if self.data.problem == "adding" else ("labels",)

    @property
    def loss_unit(self) -> str:
        return "squared error" if self.data.problem == "adding" else "nats"

    @classmethod
    def check(cls, files: Sequence[Path]) -> Report:
        raise ConfigError(f"{files[0]}: this task generates its problems and reads no files; leave it out")

    def about(self) -> str:
        return f"the {self.data.problem} problem, length {self.data.length}"

    def predict_example(self, sources: Sequence[str]) -> PredictExample | None:
        return PredictExample(self.data.example())

    def small_model(self) -> Labeller:
        return self.model_config.build(self.data)

    def rehearse(self) -> Loss:
        length = max(5, self.data.symbols) if self.data.problem == "selective" else 5
        small = replace(self.data, length=length, shortest=0, test_length=0)
        return self.model_config.build(small).loss(small.batch("train", np.arange(2)))

    def training(
        self, corpus: None, pipeline: MemoryPipeline, run: Path, progress: Progress
    ) -> MemoryTraining:
        return MemoryTraining(self.data)

    def open(self, run: Path) -> MemoryPipeline:
        return MemoryPipeline(self)
