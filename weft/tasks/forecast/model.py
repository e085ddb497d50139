"""A recipe's section `model` for forecasts, the network, and the closed-form forecast from which it begins.

The network learns the residuals of the best among ridge regression, the last season and the last value, or a
mixture: each is a product of a window and a matrix, whose validation errors follow from second moments.
With `level`, ridge regression may also depend on the last value itself, to return to the mean, or have no
constant, to have no drift. As the validation part is one short stretch, such as one swing of a random walk,
the training part is cut into stretches too; fits on what comes before them forecast the later ones.
Read next: ../../nn/forecasters/forecaster.py; forecaster.py.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from weft.data.windows import SeriesWindows
from weft.errors import ConfigError
from weft.masks import fill, grid, repeat, to_device
from weft.nn.forecasters.forecaster import Forecaster, Past
from weft.nn.forecasters.segments import SegmentForecaster
from weft.nn.heads.head import Head, Loss, Point, RealHead
from weft.nn.randomness import for_rows, uniform

Normalise = Literal["last", "mean", "mean_std", "none"]
Base = Literal["none", "linear", "level"]


class SeriesBatch(NamedTuple):
    """Scaled windows of series."""

    past: Past
    future: Tensor  # [B, H], 0 where missing
    mask: Tensor  # [B, H] bool, True where a value was measured
    target_tokens: int

    def to(self, device: torch.device) -> "SeriesBatch":
        """The same batch on a device."""
        return to_device(self, device)

    def rows(self, chosen: slice) -> "SeriesBatch":
        """Some windows of the batch."""
        mask = self.mask[chosen]
        past = Past(*(part[chosen] for part in self.past))
        return SeriesBatch(past, self.future[chosen], mask, int(mask.sum()))

    def filled(self) -> "SeriesBatch":
        """The same batch with copies of its first window in new rows, all of whose values are missing."""
        rows = grid(len(self.future))
        past = Past(*(repeat(part, rows) for part in self.past))
        mask = fill(self.mask, rows, self.mask.shape[1])
        return SeriesBatch(past, repeat(self.future, rows), mask, self.target_tokens)


class ForecastNetwork(nn.Module):
    """A forecaster and a head, on windows that are normalised first; see ForecastModel.

    `base` is the size [L, H] of a closed-form forecaster whose residuals are learnt, which with `level` also
    reads the last value of a window.
    """

    base_weight: Tensor | None
    base_spread: Tensor

    def __init__(
        self,
        forecaster: Forecaster,
        head: RealHead,
        *,
        normalise: Normalise,
        base: tuple[int, int] | None = None,
        level: bool = False,
    ) -> None:
        super().__init__()
        self.forecaster = forecaster
        self.head = head
        self.normalise = normalise
        lookback, horizon = base or (0, 0)
        self.register_buffer("base_weight", torch.zeros(lookback + 1 + level, horizon) if base else None)
        self.register_buffer("base_spread", torch.ones(horizon) if base else None)
        if base:
            head.begin_standard()

    def begin_with(self, weight: Tensor, spread: Tensor) -> None:
        """Start as a closed-form forecaster (`fit`) with these weights and errors [H] of each step ahead.

        Weights [L + 1, H] are for windows minus their last value, the constant in the last row; with the
        level they are [L + 2, H], the level in the row before.
        """
        assert self.base_weight is not None
        with torch.no_grad():
            self.base_weight.copy_(weight)
            self.base_spread.copy_(spread)

    @property
    def has_quantiles(self) -> bool:
        """Whether the model has quantiles."""
        return self.head.has_quantiles

    def level(self, past: Past) -> tuple[Tensor, Tensor]:
        """What is subtracted and what is divided by, each [B, 1]."""
        return self._level(past.values)

    def _level(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """The same for values [B, L, ..], over time, each [B, 1, ..]."""
        one = torch.ones_like(values[:, :1])
        if self.normalise == "last":
            return values[:, -1:], one
        if self.normalise == "none":
            return torch.zeros_like(one), one
        mean = values.mean(1, keepdim=True)
        if self.normalise == "mean":
            return mean, one
        return mean, (values.var(1, keepdim=True, unbiased=False) + 1e-5).sqrt()

    def features(
        self, past: Past, future: Tensor | None = None, true: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """h [B, H, D], and the offset and the scale of the head's numbers, [B or 1, 1 or H] each."""
        level, scale = self.level(past)
        leveled = past._replace(values=(past.values - level) / scale)
        if past.seen.shape[2]:  # each channel is normalised by its own level
            middle, spread = self._level(past.seen)
            leveled = leveled._replace(seen=(past.seen - middle) / spread)
        if self.base_weight is not None:
            level, scale = self._base(past.values, self.base_weight)
        fed = None if future is None else (future - level) / scale
        return self.forecaster(leveled, self._step_value, fed, true), level, scale

    def _base(self, values: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The closed-form forecast [B, H] and its root mean squared error [1, H]."""
        last = values[:, -1:]
        with torch.autocast(values.device.type, enabled=False):
            lookback = values.shape[1]
            forecast = (values - last).float() @ weight[:lookback] + weight[-1] + last
            if len(weight) > lookback + 1:
                forecast = forecast + last.float() * weight[lookback]
        return forecast, self.base_spread[None]

    def loss(self, batch: SeriesBatch, *, feeding: float = 1.0, per_sequence: bool = False) -> Loss:
        """The head's loss on the measured values, after normalising."""
        true = None
        if feeding < 1:
            columns = 1 if per_sequence else batch.future.shape[1]
            device = batch.future.device
            draw = for_rows(lambda shape: uniform(shape, device), (len(batch.future), columns))
            true = (draw < feeding).expand(batch.future.shape)
        h, level, scale = self.features(batch.past, batch.future, true)
        return self.head.loss(h, (batch.future - level) / scale, batch.mask)

    def best(self, past: Past) -> Tensor:
        """The forecast [B, H], in the scale of the series."""
        h, level, scale = self.features(past)
        return self._step_value(h) * scale + level

    def quantiles(self, past: Past, levels: Tensor) -> Tensor:
        """Quantiles [B, H, Q] of the forecast; an autoregressive forecaster is fed its means."""
        h, level, scale = self.features(past)
        return self.head.quantiles(h, levels) * scale[..., None] + level[..., None]

    def _step_value(self, h: Tensor) -> Tensor:
        return self.head.best(h, torch.ones_like(h[..., 0], dtype=torch.bool))


@dataclass(frozen=True, kw_only=True)
class ForecastModel:
    """The choice of forecaster and head.

    Args:
        forecaster: a part of nn/forecasters.
        head: a head for numbers: point, normal, student or quantile.
        normalise: what is subtracted from each window: last (its last value), mean, mean_std, none.
        base: `linear` starts from the best closed-form forecaster (ridge regression, last season, last value
            or a mixture) and learns its residuals; `level` also tries ridge regression on the level (for
            series that return to their mean) and without a constant (for series without drift), and takes
            them if they are proven better on later stretches of the training part and on the validation
            part; `none` learns the values.
        solve: keep this closed-form forecast: no update is made, and the forecaster stays unused.
    """

    forecaster: Callable[..., Forecaster] = SegmentForecaster
    head: Callable[..., Head] = Point
    normalise: Normalise = "last"
    base: Base = "none"
    solve: bool = False

    def __post_init__(self) -> None:
        if self.solve and self.base == "none":
            raise ConfigError("solve: expected base: linear or level, got none; there is nothing to solve")

    def build(
        self, lookback: int, horizon: int, known_size: int, num_series: int, seen_size: int = 0
    ) -> ForecastNetwork:
        """A new model."""
        forecaster = self.forecaster(lookback, horizon, known_size, num_series, seen_size)
        head = self.head(forecaster.size)
        if not isinstance(head, RealHead):
            raise ConfigError("head: expected point, normal, student or quantile for a forecast")
        base = None if self.base == "none" else (lookback, horizon)
        level = self.base == "level"
        return ForecastNetwork(forecaster, head, normalise=self.normalise, base=base, level=level)


ROWS = 512  # windows per step


def tensors(windows: SeriesWindows, chosen: np.ndarray, device: torch.device) -> tuple[Past, np.ndarray]:
    """The model's inputs for some windows, and their futures [B, H], NaN where missing."""
    past, future, known = windows.take(chosen)
    which = torch.from_numpy(windows.numbers[chosen[:, 0]])
    seen = torch.from_numpy(windows.seen(chosen)).float()
    parts = torch.from_numpy(past).float(), torch.from_numpy(known).float(), which, seen
    return Past(*(part.to(device) for part in parts)), future


FIT_ROWS = 2048  # windows per step of the fit

Steps = slice | np.ndarray
"""Which steps ahead, of the horizon."""

ALL = slice(None)

PRODUCTS = 3 * 10**11
"""Maximum products of a sum over windows with gaps, where each step ahead has windows of its own."""

CELLS = 10**6
"""Maximum numbers of such a sum; a longer horizon is fitted in parts."""


class Moments(NamedTuple):
    """Sums over windows; x is a window minus its last value, the level, and a one.

    Each step ahead has the windows that have a value there.
    """

    inner: np.ndarray  # [D, D] x x' if all steps have all windows, or [H, D, D]
    outer: np.ndarray  # [D, H] x y'
    square: np.ndarray  # [H] y²
    windows: np.ndarray  # [H]

    def __add__(self, other: "Moments") -> "Moments":  # type: ignore[override]
        return Moments(*(one + more for one, more in zip(self, other, strict=True)))

    def errors(self, weight: np.ndarray) -> np.ndarray:
        """[H] mean squared errors of y = W x; NaN for a step without windows."""
        if self.inner.ndim == 2:
            product = self.inner @ weight
        else:
            product = (self.inner @ weight.T[..., None])[..., 0].T
        total = (weight * product).sum(0) - 2 * (weight * self.outer).sum(0) + self.square
        return np.where(self.windows, np.maximum(total, 0) / np.maximum(1, self.windows), np.nan)

    def ridge(self, penalty: float, kept: np.ndarray) -> np.ndarray:
        """The ridge regression on the kept [D] inputs; the constant, which is last, has no penalty."""
        costs = np.full(len(kept), penalty)
        costs[-1] = 0.0
        inner = (self.inner + np.diag(costs))[..., kept, :][..., kept]
        weight = np.zeros_like(self.outer)
        if not self.windows.all():  # a step without windows repeats the last value
            inner = inner + (self.windows == 0)[:, None, None] * np.eye(inner.shape[-1])
        if inner.ndim == 2:
            weight[kept] = np.linalg.solve(inner, self.outer[kept])
        else:
            weight[kept] = np.linalg.solve(inner, self.outer[kept].T[..., None])[..., 0].T
        return weight


def moments(
    windows: SeriesWindows,
    chosen: np.ndarray,
    *,
    level: bool = False,
    most: int = 0,
    steps: Steps = ALL,
) -> Moments:
    """The sums of some windows [N, 2], for some steps ahead."""
    size, horizon = windows.lookback + 1 + level, len(np.arange(windows.horizon)[steps])
    gapped = int(windows.with_gaps(chosen).sum())
    share = max(
        len(chosen) / (most or len(chosen) or 1), gapped / (4 * size + PRODUCTS // (size**2 * horizon))
    )
    chosen = chosen[:: max(1, math.ceil(share))]
    inner, outer = np.zeros((size, size)), np.zeros((size, horizon))
    own: np.ndarray | None = None  # [H, D, D] what each step has more
    square, count = np.zeros(horizon), np.zeros(horizon, np.int64)
    for at in range(0, len(chosen), FIT_ROWS):
        past, future, _ = windows.take(chosen[at : at + FIT_ROWS])
        last = past[:, -1:]
        x = np.concatenate([past - last, last[:, : int(level)], np.ones((len(last), 1))], 1)
        y = future[:, steps] - last
        measured = np.isfinite(y)
        products = x.T @ x
        if not measured.all():
            y = np.where(measured, y, 0.0)
            own = np.zeros((horizon, size, size)) if own is None else own
            for more, there in zip(own, measured.T, strict=True):
                few = there if there.mean() < 0.5 else ~there
                more += x[few].T @ x[few] - products if there.mean() < 0.5 else -x[few].T @ x[few]
        inner, outer = inner + products, outer + x.T @ y
        square, count = square + np.square(y).sum(0), count + measured.sum(0)
    return Moments(inner if own is None else inner + own, outer, square, count)


STRETCHES = 8
"""Maximum number of stretches of the training part; each is at least two horizons long."""

FIRST = 3
"""Number of stretches that are fitted but never forecast."""

FORM_PENALTIES = (1.0, 1e2, 1e4, 1e6)

KINDS = ((False, True), (False, False), (True, True), (True, False))
"""Whether a form reads the level and has a constant; plain ridge regression first."""

LONGER = 0.01
"""A longer past is read only if it is better by this share."""


class RidgeForm(NamedTuple):
    """A ridge regression: how many of the newest rows it reads, and what beside them."""

    rows: int
    level: bool
    constant: bool
    penalty: float

    @property
    def name(self) -> str:
        """For the first lines of a training."""
        also = (", level" if self.level else "") + ("" if self.constant else ", no constant")
        return f"ridge regression (penalty {self.penalty:g}{also})"

    def weight(self, sums: Moments) -> np.ndarray:
        """Fit to sums with the level."""
        size = len(sums.outer)
        kept = np.zeros(size, dtype=bool)
        kept[size - 2 - self.rows : size - 2] = True
        kept[-2:] = self.level, self.constant
        return sums.ridge(self.penalty, kept)


class FormErrors(NamedTuple):
    """The mean squared errors of each form on each stretch."""

    forms: Mapping[RidgeForm, np.ndarray]  # [K]
    fits: Sequence[Moments]  # what the forms were fitted to, before each stretch
    stretches: Sequence[Moments]

    def of(self, weights: Sequence[np.ndarray]) -> np.ndarray:
        """[K] the errors of weights, one for each stretch."""
        return np.array(
            [mean(one.errors(weight)) for weight, one in zip(weights, self.stretches, strict=True)]
        )

    def best(self, rows: int) -> RidgeForm:
        """Plain ridge regression on so many rows, or another form that is proven to be better."""
        found = [self._of_kind(rows, *kind) for kind in KINDS]
        plain = self.forms[found[0]]
        proven = [form for form in found[1:] if better(self.forms[form], plain)]
        return min([found[0], *proven], key=lambda form: score(self.forms[form]))

    def rows(self, lookbacks: Sequence[int]) -> int:
        """The shortest of rising lookbacks whose best form is about as good as that of any other."""
        scores = [score(self.forms[self.best(rows)]) for rows in lookbacks]
        least = min(scores) + LONGER
        return next(rows for rows, one in zip(lookbacks, scores, strict=True) if one <= least)

    def _of_kind(self, rows: int, level: bool, constant: bool) -> RidgeForm:
        kind = [form for form in self.forms if form[:3] == (rows, level, constant)]
        return min(kind, key=lambda form: score(self.forms[form]))


def mean(errors: np.ndarray) -> float:
    """The mean error of the steps ahead that have one."""
    return float(errors[np.isfinite(errors)].mean()) if np.isfinite(errors).any() else 0.0


def score(errors: np.ndarray) -> float:
    """The mean logarithm: a stretch counts the same, however large its values are."""
    return float(np.log(np.maximum(errors, 1e-12)).mean())


def better(errors: np.ndarray, others: np.ndarray) -> bool:
    """Whether errors on the same stretches are smaller by two standard errors.

    Example:
        >>> better(np.array([1.0, 2.0, 3.0]), np.array([1.1, 2.2, 3.4]))
        True
        >>> better(np.array([1.0, 2.0, 3.0]), np.array([0.9, 4.0, 3.4]))
        False
    """
    gains = np.log(np.maximum(others, 1e-12)) - np.log(np.maximum(errors, 1e-12))
    if len(gains) < 3:
        return False
    return bool(gains.mean() > 2 * gains.std(ddof=1) / len(gains) ** 0.5)


def judge(
    windows: SeriesWindows, lookbacks: Sequence[int], *, most: int = 0, steps: Steps = ALL
) -> FormErrors:
    """The errors of every form that reads one of the lookbacks, at most the windows' own."""
    pieces = _pieces(windows, most, steps)
    valid = moments(windows, windows.of(1), level=True, most=most, steps=steps)
    fits, stretches = [], []
    for at in range(FIRST, (len(pieces) + 1) // 2):
        if pieces[2 * at].windows.any():
            fits.append(sum(pieces[1 : 2 * at - 1], start=pieces[0]))
            stretches.append(pieces[2 * at])
    if valid.windows.any() or not fits:  # the validation part may have no value
        fits.append(sum(pieces[1:], start=pieces[0]))
        stretches.append(valid if valid.windows.any() else fits[-1])
    judged = FormErrors({}, fits, stretches)
    forms = [
        RidgeForm(rows, level, constant, penalty)
        for rows in lookbacks
        for level, constant in KINDS
        for penalty in FORM_PENALTIES
    ]
    return judged._replace(forms={form: judged.of([form.weight(fit) for fit in fits]) for form in forms})


def _pieces(windows: SeriesWindows, most: int, steps: Steps) -> list[Moments]:
    """The sums of each training stretch, and between two of them those of the windows that are in both."""
    chosen = windows.of(0)
    numbers, starts = chosen.T
    begin, rows = np.zeros((2, numbers.max() + 1), dtype=np.int64)
    for number in np.unique(numbers):
        own = starts[numbers == number]
        begin[number], rows[number] = own.min(), np.ptp(own) + windows.horizon
    count = max(1, min(STRETCHES, int(rows[np.unique(numbers)].min()) // (2 * windows.horizon)))
    first, last = starts - begin[numbers], starts - begin[numbers] + windows.horizon - 1
    places = first * count // rows[numbers] + last * count // rows[numbers]  # even inside of a stretch
    return [
        moments(windows, chosen[places == at], level=True, most=-(-most // count), steps=steps)
        for at in range(2 * count - 1)
    ]


PENALTIES = tuple(10.0**power for power in range(-1, 8))
SHARES = (0.75, 0.5, 0.25)  # of ridge regression, mixed with a repeated value or season
MARGIN = 0.05
"""Ridge regression is used unless a mixture is better by this share."""

LONGEST = 720  # rows of a lookback that is tried
SAMPLE = 30_000  # windows of a part that judge a lookback


class Baseline(NamedTuple):
    """y = W (x - last; 1) + last in the scale of the series; with the level W (x - last; last; 1) + last."""

    name: str
    weight: np.ndarray  # [L + 1, H] or, with the level, [L + 2, H]; the constant in the last row
    spread: np.ndarray  # [H] root mean squared error at each step ahead
    error: float  # mean squared error on the validation part
    parts: tuple["Baseline", ...] = ()  # of a horizon that was fitted in parts


def steps_of(windows: SeriesWindows) -> list[Steps]:
    """The parts in which a horizon is fitted: one, unless there are gaps and their sums would be large."""
    every = np.arange(windows.horizon)
    size = max(1, CELLS // (windows.lookback + 2) ** 2)
    gaps = size < len(every) and any(windows.with_gaps(windows.of(part)).any() for part in (0, 1))
    return [every[at : at + size] for at in range(0, len(every), size)] if gaps else [ALL]


def _joined(parts: Sequence[Baseline]) -> Baseline:
    """Parts of a horizon together."""
    if len(parts) == 1:
        return parts[0]
    names = list(dict.fromkeys(one.name for one in parts))
    name = names[0] if len(names) == 1 else f"{names[0]}, and other forms for later steps"
    weight, spread = (np.concatenate(each, -1) for each in zip(*(one[1:3] for one in parts), strict=True))
    return Baseline(name, weight, spread, float(np.mean([one.error for one in parts])), tuple(parts))


def fit(windows: SeriesWindows, season: int, *, level: bool = False) -> Baseline:
    """The closed form with the smallest errors, fitted on the training part."""
    return _joined([_fit(windows, season, steps, level=level) for steps in steps_of(windows)])


def _fit(windows: SeriesWindows, season: int, steps: Steps, *, level: bool) -> Baseline:
    if level:
        return _of_stretches(judge(windows, [windows.lookback], steps=steps), windows, season, steps)
    train, valid = (moments(windows, windows.of(part), steps=steps) for part in (0, 1))
    if not valid.windows.any():  # the validation part may have no value
        valid = train
    penalty, weight = best_ridge(train, valid, PENALTIES)
    best = _named(penalty)
    found = _mixed(best, weight, _still(windows, len(train.outer), season, steps))
    errors = {name: mean(valid.errors(weight)) for name, weight in found.items()}
    return _baseline(found, errors, best, train, valid)


def best_ridge(train: Moments, valid: Moments, penalties: Sequence[float]) -> tuple[float, np.ndarray]:
    """The penalty with the smallest validation errors, and its weights."""
    kept = np.ones(len(train.outer), dtype=bool)
    found = {one: train.ridge(one, kept) for one in penalties}
    best = min(found, key=lambda one: mean(valid.errors(found[one])))
    return best, found[best]


def refitted(base: Baseline, windows: SeriesWindows, season: int) -> Baseline:
    """The same closed form, without the level, on the training and the validation part together."""
    parts = zip(base.parts or [base], steps_of(windows), strict=True)
    return _joined([_refitted(one, windows, season, steps) for one, steps in parts])


def _refitted(base: Baseline, windows: SeriesWindows, season: int, steps: Steps) -> Baseline:
    train, valid = (moments(windows, windows.of(part), steps=steps) for part in (0, 1))
    every = train + valid
    still = _still(windows, len(every.outer), season, steps)
    kept = np.ones(len(every.outer), dtype=bool)
    for one in PENALTIES:
        found = _mixed(_named(one), every.ridge(one, kept), still)
        if base.name in found and base.weight.shape == found[base.name].shape:
            return base._replace(weight=found[base.name])
    return base  # with the level, whose forms are judged on stretches


def _named(penalty: float) -> str:
    return f"ridge regression (penalty {penalty:g})"


def _of_stretches(judged: FormErrors, windows: SeriesWindows, season: int, steps: Steps) -> Baseline:
    """The form that is best on the stretches, or a mixture with it."""
    train, valid = judged.fits[-1], judged.stretches[-1]
    still = _still(windows, len(train.outer), season, steps)
    form = judged.best(windows.lookback)
    found = _mixed(form.name, form.weight(train), still)
    before = [_mixed(form.name, form.weight(fit), still) for fit in judged.fits]
    errors = {name: float(np.exp(score(judged.of([one[name] for one in before])))) for name in found}
    return _baseline(found, errors, form.name, train, valid)


def _baseline(
    found: dict[str, np.ndarray], errors: dict[str, float], best: str, train: Moments, valid: Moments
) -> Baseline:
    """Ridge regression, unless another one of the weights is clearly better."""
    name = min(errors, key=lambda name: errors[name])
    if errors[name] >= (1 - MARGIN) * errors[best]:
        name = best
    weight = found[name]
    error, fitted = valid.errors(weight), train.errors(weight)
    spread = np.sqrt(
        (np.where(np.isnan(fitted), error, fitted) + np.where(np.isnan(error), fitted, error)) / 2
    )
    widest = np.nanmax(spread) if np.isfinite(spread).any() else 1.0  # for steps without windows
    return Baseline(name, weight, np.maximum(np.where(np.isnan(spread), widest, spread), 1e-3), mean(error))


def _mixed(best: str, ridge: np.ndarray, still: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The ridge regression, repeated values, and mixtures of both."""
    mixtures = {
        f"{share:g} {best}, {1 - share:g} {name}": share * ridge + (1 - share) * weight
        for name, weight in still.items()
        for share in SHARES
    }
    return {**still, **mixtures, best: ridge}


def _still(windows: SeriesWindows, size: int, season: int, steps: Steps) -> dict[str, np.ndarray]:
    """Matrices [size, H] that repeat the last value, or the last season, relative to the last value."""
    ahead = np.arange(windows.horizon)[steps]
    still = {"last value": np.zeros((size, len(ahead)))}
    if 1 < season <= windows.lookback:
        still["last season"] = np.zeros((size, len(ahead)))
        still["last season"][windows.lookback - season + ahead % season, np.arange(len(ahead))] = 1.0
    return still


def lookback_of(cut: Callable[[int], SeriesWindows], shortest: int, longest: int) -> int:
    """The shortest lookback whose closed form is about as good as the best one."""
    tried = [shortest]
    while 2 * tried[-1] <= min(longest, LONGEST):
        tried.append(2 * tried[-1])
    if len(tried) == 1:
        return shortest
    windows = cut(tried[-1])
    parts = len(steps_of(windows))
    steps = ALL if parts == 1 else np.arange(0, windows.horizon, parts)
    return judge(windows, tried, most=SAMPLE, steps=steps).rows(tried)
