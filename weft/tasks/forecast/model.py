"""A recipe's section `model` for forecasts, the network, and the closed-form forecast from which it begins.

The network learns the residuals of the best among ridge regression, the last season and the last value. Each
is a product of a window and a matrix, and so is a mixture of them. Their errors on the validation part follow
from its second moments alone. With `level`, ridge regression may also depend on the last value itself, so
that it returns to the mean of the training part, or have no constant, so that it has no drift.

Which of these forms is best is judged on stretches. The validation part alone is one short stretch, such as
one swing of a random walk. So the training part is cut into stretches too; the later ones are forecast by
fits on what comes before them. All of this follows from sums over windows, which are computed once.
Read next: ../../nn/forecasters/forecaster.py; forecaster.py.
"""

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
from weft.nn.heads.head import Head, Loss, RealHead
from weft.nn.heads.point import Point
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
    """A forecaster and a head, on windows that are normalised first.

    Args:
        forecaster: maps the past to features of the future.
        head: maps features to numbers.
        normalise: what is subtracted from a window and added back: its last value, its mean, its mean after
            which it is divided by its scale, or nothing.
        base: [L, H] of a closed-form forecaster whose residuals are learnt; None to learn the values.
        level: that forecaster also reads the level, the last value of a window.
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
        """Start as a closed-form forecaster (`fit`).

        Args:
            weight: [L + 1, H] for windows minus their last value, the constant in the last row; with the
                level [L + 2, H], the level in the row before.
            spread: [H] its root mean squared error at each step ahead.
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
        return self.head.best(h, torch.ones_like(h[..., 0], dtype=torch.bool)) * scale + level

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

    Raises:
        ConfigError: `solve` without a base.
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


class Moments(NamedTuple):
    """Sums over windows whose future has no gap; x is a window minus its last value, the level, and a one."""

    inner: np.ndarray  # [D, D] x x'
    outer: np.ndarray  # [D, H] x y'
    square: np.ndarray  # [H] y²
    windows: int

    def __add__(self, other: "Moments") -> "Moments":  # type: ignore[override]
        inner, outer, square, windows = other
        return Moments(self.inner + inner, self.outer + outer, self.square + square, self.windows + windows)

    def errors(self, weight: np.ndarray) -> np.ndarray:
        """[H] mean squared errors of y = W x."""
        total = (weight * (self.inner @ weight)).sum(0) - 2 * (weight * self.outer).sum(0) + self.square
        return np.maximum(total, 0) / max(1, self.windows)

    def ridge(self, penalty: float, kept: np.ndarray) -> np.ndarray:
        """The ridge regression on the kept [D] inputs; the constant, which is last, has no penalty."""
        if not self.windows:
            return np.zeros_like(self.outer)
        costs = np.full(len(kept), penalty)
        costs[-1] = 0.0
        inner = (self.inner + np.diag(costs))[np.ix_(kept, kept)]
        weight = np.zeros_like(self.outer)
        weight[kept] = np.linalg.solve(inner, self.outer[kept])
        return weight


def moments(windows: SeriesWindows, chosen: np.ndarray, *, level: bool = False, most: int = 0) -> Moments:
    """The sums of some windows.

    Args:
        chosen: [N, 2] as `windows.of` gives them.
    """
    size, horizon = windows.lookback + 1 + level, windows.horizon
    inner, outer = np.zeros((size, size)), np.zeros((size, horizon))
    square, count = np.zeros(horizon), 0
    chosen = chosen[:: -(-len(chosen) // most) if most and len(chosen) else 1]
    for at in range(0, len(chosen), FIT_ROWS):
        past, future, _ = windows.take(chosen[at : at + FIT_ROWS])
        whole = np.isfinite(future).all(1)
        last = past[whole, -1:]
        x = np.concatenate([past[whole] - last, last[:, : int(level)], np.ones((len(last), 1))], 1)
        y = future[whole] - last
        inner, outer = inner + x.T @ x, outer + x.T @ y
        square, count = square + np.square(y).sum(0), count + len(y)
    return Moments(inner, outer, square, count)


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
        size = len(sums.inner)
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
            [one.errors(weight).mean() for weight, one in zip(weights, self.stretches, strict=True)]
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


def judge(windows: SeriesWindows, lookbacks: Sequence[int], *, most: int = 0) -> FormErrors:
    """The errors of every form.

    Args:
        lookbacks: numbers of rows that a form may read, at most the windows' own.
    """
    pieces, valid = _pieces(windows, most), moments(windows, windows.of(1), level=True, most=most)
    fits, stretches = [], []
    for at in range(FIRST, (len(pieces) + 1) // 2):
        if pieces[2 * at].windows:
            fits.append(sum(pieces[1 : 2 * at - 1], start=pieces[0]))
            stretches.append(pieces[2 * at])
    if valid.windows or not fits:  # every validation window may have a gap
        fits.append(sum(pieces[1:], start=pieces[0]))
        stretches.append(valid if valid.windows else fits[-1])
    judged = FormErrors({}, fits, stretches)
    forms = [
        RidgeForm(rows, level, constant, penalty)
        for rows in lookbacks
        for level, constant in KINDS
        for penalty in FORM_PENALTIES
    ]
    return judged._replace(forms={form: judged.of([form.weight(fit) for fit in fits]) for form in forms})


def _pieces(windows: SeriesWindows, most: int) -> list[Moments]:
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
        moments(windows, chosen[places == at], level=True, most=-(-most // count))
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


def fit(windows: SeriesWindows, season: int, *, level: bool = False) -> Baseline:
    """The closed form with the smallest errors, fitted on the training part."""
    if level:
        return _of_stretches(judge(windows, [windows.lookback]), windows, season)
    train, valid = (moments(windows, windows.of(part)) for part in (0, 1))
    if not valid.windows:  # every window has a gap
        valid = train
    found = _still(windows, len(train.outer), season)
    best = ""
    if train.windows:
        kept = np.ones(len(train.outer), dtype=bool)
        named = {_named(one): train.ridge(one, kept) for one in PENALTIES}
        best = min(named, key=lambda name: valid.errors(named[name]).mean())
        found = _mixed(best, named[best], found)
    errors = {name: float(valid.errors(weight).mean()) for name, weight in found.items()}
    return _baseline(found, errors, best, train, valid)


def refitted(base: Baseline, windows: SeriesWindows, season: int) -> Baseline:
    """The same closed form, without the level, on the training and the validation part together."""
    every = moments(windows, windows.of(0)) + moments(windows, windows.of(1))
    still, kept = _still(windows, len(every.outer), season), np.ones(len(every.outer), dtype=bool)
    for one in PENALTIES:
        found = _mixed(_named(one), every.ridge(one, kept), still)
        if base.name in found and base.weight.shape == found[base.name].shape:
            return base._replace(weight=found[base.name])
    return base  # with the level, whose forms are judged on stretches


def _named(penalty: float) -> str:
    return f"ridge regression (penalty {penalty:g})"


def _of_stretches(judged: FormErrors, windows: SeriesWindows, season: int) -> Baseline:
    """The form that is best on the stretches, or a mixture with it."""
    train, valid = judged.fits[-1], judged.stretches[-1]
    still = _still(windows, len(train.outer), season)
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
    if best and errors[name] >= (1 - MARGIN) * errors[best]:
        name = best
    weight = found[name]
    error = valid.errors(weight)
    spread = np.sqrt((train.errors(weight) + error) / 2)
    return Baseline(name, weight, np.maximum(spread, 1e-3), float(error.mean()))


def _mixed(best: str, ridge: np.ndarray, still: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The ridge regression, repeated values, and mixtures of both."""
    mixtures = {
        f"{share:g} {best}, {1 - share:g} {name}": share * ridge + (1 - share) * weight
        for name, weight in still.items()
        for share in SHARES
    }
    return {**still, **mixtures, best: ridge}


def _still(windows: SeriesWindows, size: int, season: int) -> dict[str, np.ndarray]:
    """Matrices [size, H] that repeat the last value, or the last season, relative to the last value."""
    still = {"last value": np.zeros((size, windows.horizon))}
    if 1 < season <= windows.lookback:
        steps = np.arange(windows.horizon)
        still["last season"] = np.zeros((size, windows.horizon))
        still["last season"][windows.lookback - season + steps % season, steps] = 1.0
    return still


def lookback_of(cut: Callable[[int], SeriesWindows], shortest: int, longest: int) -> int:
    """The shortest lookback whose closed form is about as good as the best one."""
    tried = [shortest]
    while 2 * tried[-1] <= min(longest, LONGEST):
        tried.append(2 * tried[-1])
    return judge(cut(tried[-1]), tried, most=SAMPLE).rows(tried) if len(tried) > 1 else shortest
