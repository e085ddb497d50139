"""The contract of an evaluation: the scores of a model on a split, each beside what it must beat.

`weft evaluate`, `weft compare` and `weft inspect --evaluate` use this and nothing else of a task's scores.
Read next: shared/writing/evaluation.py, that of translations; ../metrics/scored.py, a score.
"""

import json
from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from weft.errors import ConfigError
from weft.metrics.bylength import LengthRow
from weft.metrics.compared import Compared
from weft.metrics.metric import Metric
from weft.metrics.scored import Scored, as_json, report

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Items(NamedTuple):
    """What a paired test between two runs needs of the main score."""

    metric: Metric  # computes the score from sums of statistics
    statistics: np.ndarray  # [N, K] of each test item
    fingerprint: str  # of the items; empty where they are unknown. Runs are tested on the same items only


class Evaluation(ABC):
    """The scores of a model on a split. Leaves are frozen dataclasses.

    Attributes:
        title: which data, how many, and which search.
        outputs: the model's answers, a line each.
        scores: each with signature, interval and baselines, the most important one first.
        lengths: the main score for short and long inputs; empty where it is not measured.
        shows: what `figure` draws; empty where it draws nothing.
        length: what `lengths` counts, such as words said; empty where there are none.
        compares: whether outputs are compared with reference texts, so that any metric can score them.
        compared: the outputs and references that more metrics score; None where there are none.
    """

    title: str
    outputs: Sequence[str]
    scores: Sequence[Scored]
    lengths: Sequence[LengthRow] = ()
    shows: ClassVar[str] = ""
    length: ClassVar[str] = ""
    compares: ClassVar[bool] = False
    compared: Compared | None = None

    @property
    def items(self) -> Items | None:
        """The main score item by item; None where it is not made of items."""
        main = self.scores[0]
        if main.metric is None or main.statistics is None:
            return None
        return Items(main.metric, main.statistics, main.items)

    def with_metrics(self, metrics: Mapping[str, Metric]) -> Self:
        """With the scores of more metrics after its own.

        Args:
            metrics: by the name that tells a score from one of the same name, such as "chrf:word_order=2".

        Raises:
            ConfigError: this evaluation compares no texts.
        """
        if not metrics:
            return self
        if self.compared is None:
            raise ConfigError(f"--metric: expected outputs beside references, got {self.title}; leave it out")
        scores = list(self.scores)
        for called, metric in metrics.items():
            found = self.compared.scored(metric)
            known = {one.score.name for one in scores}
            scores.append(found.renamed(f"{metric.name} ({called})") if metric.name in known else found)
        return replace(self, scores=scores)  # type: ignore[type-var]

    def text(self) -> str:
        """For a reader: title, scores, details."""
        return "\n".join([self.title, *report(self.scores), *self.details()])

    def json(self) -> str:
        """For a program: title, scores, facts."""
        whole = {"title": self.title, "scores": as_json(self.scores), **self.facts()}
        return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"

    def details(self) -> Sequence[str]:
        """Lines below the scores that only this task has."""
        return ()

    def facts(self) -> dict[str, Any]:
        """What only this task has, for `json`."""
        return {}

    def figure(self, name: str) -> "Figure":
        """The picture that `weft evaluate --plot` draws of a run of this name.

        Raises:
            ConfigError: there is none; `shows` is empty.
        """
        raise ConfigError(f"--plot: expected an evaluation with a picture, got {self.title}; leave it out")
