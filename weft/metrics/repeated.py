"""Compare two variants, each trained with several seeds; both seeds and test items are random.

A test over items alone compares two trained models; with other seeds its verdict may change.
Read next: bootstrap.py, the same for one run per variant.
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
        p_value: probability of a difference this large by chance alone, two-sided.
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
    """Test whether the second variant is better than the first, or lucky in its seeds or test items.

    Each resample draws test items once for all runs (paired) and draws runs from each variant's own. The
    variance of k drawn runs is too small by a factor (k - 1)/k, so their deviations are scaled by
    sqrt(k / (k - 1)). With one run per variant this is the paired bootstrap over items, which ignores seeds.

    Args:
        metric: of the statistics.
        first, second: statistics [N, K] of each run, on the same items.
        resamples: number of test sets drawn.
        seed: of the draws.

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
    # under the null hypothesis the differences are centred on zero, so subtract their mean first
    larger = int((np.abs(drawn - drawn.mean()) >= abs(difference)).sum()) if difference else resamples
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Difference(difference, float(low), float(high), (larger + 1) / (resamples + 1))


def _over_runs(values: np.ndarray, chance: np.random.Generator) -> np.ndarray:
    """[runs, resamples] to [resamples]: the mean over resampled runs."""
    count, resamples = values.shape
    mean: np.ndarray = values.mean(0)
    if count == 1:
        return mean
    chosen = chance.integers(count, size=(count, resamples))
    away = np.take_along_axis(values, chosen, 0).mean(0) - mean
    widened: np.ndarray = mean + np.sqrt(count / (count - 1)) * away
    return widened
