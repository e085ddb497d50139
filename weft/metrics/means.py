"""Scores that are a mean over items: an error, a share or a perplexity. Read next: intervals.py."""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from weft.metrics.metric import Metric
from weft.metrics.scored import ScoreWithBaselines, of_rows

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
    """A metric whose value is sum / count over all items, in the given form."""
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
    """The score of items from their sums and counts, with its interval over the items.

    Args:
        sums: [N], for example nats per line.
        counts: [N], for example tokens per line; 1 each by default.
        beside: the sums [N] of baselines that answer each item, by name.
    """
    known = np.ones(len(sums)) if counts is None else counts

    def rows(values: np.ndarray) -> np.ndarray:
        return np.stack([values, known], 1).astype(np.float64)

    lowest = {name: rows(values) for name, values in beside.items()}
    found = of_rows(metric, rows(sums), beside=lowest, baselines=baselines, items=items)
    return found if size is None else found._replace(score=found.score._replace(size=size))
