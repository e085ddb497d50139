"""What a paired test needs of a run, in a form that JSON can keep.

Read next: measured.py; ../../metrics/bootstrap.py, which draws the items anew.
"""

from typing import NamedTuple

import numpy as np

import weft.metrics
from weft import rooms
from weft.metrics.means import Form, form_of, ratio
from weft.metrics.metric import Metric
from weft.tasks.evaluation import Items


class Evidence(NamedTuple):
    """The statistics of the main score on the items of a split."""

    kind: str  # the metric's file in weft/metrics; empty for a ratio
    name: str
    form: Form  # of a ratio
    higher_is_better: bool
    statistics: list[list[float]]  # [N, K]
    items: str  # a fingerprint of the items; only runs on the same ones are tested against each other

    @property
    def metric(self) -> Metric:
        """Computes the score from sums of statistics."""
        if not self.kind:
            return ratio(self.name, "", higher_is_better=self.higher_is_better, form=self.form)
        return rooms.find(weft.metrics, Metric, self.kind)()  # type: ignore[no-any-return]

    @property
    def rows(self) -> np.ndarray:
        """[N, K]."""
        return np.asarray(self.statistics, np.float64)


def evidence(items: Items | None) -> Evidence | None:
    """Of these items; None without any, or with a metric that is not in weft/metrics."""
    if items is None:
        return None
    metric, rows = items.metric, items.statistics.tolist()
    form = form_of(metric)
    kind = type(metric).__module__.removeprefix("weft.metrics.")
    if form is None and rooms.get(weft.metrics, Metric, kind) is not type(metric):
        return None
    return Evidence(
        "" if form else kind, metric.name, form or "mean", metric.higher_is_better, rows, items.fingerprint
    )
