"""The data of a run for a paired significance test, in a form that JSON can store.

Read next: measured.py; ../../metrics/bootstrap.py, which resamples the items.
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

    kind: str  # name of the metric's file in weft/metrics; empty for a ratio
    name: str
    form: Form  # of a ratio only
    higher_is_better: bool
    statistics: list[list[float]]  # [N, K]
    items: str  # fingerprint of the items; only runs on the same items are tested

    @property
    def metric(self) -> Metric:
        """Computes the score from sums of statistics."""
        if not self.kind:
            return ratio(self.name, "", higher_is_better=self.higher_is_better, form=self.form)
        return rooms.find(weft.metrics, Metric, self.kind)()  # type: ignore[no-any-return]

    @property
    def rows(self) -> np.ndarray:
        """The statistics as an array, [N, K]."""
        return np.asarray(self.statistics, np.float64)


def evidence(items: Items | None) -> Evidence | None:
    """The evidence of these items; None without items, or if their metric is not in weft/metrics."""
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
