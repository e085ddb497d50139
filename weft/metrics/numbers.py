"""Scores of numbers and of forecasts, as in scikit-learn and utilsforecast.

Outputs and references are arrays [N] or [N, H], H steps ahead; values that were not measured are NaN. Outputs
may also be `ForecastWindows`, with quantiles and the naive errors that some scores need.
Read next: forecasts.py, the scores that `weft evaluate` always prints; series.py, their baselines.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.errors import DataError
from weft.metrics.metric import Metric
from weft.metrics.series import pinball


@dataclass(frozen=True)
class ForecastWindows:
    """Forecasts of N windows.

    Attributes:
        best: [N, H] point forecasts.
        quantiles: [N, H, Q] ascending, if any.
        levels: [Q] of the quantiles.
        naive: [N] mean absolute error of repeating the last season in the window's training part, for MASE.
        naive_squared: [N] its mean squared error, for RMSSE.

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


class NumberMetric(Metric):
    """A score of numbers: sums over the values that were measured."""

    reads = ("numbers",)
    higher_is_better = False

    def statistics(self, hypotheses: Any, references: Any, sources: Any = None) -> np.ndarray:
        found = (
            hypotheses
            if isinstance(hypotheses, ForecastWindows)
            else ForecastWindows(np.asarray(hypotheses, float))
        )
        true = np.asarray(references, np.float64)
        if found.best.shape != true.shape:
            raise DataError(
                f"{self.key}: expected forecasts of the shape of the references, {list(true.shape)}, "
                f"got {list(found.best.shape)}"
            )
        known = np.isfinite(true).astype(np.float64)
        sums = [np.broadcast_to(one, true.shape) * known for one in self.terms(found, np.nan_to_num(true))]
        return np.stack([one.reshape(len(true), -1).sum(1) for one in (*sums, known)], 1)

    @abstractmethod
    def terms(self, found: ForecastWindows, true: np.ndarray) -> Sequence[np.ndarray]:
        """What is summed for each value: arrays that broadcast to [N, H] or [N]; the count is added."""

    def value(self, totals: np.ndarray) -> np.ndarray:
        """The mean of the first term."""
        found: np.ndarray = totals[..., 0] / np.maximum(totals[..., -1], 1e-300)
        return found

    def signature(self) -> str:
        return "unit:value"

    def needed(self, given: np.ndarray | None, name: str, true: np.ndarray) -> np.ndarray:
        """A naive error beside the values [N, 1] or [N].

        Raises:
            DataError: it was not given.
        """
        if given is None:
            raise DataError(
                f"{self.key}: expected ForecastWindows with {name}, got none; see weft.metrics.numbers"
            )
        return given.reshape(-1, *[1] * (true.ndim - 1))


class Mae(NumberMetric):
    """Mean absolute error: mean |y - f|.

    Example:
        >>> Mae()([1.0, 2.0], [1.0, 4.0]).value
        1.0
    """

    name = "MAE"

    def terms(self, found: ForecastWindows, true: np.ndarray) -> Sequence[np.ndarray]:
        return [np.abs(found.best - true)]


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
    """Weighted absolute percentage error: 100 Σ |y - f| / Σ |y|.

    Source: Kolassa & Schütz 2007, "Advantages of the MAD/Mean Ratio over the MAPE".

    Example:
        >>> Wape()([1.0, 2.0], [1.0, 4.0]).value
        40.0
    """

    name = "WAPE"

    def terms(self, found: ForecastWindows, true: np.ndarray) -> Sequence[np.ndarray]:
        return [np.abs(found.best - true), np.abs(true)]

    def value(self, totals: np.ndarray) -> np.ndarray:
        found: np.ndarray = 100 * totals[..., 0] / np.maximum(totals[..., 1], 1e-300)
        return found

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

    1 is best; the mean of the references has 0, worse forecasts are below 0.

    Example:
        >>> R2()([1.0, 2.0, 4.0], [1.0, 2.0, 3.0]).value
        0.5
    """

    name = "R2"
    higher_is_better = True

    def terms(self, found: ForecastWindows, true: np.ndarray) -> Sequence[np.ndarray]:
        return [np.square(found.best - true), true, np.square(true)]

    def value(self, totals: np.ndarray) -> np.ndarray:
        error, value, square, count = np.moveaxis(totals, -1, 0)
        spread = square - value**2 / np.maximum(count, 1)
        found: np.ndarray = 1 - error / np.maximum(spread, 1e-300)
        return found


class Mase(NumberMetric):
    """Mean absolute scaled error: |y - f| over the naive error of the training part, mean over values.

    Below 1 is better than repeating the last season was in the training part.

    Source: Hyndman & Koehler 2006.

    Example:
        >>> windows = ForecastWindows(np.array([[1.0, 2.0]]), naive=np.array([2.0]))
        >>> Mase()(windows, [[1.0, 4.0]]).value  # errors 0 and 2, over 2
        0.5
    """

    name = "MASE"

    def terms(self, found: ForecastWindows, true: np.ndarray) -> Sequence[np.ndarray]:
        return [np.abs(found.best - true) / self.needed(found.naive, "naive", true)]

    def signature(self) -> str:
        return "unit:naive error of the training part"


class Rmsse(NumberMetric):
    """Root mean squared scaled error: sqrt(mean (y - f)² / naive squared error of the training part).

    Source: Makridakis, Spiliotis & Assimakopoulos 2022, the M5 competition, for naive errors of one step.

    Example:
        >>> windows = ForecastWindows(np.array([[1.0, 2.0]]), naive_squared=np.array([8.0]))
        >>> Rmsse()(windows, [[1.0, 4.0]]).value  # sqrt(4 / 8 / 2)
        0.5
    """

    name = "RMSSE"

    def terms(self, found: ForecastWindows, true: np.ndarray) -> Sequence[np.ndarray]:
        return [np.square(found.best - true) / self.needed(found.naive_squared, "naive_squared", true)]

    def value(self, totals: np.ndarray) -> np.ndarray:
        return np.sqrt(super().value(totals))  # type: ignore[no-any-return]

    def signature(self) -> str:
        return "unit:naive error of the training part"


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

    def terms(self, found: ForecastWindows, true: np.ndarray) -> Sequence[np.ndarray]:
        quantiles, levels = found.quantiles, found.levels
        if quantiles is None:
            quantiles, levels = found.best[..., None], (0.5,)
        return [pinball(quantiles, true, levels), np.abs(true)]

    def value(self, totals: np.ndarray) -> np.ndarray:
        found: np.ndarray = totals[..., 0] / np.maximum(totals[..., 1], 1e-300)
        return found

    def signature(self) -> str:
        return "unit:mean size of the values|of:the given quantiles"
