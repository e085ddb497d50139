"""The contract of an evaluation: the scores of a model on a split, each next to its baselines.

`weft evaluate`, `weft compare` and `weft inspect --evaluate` use only this contract for scores.
Read next: seq2seq/evaluation.py, for translations; ../metrics/scored.py, a score.
"""

import json
from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from weft.errors import ConfigError
from weft.metrics.bylength import LengthRow
from weft.metrics.compared import ComparedOutputs
from weft.metrics.metric import Metric
from weft.metrics.scored import ScoreWithBaselines, as_json, report

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def unanswered(wrong: Sequence[str], how: str = "scored as wrong") -> str:
    """The number of inputs without an answer, for a title; empty if there are none."""
    return f", {len(wrong):,} without an answer ({how})" if wrong else ""


class Items(NamedTuple):
    """The main score by item, for a paired test between two runs."""

    metric: Metric  # computes the score from summed statistics
    statistics: np.ndarray  # [N, K] of each test item
    fingerprint: str  # of the items; empty if unknown. Only runs with equal ones are compared


class Evaluation(ABC):
    """The scores of a model on a split. Leaves are frozen dataclasses.

    Attributes:
        title: the data, the number of examples and the search.
        outputs: the model's answers, a line for each.
        scores: each with signature, interval and baselines, the most important one first.
        lengths: the main score by length of the input; empty if it is not measured.
        shows: what `figure` draws; empty if there is no figure.
        length: what `lengths` counts, such as words said; empty if `lengths` is.
        compares: whether outputs are compared with reference texts, so that any metric can score them.
        compared: the outputs and references for further metrics, or None.
        wrong: place and reason of each input without an answer.
    """

    title: str
    outputs: Sequence[str]
    scores: Sequence[ScoreWithBaselines]
    lengths: Sequence[LengthRow] = ()
    shows: ClassVar[str] = ""
    length: ClassVar[str] = ""
    compares: ClassVar[bool] = False
    compared: ComparedOutputs | None = None
    wrong: Sequence[str] = ()

    @property
    def items(self) -> Items | None:
        """The main score item by item, or None if it is not computed from items."""
        main = self.scores[0]
        if main.metric is None or main.statistics is None:
            return None
        return Items(main.metric, main.statistics, main.items)

    def with_metrics(self, metrics: Mapping[str, Metric]) -> Self:
        """This evaluation with the scores of further metrics after its own.

        Args:
            metrics: by a unique name, such as "chrf:word_order=2".

        Raises:
            ConfigError: this evaluation does not compare texts.
        """
        if not metrics:
            return self
        if self.compared is None:
            raise ConfigError(f"--metric: expected outputs with references, got {self.title}; leave it out")
        scores = list(self.scores)
        for called, metric in metrics.items():
            found = self.compared.scored(metric)
            known = {one.score.name for one in scores}
            scores.append(found.renamed(f"{metric.name} ({called})") if metric.name in known else found)
        return replace(self, scores=scores)  # type: ignore[type-var]

    def text(self) -> str:
        """The report as text: title, scores, details."""
        return "\n".join([self.title, *report(self.scores), *self.details()])

    def json(self) -> str:
        """The report as JSON: title, scores, facts."""
        whole = {"title": self.title, "scores": as_json(self.scores), **self.facts()}
        return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"

    def details(self) -> Sequence[str]:
        """Further lines of this task, below the scores."""
        return ()

    def facts(self) -> dict[str, Any]:
        """Further values of this task, for `json`."""
        return {}

    def figure(self, name: str) -> "Figure":
        """The figure of `weft evaluate --plot`.

        Args:
            name: of the run.


        Raises:
            ConfigError: there is no figure; `shows` is empty.
        """
        raise ConfigError(f"--plot: expected an evaluation with a picture, got {self.title}; leave it out")
