"""A reported score: value, signature and interval, with the same score of the baselines.

A baseline needs no trained model: for example copying the source, or the most frequent class.
Every task reports its scores in this form; `ComparedOutputs` are what any metric can score.
Read next: bootstrap.py, the intervals; means.py.
"""

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from weft.metrics.baseline import beside
from weft.metrics.bootstrap import with_interval
from weft.metrics.metric import Metric, MetricScore, check_lines

ONE_OF_SEVERAL = "references:the best of each line"


class ScoreWithBaselines(NamedTuple):
    """A score and the baselines it must beat.

    Fields:
        baselines: the score of each baseline; empty if the training data is no longer available.
        metric: computes the score from statistics.
        statistics: [N, K] of each item, for paired tests between runs.
        items: a fingerprint of the items; runs are compared only on the same items.
        note: what a reader must know about the score; usually empty.

    Example:
        >>> from weft.metrics import macro_f1
        >>> found = macro_f1(["a", "b"], ["a", "b"], baselines={"always a": ["a", "a"]})
        >>> found.score.value, list(found.baselines)
        (1.0, ['always a'])
    """

    score: MetricScore
    baselines: Mapping[str, float]
    metric: Metric | None = None
    statistics: np.ndarray | None = None
    items: str = ""
    note: str = ""

    @property
    def value(self) -> float:
        """On the metric's usual scale: BLEU 0..100, accuracy 0..1."""
        return self.score.value

    def lines(self) -> list[str]:
        """A readable report: the score, then one line per baseline."""
        digits = self.score.digits
        found = [f"  {self.score}"]
        for name, value in self.baselines.items():
            shown = (round(one, digits) for one in (self.score.value, value))  # equal as shown means equal
            mark = beside(*shown, higher=self.score.higher_is_better)
            found.append(f"    baseline: {name} {value:.{digits}f}{mark}")
        return found

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
    """Outputs, references, and the outputs of baselines, line by line.

    Fields:
        outputs: [N] texts.
        references: [N] one or more texts for each output.
        sources: [N] inputs, if they are texts.
        baselines: the outputs [N] of each baseline.

    Example:
        >>> from weft.metrics import Accuracy
        >>> compared = ComparedOutputs(["a", "b"], [["a"], ["x", "b"]], baselines={"always a": ["a", "a"]})
        >>> found = compared.scored(Accuracy())
        >>> found.value, dict(found.baselines)
        (1.0, {'always a': 0.5})
    """

    outputs: Sequence[str]
    references: Sequence[Sequence[str]]
    sources: Sequence[str] | None = None
    baselines: Mapping[str, Sequence[str]] = {}

    def scored(self, metric: Metric) -> ScoreWithBaselines:
        """The score of the outputs, with its interval and the scores of the baselines.

        A line with several references is compared with the one that gives it the best score.

        Raises:
            DataError: as `Metric.score`.
        """
        known = self._known()
        note, metric = metric.note(known), metric.for_references(known)
        lowest = {
            name: float(metric.value(self._statistics(metric, lines).sum(0)))
            for name, lines in self.baselines.items()
        }
        rows = self._statistics(metric, self.outputs)
        found = of_rows(metric, rows, baselines=lowest, items=fingerprint(known))._replace(note=note)
        return found.signed(ONE_OF_SEVERAL) if max(map(len, self.references), default=0) > 1 else found

    def value(self, metric: Metric) -> float:
        """The score of the outputs, without interval and baselines."""
        metric = metric.for_references(self._known())
        return float(metric.value(self._statistics(metric, self.outputs).sum(0)))

    def note(self, metric: Metric) -> str:
        """What a reader must know about the score of a metric; empty if there is nothing."""
        return metric.note(self._known())

    def _known(self) -> list[str]:
        return [reference for references in self.references for reference in references]

    def _statistics(self, metric: Metric, lines: Sequence[str]) -> np.ndarray:
        """[N, K] statistics of lines against the best of their references."""
        check_lines(lines, [" ".join(references) for references in self.references], self.sources)
        counts = [len(references) for references in self.references]
        rows = metric.rows(
            [line for line, count in zip(lines, counts, strict=True) for _ in range(count)],
            self._known(),
            None
            if self.sources is None
            else [source for source, count in zip(self.sources, counts, strict=True) for _ in range(count)],
        )
        if max(counts, default=0) < 2:
            return rows
        values = metric.value(rows) * (1 if metric.higher_is_better else -1)
        spans = zip(np.cumsum(counts) - counts, counts, strict=True)
        return rows[[first + int(values[first : first + count].argmax()) for first, count in spans]]


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
    """Score outputs and baselines against the same references.

    Args:
        metric: scores the lines.
        hypotheses, references, sources: as for `Metric.score`.
        baselines: the outputs of each baseline.

    Raises:
        DataError: as `Metric.score`.

    Example:
        >>> from weft.metrics.accuracy import Accuracy
        >>> found = scored(Accuracy(), ["a", "b"], ["a", "a"], baselines={"always a": ["a", "a"]})
        >>> found.score.value, dict(found.baselines)
        (0.5, {'always a': 1.0})
    """
    return of_lines(hypotheses, references, sources, baselines).scored(metric)


def of_rows(
    metric: Metric, statistics: np.ndarray, *, baselines: Mapping[str, float], items: str = ""
) -> ScoreWithBaselines:
    """Like `scored`, from statistics [N, K] and the scores of the baselines."""
    return ScoreWithBaselines(with_interval(metric, statistics), baselines, metric, statistics, items)


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
