"""Bootstrap confidence intervals: resample the test set a thousand times and look at the spread.

Nothing is tokenised twice, because a resample is one weight per row of a metric's statistics. The draws are
sacrebleu's, so the same seed gives its intervals and p-values.
Read next: metric.py; bylength.py, intervals for short and long sentences.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from weft.errors import ConfigError
from weft.metrics.metric import Metric, MetricScore, check_lines

RESAMPLES = 1000
SEED = 12345
DRAWN = 1 << 16  # lines of resamples drawn together


class PairedComparison(NamedTuple):
    """Two systems on the same lines.

    Fields:
        first, second: their scores with intervals.
        difference: second - first.
        p_value: probability of a difference this large by chance alone, two-sided.

    Example:
        >>> from weft.metrics import Accuracy, compare
        >>> found = compare(Accuracy(), ["a", "b"], ["a", "a"], ["a", "b"], resamples=100)
        >>> found.first.value, found.second.value, found.difference
        (1.0, 0.5, -0.5)
    """

    first: MetricScore
    second: MetricScore
    difference: float
    p_value: float


def confidence(
    metric: Metric,
    hypotheses: Sequence[str],
    references: Sequence[str],
    sources: Sequence[str] | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> MetricScore:
    """The metric's score with its 95 % confidence interval.

    Args:
        hypotheses, references, sources: as for `Metric.score`.
        resamples: number of test sets drawn.
        seed: of the draws.

    Raises:
        DataError: as `Metric.score`; ConfigError: no resamples.

    Source: Koehn 2004, "Statistical significance tests for machine translation evaluation".

    Example:
        >>> from weft.metrics.accuracy import Accuracy
        >>> score = confidence(Accuracy(), ["a", "b", "c", "d"], ["a", "b", "c", "x"])
        >>> score.value, score.low, score.high
        (0.75, 0.25, 1.0)
    """
    check_lines(hypotheses, references, sources)
    metric = metric.for_references(references)
    statistics = metric.rows(hypotheses, references, sources)
    return with_interval(metric, statistics, resamples=resamples, seed=seed)


def with_interval(
    metric: Metric, statistics: np.ndarray, *, resamples: int = RESAMPLES, seed: int = SEED
) -> MetricScore:
    """Like `confidence`, from statistics [N, K].

    Raises:
        ConfigError: no resamples.

    Example:
        >>> from weft.metrics import Accuracy
        >>> metric = Accuracy()
        >>> score = with_interval(metric, metric.rows(["a", "b", "c", "d"], ["a", "b", "c", "x"]))
        >>> score.value, score.low, score.high
        (0.75, 0.25, 1.0)
    """
    return _judged(metric, statistics, values_of(metric, [statistics], resamples, seed)[0], seed)


def mean_with_interval(metric: Metric, sets: Sequence[np.ndarray]) -> MetricScore:
    """The mean of a metric over several test sets with its 95 % interval.

    Each set is resampled separately, so all sets weigh the same in every resample.

    Args:
        metric: of the statistics.
        sets: statistics [N_i, K] of each test set.
    """
    values = np.mean([values_of(metric, [rows], RESAMPLES, SEED + n)[0] for n, rows in enumerate(sets)], 0)
    value = float(np.mean([metric.value(rows.sum(0)) for rows in sets]))
    low, high = _ends(values)
    signature = f"{metric.signature()}|mean of {len(sets)} sets|bs:{RESAMPLES}|seed:{SEED}"
    size = sum(map(len, sets))
    return MetricScore(metric.name, value, signature, size, metric.higher_is_better, low, high)


def compare(
    metric: Metric,
    first: Sequence[str],
    second: Sequence[str],
    references: Sequence[str],
    sources: Sequence[str] | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> PairedComparison:
    """Test whether the second system is better than the first; both are scored on the same resamples.

    Args:
        first, second: outputs of two systems for the same sources.

    Raises:
        DataError: as `Metric.score`; ConfigError: no resamples.

    Source: Koehn 2004; the p-value is computed as in Moses' script and `sacrebleu --paired-bs`.

    Example:
        >>> from weft.metrics import Accuracy
        >>> found = compare(Accuracy(), ["a", "b", "c"], ["a", "b", "d"], ["a", "b", "c"])
        >>> round(found.difference, 3)
        -0.333
    """
    check_lines(first, references, sources)
    check_lines(second, references, sources)
    metric = metric.for_references(references)
    rows = [metric.rows(lines, references, sources) for lines in (first, second)]
    return compare_statistics(metric, rows[0], rows[1], resamples=resamples, seed=seed)


def compare_statistics(
    metric: Metric, first: np.ndarray, second: np.ndarray, *, resamples: int = RESAMPLES, seed: int = SEED
) -> PairedComparison:
    """Like `compare`, from two systems' statistics [N, K] of the same lines.

    Raises:
        ConfigError: no resamples.

    Example:
        >>> from weft.metrics import Accuracy
        >>> metric, references = Accuracy(), ["a", "b", "c"]
        >>> first, second = metric.rows(references, references), metric.rows(["a", "b", "d"], references)
        >>> round(compare_statistics(metric, first, second).difference, 3)
        -0.333
    """
    rows = [first, second]
    values = values_of(metric, rows, resamples, seed)
    scores = [_judged(metric, one, drawn, seed) for one, drawn in zip(rows, values, strict=True)]
    difference = scores[1].value - scores[0].value
    spread = np.abs(values[1] - values[0])
    # under the null hypothesis the differences are centred on zero, so subtract their mean first
    larger = int((spread - spread.mean() > abs(difference)).sum())
    return PairedComparison(scores[0], scores[1], difference, (larger + 1) / (resamples + 1))


def values_of(metric: Metric, statistics: list[np.ndarray], resamples: int, seed: int) -> np.ndarray:
    """[systems, resamples] values; every system is scored on the same resamples."""
    if resamples < 1:
        raise ConfigError(f"bootstrap: expected at least 1 resample (1,000 is usual), got {resamples}")
    joined = np.concatenate(statistics, 1)
    totals = np.stack([weights @ joined for weights in _weights(len(joined), resamples, seed)])
    return np.stack([metric.value(part) for part in np.split(totals, len(statistics), axis=1)])


def _weights(count: int, resamples: int, seed: int) -> Iterator[np.ndarray]:
    """How often each line is drawn in each resample; some resamples are drawn together, to save time."""
    generator = np.random.default_rng(seed)
    together = max(1, DRAWN // max(1, count))
    for first in range(0, resamples, together):
        rows = np.arange(min(together, resamples - first))[:, None]
        drawn = generator.integers(count, size=(len(rows), count)) + count * rows
        times = np.bincount(drawn.ravel(), minlength=drawn.size)
        yield from times.reshape(drawn.shape).astype(np.float64)


def _judged(metric: Metric, statistics: np.ndarray, values: np.ndarray, seed: int) -> MetricScore:
    score = metric.summary(statistics)
    if len(statistics) < 2:
        return score  # resampling one item always returns that item, so there is no interval
    low, high = _ends(values)
    return score._replace(signature=f"{score.signature}|bs:{len(values)}|seed:{seed}", low=low, high=high)


def _ends(values: np.ndarray) -> tuple[float, float]:
    values = np.sort(values)
    cut = len(values) // 40  # 2.5 % at either end
    return float(values[cut]), float(values[-1 - cut])
