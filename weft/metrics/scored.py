"""A reported score: value, signature and interval, with the same score of the baselines.

A baseline needs no trained model: for example copying the source, or the most frequent class.
Every task reports its scores in this form; `ComparedOutputs` are what metrics of one kind can score.
Read next: intervals.py, the intervals.
"""

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from weft.errors import DataError
from weft.metrics.intervals import FEWEST, difference_interval, with_interval
from weft.metrics.metric import ROUNDING, ItemKind, Metric, MetricScore, check_items

ONE_OF_SEVERAL = "references:the best of each line"
BETTER, WORSE, EQUAL, UNCLEAR = "better than", "worse than", "equal to", "not clearly better than"


class ScoreWithBaselines(NamedTuple):
    """A score and the baselines it must beat.

    Fields:
        baselines: the score of each baseline; empty if the training data is no longer available.
        metric: computes the score from statistics.
        statistics: [N, K] of each item, for paired tests between runs.
        items: a fingerprint of the items; runs are compared only on the same items.
        beside: statistics [N, K] of baselines, by name, for paired tests with them.
        note: what a reader must know about the score; usually empty.
        apart: differences from baselines that are known otherwise, with their 95 % intervals, by name.

    Example:
        >>> from weft.metrics import Accuracy
        >>> found = scored(Accuracy(), ["a", "b"], ["a", "b"], baselines={"always a": ["a", "a"]})
        >>> found.score.value, list(found.baselines)
        (1.0, ['always a'])
    """

    score: MetricScore
    baselines: Mapping[str, float]
    metric: Metric | None = None
    statistics: np.ndarray | None = None
    items: str = ""
    beside: Mapping[str, np.ndarray] = {}
    note: str = ""
    apart: Mapping[str, tuple[float, float, float]] = {}

    @property
    def value(self) -> float:
        """On the metric's usual scale: BLEU 0..100, accuracy 0..1."""
        return self.score.value

    def best_baseline(self) -> str | None:
        """The name of the strongest baseline."""
        sign = 1 if self.score.higher_is_better else -1
        known = {name: sign * value for name, value in self.baselines.items() if math.isfinite(value)}
        return max(known, key=lambda name: known[name]) if known else None

    def difference(self, baseline: str) -> tuple[float, float, float]:
        """The score minus that of a baseline, and the 95 % interval of the difference.

        It is that of the paired difference, or of the score itself where the baseline is only a number.
        """
        if baseline in self.apart:
            return self.apart[baseline]
        value = self.value - self.baselines[baseline]
        if math.isclose(self.value, self.baselines[baseline], rel_tol=ROUNDING):
            value = 0.0
        if self.metric is not None and self.statistics is not None and baseline in self.beside:
            return value, *difference_interval(self.metric, self.beside[baseline], self.statistics)
        if self.score.low is None or self.score.high is None:
            return value, -math.inf, math.inf
        return value, self.score.low - self.baselines[baseline], self.score.high - self.baselines[baseline]

    def judged(self, difference: tuple[float, float, float]) -> str:
        """BETTER, WORSE, EQUAL or UNCLEAR, from a difference and its interval."""
        value, *ends = difference
        low, high = ends if self.score.higher_is_better else (-ends[1], -ends[0])
        return EQUAL if value == low == high == 0 else BETTER if low > 0 else WORSE if high < 0 else UNCLEAR

    def is_worse(self) -> bool:
        """Whether the strongest baseline is better, and not by chance."""
        name = self.best_baseline()
        return name is not None and self.judged(self.difference(name)) == WORSE

    def verdict(self) -> str:
        """One line: the score with its interval, and whether it beats the strongest baseline."""
        score, digits, name = self.score, self.score.digits, self.best_baseline()
        found = f"{score.name} {score.value:.{digits}f}"
        if score.low is not None and score.high is not None:
            found += f" [{score.low:.{digits}f}, {score.high:.{digits}f}]"
        if name is None:
            return found
        apart = self.difference(name)
        return (
            f"{found}: {self.judged(apart)} the best baseline ({name} {self.baselines[name]:.{digits}f}; "
            f"{self._shown(apart)})"
        )

    def _shown(self, apart: tuple[float, float, float]) -> str:
        """A difference with its interval, in enough digits to be seen."""
        value, low, high = apart
        digits = self.score.digits
        largest = max((abs(one) for one in apart if math.isfinite(one)), default=0.0)
        form = "+.1g" if 0 < largest < 0.5 * 10**-digits else f"+.{digits}f"
        ends = f" [{low:{form}}, {high:{form}}]" if math.isfinite(low) else ""
        return f"difference {value:{form}}{ends}"

    def lines(self) -> list[str]:
        """A readable report: the score, then one line per baseline."""
        digits = self.score.digits
        if math.isnan(self.value):
            return [f"  {self.score.name}: not defined for these items, such as a single class or no values"]
        found = [f"  {self.score}"]
        if self.score.low is None and self.statistics is not None:
            found.append(f"    no interval: {self._why_none(self.statistics)}")
        for name, value in self.baselines.items():
            apart = self.difference(name)
            judged = self.judged(apart)
            mark = "" if judged == BETTER else f"  <- the model is {judged} the baseline"
            if judged == WORSE and f"{value:.{digits}f}" == f"{self.value:.{digits}f}":
                mark += f" ({self._shown(apart)})"
            found.append(f"    baseline: {name} {value:.{digits}f}{mark}")
        return found

    def _why_none(self, statistics: np.ndarray) -> str:
        """Why there is no interval."""
        if len(statistics) < FEWEST:
            return f"fewer than {FEWEST} items"
        without = self.metric.value(statistics.sum(0) - statistics) if self.metric else np.zeros(1)
        return "all resamples score alike" if np.isfinite(without).all() else "some resamples have no score"

    def json(self) -> dict[str, Any]:
        """The score as JSON data."""
        note = {"note": self.note} if self.note else {}
        return {**self.score._asdict(), "baselines": dict(self.baselines), **note}

    def renamed(self, name: str) -> "ScoreWithBaselines":
        """A copy under another name."""
        return self._replace(score=self.score._replace(name=name))

    def counted(self, unit: str) -> "ScoreWithBaselines":
        """A copy whose signature counts `unit`, such as images, instead of lines."""
        signature = self.score.signature.replace("unit:line", f"unit:{unit}")
        return self._replace(score=self.score._replace(signature=signature))

    def signed(self, more: str) -> "ScoreWithBaselines":
        """A copy with `more` appended to its signature."""
        return self._replace(score=self.score._replace(signature=f"{self.score.signature}|{more}"))


class ComparedOutputs(NamedTuple):
    """Outputs, references, and the outputs of baselines, item by item."""

    outputs: Any  # [N] of the kind that `reads` says
    references: Any  # [N] of the same kind; for texts a list of one or more for each output
    sources: Sequence[str] | None = None  # [N] inputs, if they are texts
    baselines: Mapping[str, Any] = {}  # the outputs [N] of each baseline
    reads: ItemKind = "texts"
    groups: np.ndarray | None = None  # [N] numbers of items drawn together, such as the block of a window
    about: str = ""  # how the outputs were made, added to every signature

    def made(self) -> "ComparedOutputs":
        """These outputs; see DeferredOutputs."""
        return self

    def scored(self, metric: Metric) -> ScoreWithBaselines:
        """The score of the outputs, with its interval and the scores of the baselines.

        A line with several references is compared with the one that gives it the best score.
        """
        note, metric = self.note(metric), self._fitted(metric)
        found = of_rows(
            metric,
            self._statistics(metric, self.outputs),
            beside={name: self._statistics(metric, lines) for name, lines in self.baselines.items()},
            items=self.fingerprint(),
        )._replace(note=note)
        found = found.signed(ONE_OF_SEVERAL) if self._several else found
        return found.signed(self.about) if self.about else found

    def value(self, metric: Metric) -> float:
        """The score of the outputs, without interval and baselines."""
        metric = self._fitted(metric)
        return float(metric.value(self._statistics(metric, self.outputs).sum(0)))

    def note(self, metric: Metric) -> str:
        """What a reader must know about the score of a metric; empty if there is nothing."""
        return metric.note(self._known())

    def fingerprint(self) -> str:
        """A short hash of the references, and of the inputs if the references are no texts."""
        references = self.references
        if self.reads == "texts":
            return fingerprint(one for several in references for one in several)
        if isinstance(references, np.ndarray):
            references = [hashlib.sha256(references.tobytes()).hexdigest()]
        return fingerprint([*map(str, references), *(self.sources or ())])

    @property
    def _several(self) -> bool:
        return self.reads == "texts" and max(map(len, self.references), default=0) > 1

    def _known(self) -> Any:
        """The references of all items; of texts each one."""
        if self.reads != "texts":
            return self.references
        return [one for several in self.references for one in several]

    def _fitted(self, metric: Metric) -> Metric:
        texts = self.reads == "texts"
        known = [" ".join(several) for several in self.references] if texts else self.references
        for outputs in (self.outputs, *self.baselines.values()):
            check_items(outputs, known, self.sources, reads=(self.reads,))
        return metric.fitted(self._known(), self.outputs, *self.baselines.values())

    def _statistics(self, metric: Metric, outputs: Any) -> np.ndarray:
        """[N, K] or [groups, K] statistics of outputs, for texts against the best of their references."""
        if self.reads != "texts":
            rows = metric.rows(outputs, self.references, self.sources)
            return rows if self.groups is None else grouped(rows, self.groups)
        counts = [len(references) for references in self.references]
        rows = metric.rows(
            [line for line, count in zip(outputs, counts, strict=True) for _ in range(count)],
            self._known(),
            None
            if self.sources is None
            else [source for source, count in zip(self.sources, counts, strict=True) for _ in range(count)],
        )
        if not self._several:
            return rows
        values = metric.value(rows) * (1 if metric.higher_is_better else -1)
        spans = zip(np.cumsum(counts) - counts, counts, strict=True)
        return rows[[first + int(values[first : first + count].argmax()) for first, count in spans]]


class DeferredOutputs(NamedTuple):
    """ComparedOutputs that are made once a metric reads them, as they are large or take time."""

    reads: ItemKind
    made: Callable[[], ComparedOutputs]


Compared = ComparedOutputs | DeferredOutputs


def grouped(statistics: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """[groups, K]: rows [N, K] summed by group number."""
    return np.stack([np.bincount(numbers, column) for column in statistics.T], 1)


def offered(compared: Iterable[Compared], metric: Metric) -> list[ComparedOutputs]:
    """Those of the compared outputs that a metric reads, of its preferred kind."""
    every = list(compared)
    for reads in metric.reads:
        if found := [one.made() for one in every if one.reads == reads]:
            return found
    raise DataError(unread(metric, "this evaluation", [one.reads for one in every]))


def unread(metric: Metric, where: str, offers: Iterable[ItemKind]) -> str:
    """The sentence about a metric that reads nothing of what is offered."""
    kinds = ", ".join(dict.fromkeys(offers)) or "no outputs with references"
    return f"{metric.key}: reads {' or '.join(metric.reads)}, but {where} has {kinds}; leave it out"


def of_lines(
    outputs: Sequence[str],
    references: Sequence[str],
    sources: Sequence[str] | None = None,
    baselines: Mapping[str, Sequence[str]] | None = None,
) -> ComparedOutputs:
    """Outputs with one reference each."""
    return ComparedOutputs(outputs, [[reference] for reference in references], sources, baselines or {})


def scored(
    metric: Metric,
    hypotheses: Sequence[str],
    references: Sequence[str],
    sources: Sequence[str] | None = None,
    *,
    baselines: Mapping[str, Sequence[str]] | None = None,
) -> ScoreWithBaselines:
    """Score outputs and baselines, given by their outputs, against the same references.

    Example:
        >>> from weft.metrics.accuracy import Accuracy
        >>> found = scored(Accuracy(), ["a", "b"], ["a", "a"], baselines={"always a": ["a", "a"]})
        >>> found.score.value, dict(found.baselines)
        (0.5, {'always a': 1.0})
    """
    return of_lines(hypotheses, references, sources, baselines).scored(metric)


def of_rows(
    metric: Metric,
    statistics: np.ndarray,
    *,
    beside: Mapping[str, np.ndarray] = {},
    baselines: Mapping[str, float] = {},
    items: str = "",
) -> ScoreWithBaselines:
    """Like `scored`, from statistics [N, K] of the outputs."""
    values = {name: float(metric.value(rows.sum(0))) for name, rows in beside.items()}
    score = with_interval(metric, statistics)
    return ScoreWithBaselines(score, {**values, **baselines}, metric, statistics, items, beside)


def fingerprint(lines: Iterable[str]) -> str:
    """A short hash of the items."""
    return hashlib.sha256("\n".join(lines).encode("utf-8", "replace")).hexdigest()[:16]


def report(found: Iterable[ScoreWithBaselines]) -> list[str]:
    """The report lines of several scores, and each of their notes once."""
    every = list(found)
    notes = dict.fromkeys(one.note for one in every if one.note)
    return [*(line for one in every for line in one.lines()), *(f"  note: {note}" for note in notes)]


def as_json(found: Iterable[ScoreWithBaselines]) -> dict[str, Any]:
    """Finite scores as JSON data, by name."""
    return {one.score.name: one.json() for one in found if math.isfinite(one.score.value)}


Form = Literal["mean", "root", "percent", "perplexity"]
"""What to report of r = sum / count: r, its square root, 100 r, or e^r."""


class _Ratio(Metric):
    """Statistics are [N, 2]: sum and count of each item. Private, because its name is an argument."""

    def __init__(
        self, name: str, signature: str, *, higher_is_better: bool, form: Form, graded: bool
    ) -> None:
        self.name, self.higher_is_better, self.graded = name, higher_is_better, graded  # type: ignore[misc]
        self._signature, self.form = signature, form

    def statistics(
        self, hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] | None = None
    ) -> np.ndarray:
        """[N, 2]: the number on each line, and 1."""
        return np.array([[float(line), 1.0] for line in hypotheses])

    def value(self, totals: np.ndarray) -> np.ndarray:
        """[..., 2] to [...]."""
        mean = super().value(totals)
        if self.form == "root":
            return np.sqrt(mean)  # type: ignore[no-any-return]
        # e^709 is the largest float64
        found: np.ndarray = np.exp(np.minimum(mean, 700.0)) if self.form == "perplexity" else mean
        return 100 * found if self.form == "percent" else found

    def signature(self) -> str:
        return self._signature


def ratio(
    name: str, signature: str, *, higher_is_better: bool, form: Form = "mean", graded: bool = False
) -> Metric:
    """A metric whose value is sum / count over all items: an error, a share or a perplexity."""
    return _Ratio(name, signature, higher_is_better=higher_is_better, form=form, graded=graded)


def form_of(metric: Metric) -> Form | None:
    """The form of a metric made by `ratio`; None for any other metric."""
    return metric.form if isinstance(metric, _Ratio) else None


def mean_of(
    metric: Metric,
    sums: np.ndarray,
    counts: np.ndarray | None = None,
    *,
    beside: Mapping[str, np.ndarray] = {},
    baselines: Mapping[str, float] = {},
    items: str = "",
    size: int | None = None,
) -> ScoreWithBaselines:
    """The score of items from their sums [N] and counts [N], 1 by default, with its interval over the items.

    `beside` are the sums [N] of baselines that answer each item, by name.
    """
    known = np.ones(len(sums)) if counts is None else counts

    def rows(values: np.ndarray) -> np.ndarray:
        return np.stack([values, known], 1).astype(np.float64)

    lowest = {name: rows(values) for name, values in beside.items()}
    found = of_rows(metric, rows(sums), beside=lowest, baselines=baselines, items=items)
    return found if size is None else found._replace(score=found.score._replace(size=size))
