"""The contracts of scores: a validation in training, and an evaluation of a trained model beside baselines.

`weft evaluate`, `weft compare` and `weft inspect --evaluate` use only this contract for scores.
Read next: seq2seq/evaluation.py, for translations; ../metrics/scored.py, a score.
"""

import json
import math
from abc import ABC
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
import torch
from torch import nn

from weft.errors import ConfigError, library
from weft.figures.records import Figure
from weft.metrics.bylength import LengthRow
from weft.metrics.metric import ItemKind, Metric
from weft.metrics.scored import Compared, ScoreWithBaselines, as_json, offered, report
from weft.nn.heads.head import Loss
from weft.wording import plural

if TYPE_CHECKING:
    import pandas as pd


def unanswered(wrong: Sequence[str], how: str = "scored as wrong") -> str:
    """The number of inputs without an answer, for a title; empty if there are none."""
    return f", {len(wrong):,} without an answer ({how})" if wrong else ""


def speed(count: int, what: str, seconds: float) -> str:
    """A line of a report, such as 20 texts/s, 1.5 s."""
    return f"  {count / max(seconds, 1e-9):,.0f} {what}/s, {seconds:.1f} s"


class Items(NamedTuple):
    """The main score by item, for a paired test between two runs."""

    metric: Metric  # computes the score from summed statistics
    statistics: np.ndarray  # [N, K] of each test item
    fingerprint: str  # of the items; empty if unknown. Only runs with equal ones are compared


@dataclass(frozen=True)
class Evaluation(ABC):
    r"""The scores of a model on a split. Leaves are frozen dataclasses.

    Example:
        >>> from weft.metrics.accuracy import Accuracy
        >>> from weft.metrics.scored import scored
        >>> score = scored(Accuracy(), ["a", "b"], ["a", "b"], baselines={"always a": ["a", "a"]})
        >>> PlainEvaluation("test, 2 lines", ["a", "b"], [score]).text().split("\n")[0]
        'test, 2 lines'
    """

    title: str  # the data, the number of examples and the search
    outputs: Sequence[str]  # the model's answers, a line for each
    scores: Sequence[ScoreWithBaselines]  # with signature, interval and baselines, the main one first
    _: KW_ONLY
    shows: ClassVar[str] = ""  # what `figure` draws; empty if there is no figure
    offers: ClassVar[tuple[ItemKind, ...]] = ()  # the kinds of `compared`, see ../metrics/metric.py
    lengths: Sequence[LengthRow] = ()  # the main score by length of the input; empty if not measured
    length: str = ""  # what `lengths` counts, such as words said
    compared: Sequence[Compared] = ()  # outputs and references that any metric of their kind can score
    wrong: Sequence[str] = ()  # place and reason of each input without an answer
    again: int = 0  # number of inputs that occurred in training; 0 if that was not looked for

    @property
    def used(self) -> ScoreWithBaselines:
        """The main score of what `weft predict` uses; another one than the first if that is a mixture."""
        return self.scores[0]

    @property
    def items(self) -> Items | None:
        """The main score item by item, or None if it is not computed from items."""
        main = self.scores[0]
        if main.metric is None or main.statistics is None:
            return None
        return Items(main.metric, main.statistics, main.items)

    def with_metrics(self, metrics: Mapping[str, Metric]) -> Self:
        """This evaluation with the scores of further metrics, by unique names such as "chrf:word_order=2".

        Raises:
            DataError: this evaluation has nothing that a metric reads.
        """
        if not metrics:
            return self
        scores = list(self.scores)
        for called, metric in metrics.items():
            found = offered(self.compared, metric)[0].scored(metric)
            known = {one.score.name for one in scores}
            scores.append(found.renamed(f"{metric.name} ({called})") if metric.name in known else found)
        return replace(self, scores=scores)  # type: ignore[type-var]

    def text(self, *, full: bool = True) -> str:
        """The report as text: title, scores, notes, details if it is full, the verdict on the main score."""
        details = self.details()
        if not full:
            details = ["  tables and speed: --full"] if details else []
        notes = [*self.notes(), *(f"  {one}" for one in self.cautions())]
        parts = [self.title, *report(self.scores), *notes, *details, self.scores[0].verdict()]
        return "\n".join(parts)

    def json(self) -> str:
        """The report as JSON: title, verdict, scores, two counts as in all tasks; then the `facts`."""
        counts = {"outputs": len(self.outputs), "unanswered": len(self.wrong)}
        said = {"title": self.title, "verdict": self.scores[0].verdict()}
        whole = {**said, "scores": as_json(self.scores), **counts, **self.facts()}
        return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"

    def frame(self) -> "pd.DataFrame":
        """The scores as a DataFrame, a row for each by name; printed, it is the report of `weft evaluate`.

        Columns: value, low and high (the interval), size (items), higher_is_better, one for each baseline,
        and signature.
        """
        library("pandas", "pandas", "a DataFrame of scores")
        import pandas as pd

        from weft.tasks.score_table import ScoreTable

        rows = {}
        for one in self.scores:
            name, *numbers = one.score
            rows[name] = {**dict(zip(one.score._fields[1:], numbers, strict=True)), **one.baselines}
        table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("score")
        first = [name for name in ("value", "low", "high", "size", "higher_is_better") if name in table]
        rest = [name for name in table if name not in (*first, "signature")]
        whole = ScoreTable(table[[*first, *rest, "signature"]])
        parts = [self.title, *report(self.scores), *self.notes(), self.scores[0].verdict()]
        whole.attrs["report"] = "\n".join(parts)
        return whole

    def notes(self) -> Sequence[str]:
        """What a reader of these scores must know, below them."""
        return ()

    def cautions(self) -> list[str]:
        """Why these scores say little: sentences that the command prints, and Python warns of."""
        said = f"{self.again:,} of {len(self.outputs):,} inputs occurred in training: the scores are too good"
        return [said] if self.again else []

    def details(self) -> Sequence[str]:
        """Tables and speeds, for those who ask for them."""
        return ()

    def facts(self) -> dict[str, Any]:
        """Further values of this task, for `json`."""
        return {}

    def figure(self, name: str) -> "Figure":
        """What `weft evaluate --plot` draws: the gain of each score over the baselines, unless overridden.

        Raises:
            ConfigError: there is no figure; `shows` is empty.
        """
        if not self.shows:
            raise ConfigError(
                f"--plot: expected an evaluation with a picture, got {self.title}; leave it out"
            )
        from weft.figures.charts import run_figure

        return run_figure(self.scores, title=f"{name}: {self.title}")


@dataclass(frozen=True)
class PlainEvaluation(Evaluation):
    """Scores without more; see Evaluation."""


class Sample(NamedTuple):
    """A validation example and the model's output, as text."""

    source: str
    reference: str
    output: str


class Validation(NamedTuple):
    """The current scores of the model."""

    scores: dict[str, float]  # by name
    samples: Sequence[Sample]
    compared: Sequence[Compared] = ()  # what any metric of its kind can score, for each pair of languages
    notes: Sequence[str] = ()  # sentences about examples that could not be scored

    def with_metrics(self, metrics: Iterable[Metric]) -> "Validation":
        """This validation with the scores of further metrics, averaged over `compared`."""
        more: dict[str, float] = {}
        notes: list[str] = []
        for one in metrics:
            read = offered(self.compared, one)
            more[one.key] = float(np.mean([each.value(one) for each in read]))
            notes += filter(None, (each.note(one) for each in read))
        return self._replace(scores={**self.scores, **more}, notes=[*self.notes, *notes])


class Batch(Protocol):
    """A batch, as the model's `loss` reads it."""

    @property
    def target_tokens(self) -> int:
        """What a loss is divided by, and speed counted in."""

    def to(self, device: torch.device, /) -> Any:
        """The batch on a device."""


def mean_loss(model: nn.Module, batches: Iterable[Batch]) -> float:
    """The loss on all batches together, in nats per item, of a model in evaluation mode."""
    device = next(model.parameters()).device
    total = count = 0.0
    with torch.no_grad():
        for batch in batches:
            loss: Loss = model.loss(batch.to(device))  # type: ignore[operator]
            total, count = total + float(loss.total), count + float(loss.count)
    return total / max(1.0, count)


def first(notes: Sequence[str]) -> list[str]:
    """The first three notes, and the number of the others.

    Example:
        >>> first(["a", "b", "c", "d", "e"])
        ['a', 'b', 'c', 'and 2 more validation examples']
    """
    more = len(notes) - 3
    return [*notes[:3], *([f"and {plural(more, 'more validation example')}"] if more > 0 else [])]


def perplexity(loss: float) -> float:
    """exp(loss) for a loss in nats; infinite on overflow."""
    return math.exp(loss) if loss < 700 else math.inf


def samples_of(count: int, shown: int = 3) -> list[int]:
    """The numbers of at most `shown` validation examples, ascending; each validation shows others.

    Training seeds torch's generator before each validation, so a repeated one shows the same ones.
    """
    chance = np.random.default_rng(torch.initial_seed() % 2**63)
    return sorted(chance.choice(count, min(count, shown), replace=False).tolist())
