"""Runs that differ in their seed alone, against runs of another variant: seeds and items are both chance.

A test of items alone asks whether these two models differ; repeated with other seeds the verdict may turn.
Read next: bootstrap.py, the same for one run each.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from weft.errors import ConfigError
from weft.metrics.bootstrap import RESAMPLES, SEED, values_of
from weft.metrics.metric import Metric


class Difference(NamedTuple):
    """The second variant's mean score minus the first one's.

    Fields:
        low, high: the ends of its 95 % interval.
        p_value: how often chance alone gives a difference as large, two-sided.
    """

    value: float
    low: float
    high: float
    p_value: float


def compare_repeated(
    metric: Metric,
    first: Sequence[np.ndarray],
    second: Sequence[np.ndarray],
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Difference:
    """Is the second variant better than the first, or lucky in its seeds or its test items?

    In each resample the test items are drawn anew once, for all runs alike (paired), and the runs of each
    variant are drawn anew from its own. The spread of k drawn runs is (k - 1)/k too narrow, so their
    deviations are widened by sqrt(k / (k - 1)). With one run a variant this is the paired bootstrap of items,
    which knows nothing of seeds.

    Args:
        metric: of the statistics.
        first, second: of each run the statistics [N, K] of the same items.
        resamples: test sets drawn; seed: of the draws.

    Raises:
        ConfigError: no resamples, no runs, or runs on different numbers of items.

    Source: Davison & Hinkley 1997, "Bootstrap Methods and their Application", section 3.8 (hierarchical
        data); Koehn 2004 for the pairing and the p-value.

    Example:
        >>> from weft.metrics.accuracy import Accuracy
        >>> right, wrong = np.tile([1.0, 1.0], (100, 1)), np.tile([0.0, 1.0], (100, 1))
        >>> compare_repeated(Accuracy(), [wrong, wrong], [right, right]).p_value < 0.05
        True
    """
    runs = [*first, *second]
    if not first or not second or len({len(rows) for rows in runs}) > 1:
        raise ConfigError("compare: expected runs of both variants on the same test items")
    values = values_of(metric, runs, resamples, seed)  # [runs, resamples]
    chance = np.random.default_rng([seed, 1])
    drawn = _over_runs(values[len(first) :], chance) - _over_runs(values[: len(first)], chance)
    scores = [float(metric.value(rows.sum(0))) for rows in runs]
    difference = float(np.mean(scores[len(first) :]) - np.mean(scores[: len(first)]))
    # under the null hypothesis the differences lie round zero: shift them there before comparing
    larger = int((np.abs(drawn - drawn.mean()) >= abs(difference)).sum()) if difference else resamples
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Difference(difference, float(low), float(high), (larger + 1) / (resamples + 1))


def _over_runs(values: np.ndarray, chance: np.random.Generator) -> np.ndarray:
    """[runs, resamples] to [resamples], the mean over runs drawn anew."""
    count, resamples = values.shape
    mean: np.ndarray = values.mean(0)
    if count == 1:
        return mean
    chosen = chance.integers(count, size=(count, resamples))
    away = np.take_along_axis(values, chosen, 0).mean(0) - mean
    widened: np.ndarray = mean + np.sqrt(count / (count - 1)) * away
    return widened
