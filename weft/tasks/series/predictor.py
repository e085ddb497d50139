"""A trained forecaster at work: the next rows of series, as numbers and as quantiles."""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from weft.data.series import Series, Table, after
from weft.data.windows import covariates, filled
from weft.errors import ConfigError, DataError
from weft.nn.forecasters.forecaster import Past
from weft.tasks.series.data import SeriesData
from weft.tasks.series.model import Forecast
from weft.tasks.series.together import Together
from weft.tasks.task import Answer


@dataclass(frozen=True, kw_only=True)
class Horizon:
    """What `weft predict` writes: a recipe's section `decoding`.

    Args:
        levels: of the quantiles that --scores adds.
    """

    levels: tuple[float, ...] = (0.1, 0.5, 0.9)

    def __post_init__(self) -> None:
        if not self.levels or not all(0 < one < 1 for one in self.levels):
            raise ConfigError(f"levels: {list(self.levels)} came, numbers between 0 and 1 are needed")


class Look(NamedTuple):
    """What a picture of a forecast needs, in the units of the data."""

    name: str
    past_times: np.ndarray
    past: np.ndarray
    times: np.ndarray
    best: np.ndarray
    quantiles: np.ndarray | None  # [H, Q]
    levels: tuple[float, ...]


class SeriesForecaster:
    """Forecasts what comes after series.

    Args:
        model: in evaluation mode; several together too.
        data: lookback, horizon, columns.
        about: names and scales of the series that it was trained on.
        decoding: which quantiles.
    """

    def __init__(
        self, model: Forecast | Together, data: SeriesData, about: dict[str, Any], decoding: Horizon
    ) -> None:
        self.model = model
        self.data = data
        self.about = about
        self.decoding = decoding

    def predict(self, values: Sequence[float], name: str | None = None) -> list[float]:
        """The next `horizon` values of one series.

        Args:
            values: at least `lookback` of them, oldest first.
            name: of the series, as in training; the first one's scale serves where None.

        Raises:
            DataError: too few values.
            ConfigError: a model that needs covariates; use `rows` with a table.
        """
        if self.about["known"] or self._channels:
            raise ConfigError(
                "this model reads the calendar, covariates or other columns beside the numbers; give it a "
                "table: a CSV file or its text, in Python rows(table, quantiles)"
            )
        array = np.asarray(values, dtype=np.float64)
        series = Series("", np.arange(len(array)), array[:, None], np.zeros((len(array), 0)))
        look = self._look(series, 0, name or self.about["names"][0], False)
        return [float(value) for value in look.best]

    def rows(self, table: Table, quantiles: bool) -> Iterator[Answer]:
        """Lines of a CSV: its header, then the next rows of each series.

        Args:
            table: with the columns that the model was trained on.
            quantiles: whether quantiles are written too.
        """
        check_columns(table, self.about)
        if quantiles and not self.model.has_quantiles:
            raise ConfigError(
                "a point forecast has no quantiles; train with the head normal, student or quantile"
            )
        extra = [f"q{level:g}" for level in self.decoding.levels] if quantiles else []
        yield Answer(_line(["unique_id", "ds", "y", *extra]))
        for series in table.series:
            for column, name in enumerate(table.columns):
                if self.data.targets and name not in self.data.targets:
                    continue
                shown = series.name or name
                look = self._look(series, column, shown, quantiles)
                times = _shown([*look.past_times, *look.times])[len(look.past_times) :]
                for row, time in enumerate(times):
                    found = [] if look.quantiles is None else look.quantiles[row]
                    numbers = [f"{value:.6g}" for value in (look.best[row], *found)]
                    last = row + 1 == len(times)
                    yield Answer(_line([shown, time, *numbers]), look if last else None)

    def _look(self, series: Series, column: int, name: str, quantiles: bool) -> Look:
        lookback, horizon = self.data.lookback, self.data.horizon
        if len(series.times) < lookback:
            called = f"series {name!r}" if name else "the series"
            raise DataError(
                f"{called}: {len(series.times)} rows came, the model reads {lookback}; give a longer past"
            )
        known_names = self.about["names"]
        number = known_names.index(name) if name in known_names else 0
        raw = series.values[:, column]
        # A series that training did not have is scaled by itself.
        known_here = name in known_names
        mean = self.about["mean"][number] if known_here else float(np.nanmean(raw))
        std = self.about["std"][number] if known_here else float(np.nanstd(raw)) or 1.0
        ahead = after(series.times, horizon)
        times = np.concatenate([series.times[-lookback:], ahead])
        covered = np.concatenate([series.known[-lookback:], np.repeat(series.known[-1:], horizon, 0)])
        covariate = covariates(times, covered, self.data.calendar)
        device = next(self.model.parameters()).device
        past = Past(
            torch.from_numpy(filled((raw - mean) / std)[-lookback:]).float()[None].to(device),
            torch.from_numpy(covariate).float()[None].to(device),
            torch.tensor([number], device=device),
            torch.from_numpy(self._seen(series, lookback)).float()[None].to(device),
        )
        with torch.no_grad():
            best = self.model.best(past)[0].double().cpu().numpy() * std + mean
            found = None
            if quantiles:
                levels = torch.tensor(self.decoding.levels, device=device)
                found = self.model.quantiles(past, levels)[0].double().cpu().numpy() * std + mean
        return Look(name, times[:lookback], raw[-lookback:], ahead, best, found, tuple(self.decoding.levels))

    @property
    def _channels(self) -> dict[str, Any]:
        """Names, means and deviations of the columns that are read beside; empty where none are."""
        return self.about.get("channels") or {}

    def _seen(self, series: Series, lookback: int) -> np.ndarray:
        """[L, C] of the channels, scaled as in training."""
        channels = self._channels
        if not channels:
            return np.zeros((lookback, 0))
        scaled = (series.values - np.array(channels["mean"])) / np.array(channels["std"])
        return np.stack([filled(column)[-lookback:] for column in scaled.T], 1)


def check_columns(table: Table, about: dict[str, Any]) -> None:
    """See that a table has the columns that a model of several columns reads, in their order.

    Raises:
        DataError: others came.
    """
    names = (about.get("channels") or {}).get("names", table.columns)
    if list(names) != list(table.columns):
        raise DataError(
            f"the columns {', '.join(table.columns)} came, the model reads {', '.join(names)}; give a table "
            "with these, in this order"
        )


def _line(cells: Sequence[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)  # which also says what has to be quoted
    return text.getvalue().removesuffix("\n")


def _shown(times: Sequence[Any]) -> list[str]:
    """Times as a table has them, all in one way: days where each of them is one, else with the clock."""
    texts = [str(time).replace("T", " ") for time in times]
    days = all(text.endswith(" 00:00:00") for text in texts)
    return [text.removesuffix(" 00:00:00") for text in texts] if days else texts
