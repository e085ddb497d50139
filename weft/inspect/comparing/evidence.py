"""What a paired test needs of a run: the statistics of its main score for each test item, in one order.

Read next: measured.py; ../../metrics/bootstrap.py, which draws the items anew.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from weft.metrics.accuracy import Accuracy
from weft.metrics.bleu import Bleu
from weft.metrics.means import Form, ratio
from weft.metrics.metric import Metric
from weft.metrics.rouge_n import Rouge
from weft.metrics.scored import Scored
from weft.metrics.tags import TagAccuracy
from weft.metrics.wer import Wer


class Evidence(NamedTuple):
    """A score's statistics on the items of a split, so plain that JSON can keep them."""

    name: str
    form: Form
    higher_is_better: bool
    statistics: list[list[float]]  # [N, K]
    items: str  # a fingerprint of the items; only runs on the same ones are tested against each other

    @property
    def metric(self) -> Metric:
        """Which computes the score."""
        known: dict[str, Metric] = {
            one.name: one for one in (Bleu(), Accuracy(), TagAccuracy(), Rouge(), Wer())
        }
        return known.get(self.name) or ratio(
            self.name, "", higher_is_better=self.higher_is_better, form=self.form
        )

    @property
    def rows(self) -> np.ndarray:
        """[N, K]."""
        return np.asarray(self.statistics, np.float64)


def evidence(scores: Sequence[Scored]) -> Evidence | None:
    """Of the main score, the first one; None where it has nothing for each item."""
    if not scores or scores[0].metric is None or scores[0].statistics is None:
        return None
    metric = scores[0].metric
    form: Form = getattr(metric, "form", "mean")
    rows = scores[0].statistics.tolist()
    return Evidence(metric.name, form, metric.higher_is_better, rows, scores[0].items)
