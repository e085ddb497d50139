"""The bases of tasks that predict running text: task, pipeline, vocabulary, perplexities by context.

Read next: data.py, the section `data`; ../masked/task.py, a short task.
"""

import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from weft.data.check import check_pairs
from weft.data.plain import PlainText
from weft.data.report import Report
from weft.figures.records import Figure
from weft.metrics.metric import ItemKind
from weft.tasks.evaluation import Evaluation
from weft.tasks.running_text.data import ProseData
from weft.tasks.running_text.recipe import FEWEST
from weft.tasks.task import Pipeline, Progress, Scoring, Task

VOCABULARY = "tokenizer.json"

M = TypeVar("M")


class RunningTextTask(Task, Generic[M]):
    """A task that predicts running text."""

    least: ClassVar[int] = FEWEST
    data: ProseData
    model_config: M

    def saved(self, run: Path) -> Path:
        return run / VOCABULARY

    def learn(self, corpus: Any, run: Path, progress: Progress) -> None:
        """Learn the vocabulary of the training text."""
        progress("learning the vocabulary", 0, None)
        self.data.vocabulary.learn(self.data.open("train")).save(run / VOCABULARY)

    @classmethod
    def check(cls, files: Sequence[Path], /) -> Report:
        """Check plain text; see weft/data/check.py."""
        return check_pairs(*files, pairs=False)


class RunningTextPipeline(Pipeline):
    """What a task on running text has learnt."""

    task: RunningTextTask[Any]

    @abstractmethod
    def scores(self, model: Any, text: PlainText, title: str, asked: Scoring) -> Evaluation:
        """Perplexities on a text beside their baselines."""

    def score(self, model: Any, asked: Scoring) -> Evaluation:
        own, data = self.task.data, asked.data
        if data is None:
            return self.scores(model, own.open(asked.split), own.describe(asked.split), asked)
        return self.scores(model, PlainText(data), str(data), asked)

    def valid_texts(self) -> Iterable[str]:
        """The validation text, line by line."""
        return self.task.data.open("valid")


class Side(NamedTuple):
    """The loss of each word, and the length of its context."""

    name: str
    words: np.ndarray  # [N] length of the context in words
    nats: np.ndarray  # [N]


@dataclass(frozen=True)
class ContextEvaluation(Evaluation):
    """Scores next to their baselines."""

    sides: list[Side]
    beside: str  # what Side.words counts
    shows: ClassVar[str] = "nats by length of the context"
    offers: ClassVar[tuple[ItemKind, ...]] = ("nats",)

    @property
    def lowest(self) -> dict[str, float]:
        """Nats of the baselines of the perplexity."""
        return {name: math.log(value) for name, value in self.scores[0].baselines.items()}

    def figure(self, name: str) -> "Figure":
        """The loss by length of the context, with a line for each direction."""
        from weft.figures.charts import by_place

        lines = {side.name: (side.words, side.nats) for side in self.sides}
        title = f"{name}: {self.title}"
        return by_place(lines, x=self.beside, y="nats", title=title, baselines=self.lowest)
