"""How sure is a score? Draw the test set anew from itself a thousand times and look at the spread.

Nothing is tokenised twice: a resample is a weight for each row of a metric's statistics. The draws are
those of sacrebleu, so with the same seed the intervals and p-values are its too.
Read next: metric.py; bylength.py, which asks the same for short and long sentences.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from weft.errors import ConfigError
from weft.metrics.metric import Metric, Score, check_lines

RESAMPLES = 1000
SEED = 12345


class Comparison(NamedTuple):
    """Two systems on the same lines.

    Fields:
        first, second: their scores with intervals.
        difference: second - first.
        p_value: how often chance alone gives a difference as large, two-sided; small = it is real.
    """

    first: Score
    second: Score
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
) -> Score:
    """The metric's score with the ends of its 95 % confidence interval.

    Args:
        hypotheses, references, sources: as for `Metric.score`.
        resamples: test sets drawn; seed: of the draws.

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
    statistics = metric.statistics(hypotheses, references, sources)
    return with_interval(metric, statistics, resamples=resamples, seed=seed)


def with_interval(
    metric: Metric, statistics: np.ndarray, *, resamples: int = RESAMPLES, seed: int = SEED
) -> Score:
    """The same from statistics [N, K] that are known."""
    return _judged(metric, statistics, values_of(metric, [statistics], resamples, seed)[0], seed)


def mean_with_interval(metric: Metric, sets: Sequence[np.ndarray]) -> Score:
    """The mean of a metric over several sets, each of statistics [N_i, K], with its 95 % interval.

    Each set is drawn anew by itself, so that it weighs as much as every other in every resample.
    """
    values = np.mean([values_of(metric, [rows], RESAMPLES, SEED + n)[0] for n, rows in enumerate(sets)], 0)
    value = float(np.mean([metric.value(rows.sum(0)) for rows in sets]))
    low, high = _ends(values)
    signature = f"{metric.signature()}|mean of {len(sets)} sets|bs:{RESAMPLES}|seed:{SEED}"
    size = sum(map(len, sets))
    return Score(metric.name, value, signature, size, metric.higher_is_better, low, high)


def compare(
    metric: Metric,
    first: Sequence[str],
    second: Sequence[str],
    references: Sequence[str],
    sources: Sequence[str] | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Comparison:
    """Is the second system better than the first, or lucky? Both are scored on the same resamples.

    Args:
        first, second: outputs of two systems for the same sources.

    Raises:
        DataError: as `Metric.score`; ConfigError: no resamples.

    Source: Koehn 2004; the p-value is that of Moses' script and of `sacrebleu --paired-bs`.
    """
    check_lines(first, references, sources)
    check_lines(second, references, sources)
    rows = [metric.statistics(lines, references, sources) for lines in (first, second)]
    return compare_statistics(metric, rows[0], rows[1], resamples=resamples, seed=seed)


def compare_statistics(
    metric: Metric, first: np.ndarray, second: np.ndarray, *, resamples: int = RESAMPLES, seed: int = SEED
) -> Comparison:
    """The same from statistics [N, K] of the same lines that are known."""
    rows = [first, second]
    values = values_of(metric, rows, resamples, seed)
    scores = [_judged(metric, one, drawn, seed) for one, drawn in zip(rows, values, strict=True)]
    difference = scores[1].value - scores[0].value
    spread = np.abs(values[1] - values[0])
    # under the null hypothesis the differences lie round zero: shift them there before comparing
    larger = int((spread - spread.mean() > abs(difference)).sum())
    return Comparison(scores[0], scores[1], difference, (larger + 1) / (resamples + 1))


def values_of(metric: Metric, statistics: list[np.ndarray], resamples: int, seed: int) -> np.ndarray:
    """[systems, resamples] values, every system on the same draws of items."""
    if resamples < 1:
        raise ConfigError(f"bootstrap: expected at least 1 resample (1,000 is usual), got {resamples}")
    joined = np.concatenate(statistics, 1)
    totals = np.stack([weights @ joined for weights in _weights(len(joined), resamples, seed)])
    return np.stack([metric.value(part) for part in np.split(totals, len(statistics), axis=1)])


def _weights(count: int, resamples: int, seed: int) -> Iterator[np.ndarray]:
    """How often each of the lines is drawn, one resample at a time so that memory stays flat."""
    generator = np.random.default_rng(seed)
    for _ in range(resamples):
        yield np.bincount(generator.choice(count, count), minlength=count).astype(np.float64)


def _judged(metric: Metric, statistics: np.ndarray, values: np.ndarray, seed: int) -> Score:
    score = metric.summary(statistics)
    if len(statistics) < 2:
        return score  # one item drawn anew is always itself: that is no interval
    low, high = _ends(values)
    return score._replace(signature=f"{score.signature}|bs:{len(values)}|seed:{seed}", low=low, high=high)


def _ends(values: np.ndarray) -> tuple[float, float]:
    """What 95 % of the values lie between."""
    values = np.sort(values)
    cut = len(values) // 40  # 2.5 % at either end
    return float(values[cut]), float(values[-1 - cut])
