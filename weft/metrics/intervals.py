"""How sure a score is: its 95 % interval, and tests between two systems, over items, seeds or both.

Every interval and p-value of Weft is computed here, from statistics of items: nothing is tokenised twice.

| question | answer |
|---|---|
| one score, items right or wrong | Wilson's interval |
| any other score | the BCa bootstrap over items, expanded for few items; none below 10 items |
| two systems on the same items | paired approximate randomisation, exact for few differing items |
| two variants with several seeds each | analysis of variance over seeds and items, Student's t |
| the mean over trainings | Student's interval |
| several tests | Holm's correction |

Read next: metric.py, the statistics; scored.py, a score beside its baselines.
"""

import math
from collections.abc import Iterator, Sequence
from functools import cache
from statistics import NormalDist, fmean, stdev
from typing import NamedTuple

import numpy as np

from weft.errors import ConfigError
from weft.metrics.metric import Metric, MetricScore, check_items

RESAMPLES = 1000
SEED = 12345
FEWEST = 10
"""Items that a bootstrap interval needs. It covers about 90 % with 10 items, 94 % with 20, 95 % with 100."""

DRAWN = 1 << 16  # items of resamples drawn together
NORMAL = NormalDist()
Z = NORMAL.inv_cdf(0.975)

RANGES = {
    (0.0, 1.0): (
        "accuracy",
        "f1",
        "right",
        "unknown words",
        "calibration error",
        "auroc",
        "precision",
        "meteor",
    ),
    (0.0, 100.0): ("bleu", "chrf", "chrf2", "rouge-1", "rouge-2", "rouge-l"),
    (0.0, math.inf): (
        "brier",
        "brier score",
        "perplexity",
        "wer",
        "cer",
        "mae",
        "mse",
        "rmse",
        "mase",
        "wape",
    ),
}
"""Endings of the names of scores, by the smallest and the largest value that they can have."""


class PairedComparison(NamedTuple):
    """Two systems on the same items.

    Fields:
        first, second: their scores with intervals.
        difference: second - first.
        p_value: probability of a difference this large if the systems are equally good, two-sided.
        low, high: the ends of the 95 % interval of the difference; infinite for too few items.

    Example:
        >>> from weft.metrics import Accuracy, compare
        >>> found = compare(Accuracy(), ["a", "b"], ["a", "a"], ["a", "b"])
        >>> found.first.value, found.second.value, found.difference, found.p_value
        (1.0, 0.5, -0.5, 1.0)
    """

    first: MetricScore
    second: MetricScore
    difference: float
    p_value: float
    low: float = -math.inf
    high: float = math.inf


class Difference(NamedTuple):
    """The second variant's mean score minus the first one's."""

    value: float
    low: float  # end of its 95 % interval
    high: float
    p_value: float  # of a difference this large if the variants are equally good, two-sided


class MeanOfTrainings(NamedTuple):
    """A mean with the ends of its 95 % interval."""

    value: float
    low: float
    high: float
    repeats: int  # number of trainings

    @property
    def known(self) -> bool:
        """Whether there is an interval: from 0 to 1, it says nothing of a share."""
        return self.repeats > 1 and (self.low, self.high) != (0.0, 1.0)

    def __str__(self) -> str:
        """For example: 0.881 [0.872, 0.89]."""
        if self.known:
            return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"
        few = f" ({self.repeats} trainings are too few for an interval)" if self.repeats > 1 else ""
        return f"{self.value:.4g}{few}"


# One system


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

    Source: see `with_interval`.

    Example:
        >>> from weft.metrics.accuracy import Accuracy
        >>> score = confidence(Accuracy(), ["a", "b", "c", "d"], ["a", "b", "c", "x"])
        >>> score.value, round(score.low, 3), round(score.high, 3)
        (0.75, 0.301, 0.954)
    """
    check_items(hypotheses, references, sources, reads=metric.reads)
    metric = metric.fitted(references, hypotheses)
    statistics = metric.rows(hypotheses, references, sources)
    return with_interval(metric, statistics, resamples=resamples, seed=seed)


def with_interval(
    metric: Metric, statistics: np.ndarray, *, resamples: int = RESAMPLES, seed: int = SEED
) -> MetricScore:
    """The score of statistics [N, K] with its 95 % interval.

    A share of items that are right or wrong has Wilson's interval. Any other score has the bias-corrected and
    accelerated bootstrap interval, expanded by the ratio of Student's to the normal distribution; with fewer
    than FEWEST items, or if all resamples score alike, it has none.

    Raises:
        ConfigError: no resamples.

    Source: Wilson 1927; Efron 1987, "Better Bootstrap Confidence Intervals" (BCa); Hesterberg 2015, "What
        Teachers Should Know About the Bootstrap", section 5.3 (expanded percentiles).

    Example:
        >>> from weft.metrics import Accuracy
        >>> metric = Accuracy()
        >>> score = with_interval(metric, metric.rows(["a", "b", "c", "d"], ["a", "b", "c", "x"]))
        >>> score.value, round(score.low, 3), round(score.high, 3)
        (0.75, 0.301, 0.954)
    """
    check_resamples(resamples)
    score, scale = metric.summary(statistics), _share(metric, statistics)
    if scale:
        low, high = wilson(float(statistics[:, 0].mean()), len(statistics))
        return score._replace(signature=f"{score.signature}|ci:wilson", low=scale * low, high=scale * high)
    if len(statistics) < FEWEST:
        return score
    values = values_of(metric, [statistics], resamples, seed)[0]
    ends = _accelerated(score.value, values, _centred(_left_out(metric, statistics)), len(statistics))
    return _bounded(score, ends, resamples, seed)


def mean_with_interval(metric: Metric, sets: Sequence[np.ndarray]) -> MetricScore:
    """The mean over test sets of statistics [N_i, K] with its 95 % interval; all sets weigh the same."""
    drawn = np.mean([values_of(metric, [rows], RESAMPLES, SEED + n)[0] for n, rows in enumerate(sets)], 0)
    value = float(np.mean([metric.value(rows.sum(0)) for rows in sets]))
    left_out = np.concatenate([_centred(_left_out(metric, rows)) for rows in sets]) / len(sets)
    size, few = sum(map(len, sets)), min(map(len, sets))
    score = MetricScore(
        metric.name,
        value,
        f"{metric.signature()}|mean of {len(sets)} sets",
        size,
        metric.higher_is_better,
    )
    return _bounded(score, _accelerated(value, drawn, left_out, few), len(drawn), SEED)


def wilson(share: float, count: int) -> tuple[float, float]:
    """The 95 % interval of a share of `count` independent items.

    Source: Wilson 1927; Brown, Cai & DasGupta 2001, "Interval Estimation for a Binomial Proportion".
    """
    size = count + Z * Z
    middle = (share * count + Z * Z / 2) / size
    half = Z * math.sqrt(count * share * (1 - share) + Z * Z / 4) / size
    return max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))


# Two systems


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
    """Test whether one of two systems is better than the other, on the same lines.

    Args:
        first, second: outputs of two systems for the same sources.
        references, sources: as for `Metric.score`.
        resamples: random exchanges of the systems' outputs; all of them if there are no more.
        seed: of the draws.

    Raises:
        DataError: as `Metric.score`; ConfigError: no resamples.

    Source: see `compare_statistics`.

    Example:
        >>> from weft.metrics import Accuracy
        >>> found = compare(Accuracy(), ["a", "b", "c"], ["a", "b", "d"], ["a", "b", "c"])
        >>> round(found.difference, 3), found.p_value  # one line differs: it may be either way
        (-0.333, 1.0)
    """
    for lines in (first, second):
        check_items(lines, references, sources, reads=metric.reads)
    metric = metric.fitted(references, first, second)
    rows = [metric.rows(lines, references, sources) for lines in (first, second)]
    return compare_statistics(metric, rows[0], rows[1], resamples=resamples, seed=seed)


def compare_statistics(
    metric: Metric, first: np.ndarray, second: np.ndarray, *, resamples: int = RESAMPLES, seed: int = SEED
) -> PairedComparison:
    """Like `compare`, from two systems' statistics [N, K] of the same items.

    If the systems are equally good, the two outputs of an item may be exchanged. The p-value is the share of
    exchanges with a difference at least as large as the one that was found; identical outputs have 1. The
    interval of the difference is the expanded BCa bootstrap over items, for right and wrong answers that of
    Agresti and Min.

    Raises:
        ConfigError: no resamples.

    Source: Noreen 1989, "Computer-Intensive Methods for Testing Hypotheses"; Riezler & Maxwell 2005, "On Some
        Pitfalls in Automatic Evaluation and Significance Testing for MT", figure 1. That of Koehn 2004, which
        sacrebleu's paired bootstrap computes, is one-sided: it rejects twice as often.

    Example:
        >>> from weft.metrics import Accuracy
        >>> metric, references = Accuracy(), ["a", "b", "c"]
        >>> first, second = metric.rows(references, references), metric.rows(["a", "b", "d"], references)
        >>> round(compare_statistics(metric, first, second).difference, 3)
        -0.333
    """
    check_resamples(resamples)
    if first.shape != second.shape:
        shapes = f"{list(first.shape)} and {list(second.shape)}"
        raise ConfigError(f"compare: expected statistics of the same items, got arrays of shapes {shapes}")
    scores = [with_interval(metric, rows, resamples=resamples, seed=seed) for rows in (first, second)]
    difference = scores[1].value - scores[0].value
    p_value = _exchanged(metric, first, second, difference, resamples, seed)
    low, high = difference_interval(metric, first, second, resamples=resamples, seed=seed)
    return PairedComparison(scores[0], scores[1], difference, p_value, low, high)


def difference_interval(
    metric: Metric, first: np.ndarray, second: np.ndarray, *, resamples: int = RESAMPLES, seed: int = SEED
) -> tuple[float, float]:
    """The 95 % interval of the second system's score minus the first one's, from statistics [N, K].

    Infinite for fewer than FEWEST items that are not right or wrong. It holds 0 where the exact test of the
    items that differ does not reject at 5 %.

    Source: see `compare_statistics`.
    """
    scale = _share(metric, np.concatenate([first, second]))
    if scale:
        apart = second[:, 0] - first[:, 0]
        gained, lost = int((apart > 0).sum()), int((apart < 0).sum())
        low, high = _paired_shares(gained, lost, len(first))
        return _with_zero(scale * low, scale * high, _sign_test(gained, lost))
    if len(first) < FEWEST:
        return -math.inf, math.inf
    drawn = values_of(metric, [first, second], resamples, seed)
    if not np.isfinite(drawn).all():
        return -math.inf, math.inf
    apart = _centred(_left_out(metric, second)) - _centred(_left_out(metric, first))
    found = float(metric.value(second.sum(0)) - metric.value(first.sum(0)))
    ends = _accelerated(found, drawn[1] - drawn[0], apart, len(first)) or (found, found)
    return _with_zero(*ends, _least([first, second]))


def compare_repeated(
    metric: Metric,
    first: Sequence[np.ndarray],
    second: Sequence[np.ndarray],
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Difference:
    """Test whether one of two variants is better, or was lucky in its seeds or test items.

    Both are random: an analysis of variance estimates how much the scores vary between the seeds of a variant
    (s^2) and, by the jackknife, how much the items that all runs share move them:

        V = s^2 (1/k_1 + 1/k_2) + max(0, C_1 + C_2 - 2 C_12),    t = difference / sqrt(V)

    where C is the covariance over items of two runs of one variant, C_12 that of runs of both. t has
    Student's distribution with Satterthwaite's degrees of freedom. With one run per variant this is
    `compare_statistics`, which ignores seeds.

    Args:
        metric: of the statistics.
        first, second: statistics [N, K] of each run, on the same items.
        resamples, seed: as for `compare_statistics`; several runs need no draws.

    Raises:
        ConfigError: no resamples, no runs, or runs on different numbers of items.

    Source: Obuchowski & Rockette 1995; Hillis 2014, "A marginal-mean ANOVA approach for analyzing multireader
        multicase radiological imaging data", for readers (seeds) that belong to one treatment (variant).

    Example:
        >>> from weft.metrics.accuracy import Accuracy
        >>> right, wrong = np.tile([1.0, 1.0], (100, 1)), np.tile([0.0, 1.0], (100, 1))
        >>> compare_repeated(Accuracy(), [wrong, wrong], [right, right]).p_value < 0.05
        True
    """
    runs, split = [*first, *second], len(first)
    if not first or not second or len({len(rows) for rows in runs}) > 1:
        raise ConfigError("compare: expected runs of both variants on the same test items")
    check_resamples(resamples)
    if len(runs) == 2:
        pair = compare_statistics(metric, runs[0], runs[1], resamples=resamples, seed=seed)
        return Difference(pair.difference, pair.low, pair.high, pair.p_value)
    scores = np.array([float(metric.value(rows.sum(0))) for rows in runs])
    sides, count = (scores[:split], scores[split:]), len(runs[0])
    difference = float(sides[1].mean() - sides[0].mean())
    if count < 2 or not math.isfinite(difference):
        return Difference(difference, -math.inf, math.inf, 1.0)
    influence = np.stack([_centred(_left_out(metric, rows)) for rows in runs])  # [runs, N]
    spread = _variance(sides, (count - 1) / count * influence @ influence.T, count)
    least, error = _least(runs), math.sqrt(spread.value)
    half = student_quantile(spread.freedom) * error
    p_value = max(least, student_tail(abs(difference) / error, spread.freedom)) if error else least
    return Difference(difference, *_with_zero(difference - half, difference + half, p_value), p_value)


class _Variance(NamedTuple):
    value: float
    freedom: float


def _variance(sides: Sequence[np.ndarray], shared: np.ndarray, count: int) -> _Variance:
    """Of the difference of two variants, from the covariance [runs, runs] of the scores over items."""
    split, runs = len(sides[0]), len(shared)
    seeds = sum(float(np.square(one - one.mean()).sum()) for one in sides) / (runs - 2)
    seeds *= sum(1 / len(one) for one in sides)
    blocks = [shared[:split, :split], shared[split:, split:]]
    within = [(one.sum() - np.trace(one)) / (len(one) * (len(one) - 1)) for one in blocks if len(one) > 1]
    across = shared[:split, split:].mean()
    items = max(0.0, 2 * float(np.mean(within) - across))
    # `items` is a difference of covariances: what the items of one run alone contribute makes it uncertain,
    # by its own size at most
    pairs = sum(len(one) * (len(one) - 1) / 2 for one in sides)
    own = float(np.diag(shared).mean() - across)
    noise = 4 * own**2 * (1 / pairs + 1 / blocks[0].shape[0] / blocks[1].shape[0]) / (count - 1)
    uncertain = items**2 / (count - 1) + min(items**2, noise)
    value = seeds + items
    degrees = value**2 / (seeds**2 / (runs - 2) + uncertain) if value else 1.0
    return _Variance(value, max(1.0, degrees))


# Several trainings, several tests


def mean_of(scores: Sequence[float], *, overlap: float = 0.0, name: str = "") -> MeanOfTrainings:
    """The mean of the scores of several trainings and its 95 % interval.

    Source: Nadeau & Bengio 2003, "Inference for the Generalization Error", section 3, for `overlap`.
    """
    value, count = fmean(scores), len(scores)
    if count == 1:
        return MeanOfTrainings(value, value, value, 1)
    half = student_quantile(count - 1) * stdev(scores) * math.sqrt(1 / count + overlap)
    return MeanOfTrainings(value, *_cut(value - half, value + half, name), count)


def mean_over_runs(scores: Sequence[MetricScore]) -> tuple[float, float]:
    """The 95 % interval of the mean score of several seeds on the same items.

    The variance of the mean is that of its seeds and that of the items, which all runs share; the second is
    taken from the intervals of the runs.
    """
    values = [one.value for one in scores]
    seeds = stdev(values) ** 2 / len(values)
    items = fmean((one.high - one.low) / 2 for one in scores if one.low is not None and one.high is not None)
    variance = seeds + (items / Z) ** 2
    if variance == 0:
        return values[0], values[0]
    fewest = min(one.size for one in scores)
    degrees = variance**2 / (seeds**2 / (len(values) - 1) + (items / Z) ** 4 / max(1, fewest - 1))
    half = student_quantile(degrees) * math.sqrt(variance)
    return _cut(fmean(values) - half, fmean(values) + half, scores[0].name)


def _cut(low: float, high: float, name: str) -> tuple[float, float]:
    """An interval inside the range of the score."""
    for (least, most), endings in RANGES.items():
        if name.lower().endswith(endings):
            return max(least, low), min(most, high)
    return low, high


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's correction of several p-values, in their order.

    Source: Holm 1979, "A Simple Sequentially Rejective Multiple Test Procedure".

    Example:
        >>> [round(p, 3) for p in holm([0.012, 0.020, 0.030, 0.400])]
        [0.048, 0.06, 0.06, 0.4]
    """
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    found, largest = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * p_values[place]))
        found[place] = largest
    return found


def student_tail(t: float, freedom: float) -> float:
    """P(|T| > t) for Student's distribution.

    With T = sqrt(v) tan(a) the density is proportional to cos(a)^(v - 1), which is integrated from where it
    begins to where nothing is left of it.
    """
    start = math.atan(t / math.sqrt(freedom))
    end = math.atan(math.sqrt(math.expm1(min(700.0, 2 * 46 / freedom))))  # cos^v = 1e-20
    if start >= end:
        return 0.0
    nodes, weights = _nodes()
    angles = start + (end - start) * (nodes + 1) / 2
    mass = float(weights @ np.cos(angles) ** (freedom - 1)) * (end - start) / 2
    log_total = math.lgamma(freedom / 2) - math.lgamma((freedom + 1) / 2) + 0.5 * math.log(math.pi)
    return min(1.0, 2 * mass / math.exp(log_total))


@cache
def _nodes() -> tuple[np.ndarray, np.ndarray]:
    """Of a Gauss-Legendre quadrature over [-1, 1]."""
    return np.polynomial.legendre.leggauss(100)


def student_quantile(freedom: float, tail: float = 0.05) -> float:
    """t such that P(|T| > t) = tail; by default the half width of a 95 % interval in standard errors."""
    low, high = 0.0, 1.0
    while student_tail(high, freedom) > tail:
        low, high = high, 2 * high
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if student_tail(middle, freedom) > tail else (low, middle)
    return high


# How it is computed


def check_resamples(resamples: int) -> None:
    """Check that there is a resample."""
    if resamples < 1:
        raise ConfigError(f"bootstrap: expected at least 1 resample (1,000 is usual), got {resamples}")


def values_of(metric: Metric, statistics: Sequence[np.ndarray], resamples: int, seed: int) -> np.ndarray:
    """[systems, resamples] values; every system is scored on the same resamples."""
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


def _bounded(score: MetricScore, ends: tuple[float, float] | None, resamples: int, seed: int) -> MetricScore:
    if ends is None:
        return score
    signature = f"{score.signature}|bca:{resamples}|seed:{seed}"
    return score._replace(signature=signature, low=ends[0], high=ends[1])


def _share(metric: Metric, statistics: np.ndarray) -> float:
    """The value of an item that is right, if items are right or wrong and the value is their mean; else 0."""
    if (
        metric.graded
        or not metric.higher_is_better
        or statistics.shape[1] != 2
        or not (statistics[:, 1] == 1).all()
    ):
        return 0.0
    if not np.isin(statistics[:, 0], (0.0, 1.0)).all():
        return 0.0
    none, half, one = metric.value(np.array([[0.0, 2.0], [1.0, 2.0], [2.0, 2.0]]))
    return float(one) if none == 0 and math.isclose(2 * half, one) else 0.0


def _least(runs: Sequence[np.ndarray]) -> float:
    """The smallest p-value that any exchange of the items that differ can have."""
    differing = np.any([(runs[0] != rows).any(1) for rows in runs[1:]], 0).sum()
    return min(1.0, 2.0 ** (1 - int(differing)))


def _sign_test(gained: int, lost: int) -> float:
    """The exact two-sided p-value of items gained and lost, of which each is as likely."""
    count = gained + lost
    ways = np.log(np.arange(count, 0, -1) / np.arange(1, count + 1)).cumsum()  # of choosing 1, 2, ...
    logs = np.append(0.0, ways)[: min(gained, lost) + 1] - count * math.log(2)
    return min(1.0, 2 * float(np.exp(logs).sum()))


def _with_zero(low: float, high: float, p_value: float) -> tuple[float, float]:
    """An interval of a difference, which holds 0 if a test does not reject it."""
    return (min(low, 0.0), max(high, 0.0)) if p_value > 0.05 else (low, high)


def _paired_shares(gained: int, lost: int, count: int) -> tuple[float, float]:
    """The 95 % interval of a difference of two shares of the same items.

    Source: Agresti & Min 2005, "Simple improved confidence intervals for comparing matched proportions".
    """
    more, less, size = gained + 0.5, lost + 0.5, count + 2
    middle = (more - less) / size
    half = Z * math.sqrt(more + less - (more - less) ** 2 / size) / size
    return max(-1.0, middle - half), min(1.0, middle + half)


def _left_out(metric: Metric, statistics: np.ndarray) -> np.ndarray:
    """[N] values without each item."""
    found: np.ndarray = metric.value(statistics.sum(0) - statistics)
    return found


def _centred(values: np.ndarray) -> np.ndarray:
    found: np.ndarray = values.mean() - values
    return found


def _accelerated(
    value: float, drawn: np.ndarray, influence: np.ndarray, count: int
) -> tuple[float, float] | None:
    """The ends of the expanded BCa interval; None for too few items, or if all resamples score alike.

    `influence` [N] is the mean of the values without one item, minus the value without this one.
    """
    less = float((drawn < value).mean() + (drawn == value).mean() / 2)
    if not (np.isfinite(drawn).all() and np.isfinite(influence).all()):
        return None
    if count < FEWEST or not 0 < less < 1 or drawn.min() == drawn.max():
        return None
    bias = NORMAL.inv_cdf(less)
    size = float(np.square(influence).sum())
    acceleration = float((influence**3).sum()) / (6 * size**1.5) if size else 0.0
    reach = student_quantile(count - 1) * math.sqrt(count / (count - 1))
    ordered, ends = np.sort(drawn), []
    for side in (bias - reach, bias + reach):
        place = NORMAL.cdf(bias + side / max(1e-9, 1 - acceleration * side))
        ends.append(float(ordered[min(len(ordered) - 1, int(place * len(ordered)))]))
    return ends[0], ends[1]


def _exchanged(
    metric: Metric, first: np.ndarray, second: np.ndarray, difference: float, resamples: int, seed: int
) -> float:
    """The p-value: the share of exchanges between the systems whose difference is at least as large."""
    totals, apart = (first.sum(0), second.sum(0)), second - first
    apart = apart[(apart != 0).any(1)]  # exchanging equal outputs changes nothing
    every = 2 ** min(len(apart), 62) <= resamples
    larger = 0
    for exchanged in _every_choice(len(apart)) if every else _choices(len(apart), resamples, seed):
        moved = exchanged @ apart
        values = metric.value(totals[1] - moved) - metric.value(totals[0] + moved)
        # rounding must not turn a tie into a smaller difference; one that is not defined is not smaller
        larger += int((~(np.abs(values) < abs(difference) * (1 - 1e-9))).sum())
    return larger / 2 ** len(apart) if every else (larger + 1) / (resamples + 1)


def _every_choice(count: int) -> Iterator[np.ndarray]:
    yield (np.arange(2**count)[:, None] >> np.arange(count) & 1).astype(np.float64)


def _choices(count: int, resamples: int, seed: int) -> Iterator[np.ndarray]:
    generator = np.random.default_rng(seed)
    together = max(1, DRAWN // count)
    for first in range(0, resamples, together):
        yield generator.integers(2, size=(min(together, resamples - first), count)).astype(np.float64)
