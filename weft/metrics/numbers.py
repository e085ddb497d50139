"""Scores of numbers and of forecasts, as in scikit-learn and utilsforecast.

Outputs and references are arrays [N] or [N, H], H steps ahead; values that were not measured are NaN. Outputs
may also be `ForecastWindows`, with quantiles and the naive errors that some scores need.
Read next: baseline.py, the baselines of forecasts; intervals.py.
"""

from abc import abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from weft.errors import DataError
from weft.metrics.metric import ItemKind, Metric


@dataclass(frozen=True)
class ForecastWindows:
    """Forecasts of N windows.

    Attributes:
        best: [N, H] point forecasts.
        quantiles: [N, H, Q] ascending, if any.
        levels: [Q] of the quantiles.
        naive: [N] mean absolute error of repeating the last season in the window's training part, for MASE.
        naive_squared: [N] its mean squared error, for RMSSE. Both are NaN where the series never changed.

    Example:
        >>> windows = ForecastWindows(np.array([[1.0, 2.0]]), naive=np.array([1.0]))
        >>> len(windows)
        1
    """

    best: np.ndarray
    quantiles: np.ndarray | None = None
    levels: Sequence[float] = ()
    naive: np.ndarray | None = None
    naive_squared: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.best)

    def pinball(self, true: np.ndarray) -> np.ndarray:
        """[N, H] mean over levels τ of 2 max(τ e, (τ - 1) e), with the errors e of the quantiles.

        It approximates the CRPS. A point forecast counts as its own quantile at level 0.5.
        """
        quantiles, levels = self.quantiles, self.levels
        if quantiles is None:
            quantiles, levels = self.best[..., None], (0.5,)
        error, tau = true[..., None] - quantiles, np.asarray(levels)
        return 2 * np.maximum(tau * error, (tau - 1) * error).mean(-1)  # type: ignore[no-any-return]


class NumberMetric(Metric):
    """A score of numbers: sums over the values that were measured."""

    reads: ClassVar[tuple[ItemKind, ...]] = ("numbers",)
    higher_is_better = False
    below: ClassVar[int] = -1
    """The term that the first one is divided by: the last is the number of values."""

    def statistics(self, hypotheses: Any, references: Any, sources: Any = None) -> np.ndarray:
        found = hypotheses
        if not isinstance(found, ForecastWindows):
            found = ForecastWindows(self._array("hypotheses", hypotheses))
        true = self._array("references", references)
        if found.best.shape != true.shape:
            raise DataError(
                f"{self.key}: expected forecasts of the shape of the references, {list(true.shape)}, "
                f"got {list(found.best.shape)}"
            )
        known = np.isfinite(true)
        with np.errstate(invalid="ignore"):  # of forecasts that are no numbers
            sums = [np.where(known, one, 0.0) for one in (*self.terms(found, true), known)]
        return np.stack([one.reshape(len(true), -1).sum(1) for one in sums], 1)

    @abstractmethod
    def terms(self, found: ForecastWindows, true: np.ndarray) -> Sequence[np.ndarray]:
        """What is summed for each measured value: arrays that broadcast to [N, H] or [N]; the count is added.

        `true` is NaN where nothing was measured.
        """

    def value(self, totals: np.ndarray) -> np.ndarray:
        """NaN of no values, or where all of those below are 0."""
        return quotient(totals[..., 0], totals[..., self.below])

    def signature(self) -> str:
        return "unit:value"

    def _array(self, name: str, items: Any) -> np.ndarray:
        try:
            return np.asarray(items, np.float64)
        except (ValueError, TypeError, RuntimeError) as error:
            raise DataError(
                f"{self.key}: {name}: expected numbers, or rows of as many numbers each, got {error}"
            ) from None


def quotient(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """The quotient of sums; NaN where nothing, or only zeros, were summed below."""
    return np.where(below > 0, above / np.where(below > 0, below, 1), np.nan)


class ScaledMetric(NumberMetric):
    """An error over the naive one of the training part; NaN if no series ever changed there."""

    reads = ("forecasts",)
    below = 1

    def over(self, error: np.ndarray, naive: np.ndarray | None, name: str) -> Sequence[np.ndarray]:
        """The scaled errors, and where they are known."""
        if naive is None:
            raise DataError(
                f"{self.key}: expected ForecastWindows with {name}, got none; see weft.metrics.numbers"
            )
        if len(naive) != len(error):
            raise DataError(f"{self.key}: expected {name} of {len(error)} windows, got {len(naive)}")
        naive = naive.reshape(-1, *[1] * (error.ndim - 1))
        known = naive > 0
        return [np.where(known, error / np.where(known, naive, 1), 0), known]

    def signature(self) -> str:
        return "unit:naive error of the training part"


class Mae(NumberMetric):
    """Mean absolute error: mean |y - f|.

    Example:
        >>> Mae()([1.0, 2.0], [1.0, 4.0]).value
        1.0
    """

    name = "MAE"

    def terms(self, found: ForecastWindows, true: np.ndarray) -> Sequence[np.ndarray]:
        return [np.abs(found.best - true)]


class Mse(NumberMetric):
    """Mean squared error: mean (y - f)².

    Example:
        >>> Mse()([1.0, 2.0], [1.0, 4.0]).value
        2.0
    """

    name = "MSE"

    def terms(self, found: ForecastWindows, true: np.ndarray) -> Sequence[np.ndarray]:
        return [np.square(found.best - true)]


class Rmse(NumberMetric):
    """Root mean squared error: sqrt(mean (y - f)²).

    Example:
        >>> round(Rmse()([1.0, 2.0], [1.0, 4.0]).value, 4)
        1.4142
    """

    name = "RMSE"

    def terms(self, found: ForecastWindows, true: np.ndarray) -> Sequence[np.ndarray]:
        return [np.square(found.best - true)]

    def value(self, totals: np.ndarray) -> np.ndarray:
        return np.sqrt(super().value(totals))  # type: ignore[no-any-return]


class Wape(NumberMetric):
    """Weighted absolute percentage error: 100 Σ |y - f| / Σ |y|; NaN if all values are 0.

    Source: Kolassa & Schütz 2007, "Advantages of the MAD/Mean Ratio over the MAPE".

    Example:
        >>> Wape()([1.0, 2.0], [1.0, 4.0]).value
        40.0
    """

    name = "WAPE"
    below = 1

    def terms(self, found: ForecastWindows, true: np.ndarray) -> Sequence[np.ndarray]:
        return [np.abs(found.best - true), np.abs(true)]

    def value(self, totals: np.ndarray) -> np.ndarray:
        return 100 * super().value(totals)

    def signature(self) -> str:
        return "unit:%"


class Smape(NumberMetric):
    """Symmetric mean absolute percentage error: 100 mean 2 |y - f| / (|y| + |f|), 0 where both are 0.

    Source: Makridakis 1993, "Accuracy Measures: Theoretical and Practical Concerns"; as in M4.

    Example:
        >>> Smape()([1.0, 0.0], [3.0, 0.0]).value
        50.0
    """

    name = "sMAPE"

    def terms(self, found: ForecastWindows, true: np.ndarray) -> Sequence[np.ndarray]:
        size = np.abs(found.best) + np.abs(true)
        return [200 * np.abs(found.best - true) / np.where(size > 0, size, 1)]

    def signature(self) -> str:
        return "unit:%"


class Rmsle(NumberMetric):
    """Root mean squared logarithmic error: sqrt(mean (ln(1 + y) - ln(1 + f))²); values below 0 count as 0.

    Example:
        >>> round(Rmsle()([0.0, 3.0], [0.0, 1.0]).value, 4)  # ln 4 - ln 2, over sqrt 2
        0.4901
    """

    name = "RMSLE"

    def terms(self, found: ForecastWindows, true: np.ndarray) -> Sequence[np.ndarray]:
        logs = [np.log1p(np.maximum(one, 0)) for one in (found.best, true)]
        return [np.square(logs[0] - logs[1])]

    def value(self, totals: np.ndarray) -> np.ndarray:
        return np.sqrt(super().value(totals))  # type: ignore[no-any-return]

    def signature(self) -> str:
        return "unit:value|below 0:as 0"


class R2(NumberMetric):
    """Coefficient of determination: 1 - Σ (y - f)² / Σ (y - mean y)², over all values together.

    1 is best; the mean of the references has 0, worse forecasts are below 0. NaN if no reference differs.

    Example:
        >>> R2()([1.0, 2.0, 4.0], [1.0, 2.0, 3.0]).value
        0.5
    """

    name = "R2"
    higher_is_better = True
    centre = 0.0  # near the references, because squares of large numbers would hide how they vary

    def fitted(self, references: Any, *outputs: Any) -> Self:
        known, found = self._array("references", references), copy(self)
        found.centre = float(np.median(known[np.isfinite(known)])) if np.isfinite(known).any() else 0.0
        return found

    def terms(self, found: ForecastWindows, true: np.ndarray) -> Sequence[np.ndarray]:
        return [np.square(found.best - true), true - self.centre, np.square(true - self.centre)]

    def value(self, totals: np.ndarray) -> np.ndarray:
        error, value, square, count = np.moveaxis(totals, -1, 0)
        spread = square - value**2 / np.maximum(count, 1)
        return 1 - quotient(error, np.where(spread > 1e-13 * square, spread, 0))


class Mase(ScaledMetric):
    """Mean absolute scaled error: |y - f| over the naive error of the training part, mean over values.

    Below 1 is better than repeating the last season was in the training part.

    Source: Hyndman & Koehler 2006.

    Example:
        >>> found = ForecastWindows(np.array([[1.0, 2.0]]), naive=np.array([4.0]))
        >>> Mase()(found, [[1.0, 4.0]]).value
        0.25
    """

    name = "MASE"

    def terms(self, found: ForecastWindows, true: np.ndarray) -> Sequence[np.ndarray]:
        return self.over(np.abs(found.best - true), found.naive, "naive")


class Rmsse(ScaledMetric):
    """Root mean squared scaled error: sqrt(mean (y - f)² / naive squared error of the training part).

    Source: Makridakis, Spiliotis & Assimakopoulos 2022, the M5 competition, for naive errors of one step.

    Example:
        >>> found = ForecastWindows(np.array([[1.0, 2.0]]), naive_squared=np.array([8.0]))
        >>> Rmsse()(found, [[1.0, 4.0]]).value
        0.5
    """

    name = "RMSSE"

    def terms(self, found: ForecastWindows, true: np.ndarray) -> Sequence[np.ndarray]:
        return self.over(np.square(found.best - true), found.naive_squared, "naive_squared")

    def value(self, totals: np.ndarray) -> np.ndarray:
        return np.sqrt(super().value(totals))  # type: ignore[no-any-return]


class Pinball(NumberMetric):
    """The mean pinball loss of quantiles, doubled, so that a median has its absolute error.

    A point forecast counts as its own quantile at level 0.5.

    Source: Koenker & Bassett 1978, "Regression Quantiles".

    Example:
        >>> found = ForecastWindows(np.array([5.0]), np.array([[5.0, 2.0]]), (0.1, 0.9))
        >>> round(Pinball()(found, [3.0]).value, 6)  # 2 too high at 0.1, and 1 too low at 0.9
        2.7
    """

    name = "pinball"

    def terms(self, found: ForecastWindows, true: np.ndarray) -> Sequence[np.ndarray]:
        return [found.pinball(true)]


class Crps(NumberMetric):
    """CRPS from quantiles, over the mean size of the values: Σ_t mean_τ 2 ρ_τ(y - q_τ) / Σ |y|.

    The continuous ranked probability score is the integral of twice the pinball loss ρ over all levels τ,
    which the given levels approximate. A point forecast counts as its own quantile at level 0.5.

    Source: Gneiting & Ranjan 2011, eq. 8; scaled as in GluonTS and utilsforecast (`scaled_crps`).

    Example:
        >>> Crps()([1.0, 2.0], [1.0, 4.0]).value
        0.4
    """

    name = "scaled CRPS"
    below = 1

    def terms(self, found: ForecastWindows, true: np.ndarray) -> Sequence[np.ndarray]:
        return [found.pinball(true), np.abs(true)]

    def signature(self) -> str:
        return "unit:mean size of the values|of:the given quantiles"


class Spearman(NumberMetric):
    """100 times the correlation of the ranks, -100..100; 0 if all values of a list are equal.

    The statistics are pseudo-values, the score plus N times its derivative by the weight of a value: their
    mean is the score (the infinitesimal jackknife).

    Source: Spearman 1904; Efron 1982, "The Jackknife, the Bootstrap and Other Resampling Plans", section 6.3.

    Example:
        >>> round(Spearman()([1.0, 2.0, 3.0], [10.0, 30.0, 20.0]).value, 6)
        50.0
    """

    name, higher_is_better = "Spearman x 100", True

    def statistics(self, hypotheses: Any, references: Any, sources: Any = None) -> np.ndarray:
        """[N, 2] each item's part of the mean: a count of 1 would say that items are right or wrong."""
        rows = super().statistics(hypotheses, references)
        return rows / max(1.0, rows[:, 1].sum())

    def terms(self, found: ForecastWindows, true: np.ndarray) -> Sequence[np.ndarray]:
        known = np.isfinite(true)
        values = np.zeros(true.shape)
        values[known] = _pseudo_values(found.best[known], true[known])
        return [values]

    def value(self, totals: np.ndarray) -> np.ndarray:
        return 100 * np.clip(super().value(totals), -1, 1)  # type: ignore[no-any-return]

    def signature(self) -> str:
        return "ties:mean rank"


def ranks(values: np.ndarray) -> np.ndarray:
    """[N] ranks from 1; equal values share their mean rank."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = counts.cumsum()
    return (ends - (counts - 1) / 2)[which]  # type: ignore[no-any-return]


def _pseudo_values(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """[N] whose mean is the correlation; a weight moves its own term, and the ranks of all others."""
    if np.isnan(first).any():  # what is no number has no rank
        return np.full(len(first), np.nan)
    a, b = (ranks(values) - (len(values) + 1) / 2 for values in (first, second))
    length = float(np.sqrt((a @ a) * (b @ b)))
    if not length:
        return np.zeros(len(first))
    together = a * b + _above(first, b) + _above(second, a)
    alone = [(one**2 + 2 * _above(values, one)) / (one @ one) for values, one in ((first, a), (second, b))]
    value = float(a @ b) / length
    found: np.ndarray = value + len(first) * (together / length - value / 2 * (alone[0] + alone[1]))
    return found


def _above(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """[N] half the weights of larger values less half those of smaller ones."""
    order = np.argsort(values)
    sums = np.append(0.0, weights[order].cumsum())
    first, last = (np.searchsorted(values[order], values, side) for side in ("left", "right"))  # type: ignore[call-overload]
    return (sums[-1] - sums[last] - sums[first]) / 2  # type: ignore[no-any-return]
