"""A trained forecaster: forecasts the next rows of tables of series, or of plain numbers.

`inspect_series` is what `weft inspect` shows, `export_forecaster` what `weft export` writes.
Read next: forecaster.py, one series.
"""

import copy
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Literal, NamedTuple, Self, overload

import numpy as np
import regex
import torch
from torch import Tensor, nn

from weft.data import calendar
from weft.data.frames import given_as_file, is_frame, zone_of
from weft.data.guess import TIMES
from weft.data.held import ending_of, held, name_of
from weft.data.parquet import as_parquet
from weft.data.table_style import TableStyle
from weft.data.values import readable
from weft.errors import ConfigError, DataError, caution
from weft.figures.records import Figure, ForecastRecord
from weft.nn.forecasters.forecaster import Past
from weft.tasks import predictor
from weft.tasks.answer_list import AnswerList
from weft.tasks.export import Graph, ModelExport
from weft.tasks.forecast.data import SeriesData, scales_of
from weft.tasks.forecast.forecaster import (
    CalibratedForecast,
    ForecastEnsemble,
    SeriesColumn,
    SeriesForecaster,
    record,
)
from weft.tasks.forecast.model import ForecastNetwork, SeriesBatch, tensors
from weft.tasks.inspection import Inspection, file_named
from weft.tasks.predictor import Answer, Json, ParsedInput, Place, Raw, Reads
from weft.tasks.task import Progress, silent
from weft.words import LETTERS

if TYPE_CHECKING:
    import pandas as pd

COMMAS = TableStyle()


@dataclass(eq=False)
class ForecastAnswer(Answer):
    """The next rows of series."""

    found: Sequence[ForecastRecord]
    quantiles: bool = False  # whether the text contains them
    plain: bool = False  # whether the JSON is a list of numbers, for a series that was given as numbers
    style: TableStyle = COMMAS  # of the table that the series are from

    def text(self) -> str:
        """CSV rows: name, time, value and, if wanted, quantiles."""
        return self._table(self.style, readable)

    def whole(self) -> str:
        """The same with commas, and with all digits of the numbers."""
        return self._table(COMMAS, lambda number, _: repr(number))

    def _table(self, style: TableStyle, shown: Callable[[float, float], str]) -> str:
        return "\n".join(
            style.line([name, time, *(style.number(shown(one, found.deviation)) for one in numbers)])
            for found in self.found
            for name, time, numbers in self._rows(found, self.quantiles)
        )

    def json(self) -> Json:
        """The numbers; for a table, a record for each row, with quantiles if the model has them."""
        if self.plain:
            values = [float(value) for value in self.found[0].best]
            if not all(map(math.isfinite, values)):
                raise DataError("the forecast is not a number; check the last values of the series")
            return list(values)
        records: list[Json] = []
        for one in self.found:
            names = ["y", *(f"q{level:g}" for level in one.levels)]
            for name, time, numbers in self._rows(one, one.quantiles is not None):
                if not all(map(math.isfinite, numbers)):
                    raise DataError(
                        f"the forecast of {name!r} is not a number; check the last values of the series"
                    )
                records.append({"unique_id": name, "ds": time, **dict(zip(names, numbers, strict=False))})
        return records

    def figure(self) -> "Figure":
        from weft.figures.series import forecast_figure

        return forecast_figure(*self.found)

    def figure_name(self) -> str:
        return file_name(self.found[0].name)

    def _rows(self, one: ForecastRecord, quantiles: bool) -> Iterator[tuple[str, str, list[float]]]:
        for row, time in enumerate(one.shown):
            found = one.quantiles[row] if one.quantiles is not None and quantiles else []
            yield one.name, time, [float(value) for value in (one.best[row], *found)]


def header(levels: Sequence[float]) -> list[str]:
    """The header of the CSV, with a column for the quantile of each level."""
    return ["unique_id", "ds", "y", *(f"q{level:g}" for level in levels)]


def file_name(series: str) -> str:
    """The name of a series as a file name: letters, digits, dots and dashes, such as shop-7-Zagreb."""
    return regex.sub(rf"(?:(?!{LETTERS})[^_.])+", "-", series).strip("-.")[:80]


@dataclass(frozen=True, kw_only=True)
class Horizon:
    """A recipe's section `decoding`: what `weft predict` writes.

    Args:
        levels: of the quantiles that --scores adds.
        conformal: calibrate the quantiles on the validation part of the training data, which must exist
            (forecaster.py); this gives a point forecaster quantiles too.
    """

    levels: tuple[float, ...] = (0.1, 0.5, 0.9)
    conformal: bool = False

    def __post_init__(self) -> None:
        if not self.levels or not all(0 < one < 1 for one in self.levels):
            raise ConfigError(f"levels: expected numbers between 0 and 1, got {list(self.levels)}")


class SeriesInput(NamedTuple):
    """Series to forecast."""

    series: Sequence[SeriesColumn]
    plain: bool = False  # whether they were given as numbers without times
    style: TableStyle = COMMAS  # of their table


class ForecastPredictor(predictor.Predictor[SeriesInput]):
    """Forecasts the next rows of series.

    Args:
        model: in evaluation mode; one, or several together.
        data: the recipe's section `data`, for lookback, horizon and columns.
        about: names and scales of the training series.
        decoding: which quantiles.
        scores: whether to write quantiles.
        bands: whether to draw quantiles if the model has them.
        only: names of the series of a table to forecast; if empty, all.
        future: a table with the covariates that are known in advance.
        progress: receives what was assumed about a table.

    Example:
        >>> from torch import nn
        >>> from weft.nn import LinearForecaster
        >>> from weft.tasks.forecast.data import SeriesData
        >>> from weft.tasks.forecast.model import ForecastModel
        >>> data = SeriesData(file="series.csv", lookback=4, horizon=2)
        >>> model = ForecastModel(forecaster=LinearForecaster).build(4, 2, 0, 1).eval()
        >>> for weight in model.parameters():
        ...     _ = nn.init.zeros_(weight)  # an untrained model that repeats the last value
        >>> about = {"names": ["y"], "mean": [0.0], "std": [1.0]}
        >>> ForecastPredictor(model, data, about, Horizon()).predict([1.0, 2.0, 3.0, 4.0])
        [4.0, 4.0]
    """

    draws = True
    reads: ClassVar[Reads] = "numbers"
    linewise = False
    window = 1

    def __init__(
        self,
        model: ForecastNetwork | ForecastEnsemble | CalibratedForecast,
        data: SeriesData,
        about: Mapping[str, Any],
        decoding: Horizon,
        *,
        scores: bool = False,
        bands: bool = False,
        only: Sequence[str] = (),
        future: Path | None = None,
        progress: Progress = silent,
    ) -> None:
        self.forecaster = SeriesForecaster(model, data, about, decoding.levels)
        self._scores = scores
        self._quantiles = (scores or bands) and model.has_quantiles
        self._only = only
        self._future = future
        self._progress = progress

    def parse(self, raw: Raw, place: Place) -> SeriesInput:
        """The values of one series, oldest first; or a table: a path, the text of a CSV, a DataFrame."""
        forecaster = self.forecaster
        raw = self._timed(raw)
        if is_frame(raw) or isinstance(raw, Path):
            with TemporaryDirectory() as folder, given_as_file(raw, Path(folder), str(place)) as file:
                asked = SeriesInput(
                    forecaster.chosen(forecaster.data.table(file, forecaster.about), self._only)
                )
        elif not isinstance(raw, str | bytes):
            asked = SeriesInput([forecaster.of_values(raw, None, {}, {})], plain=True)
        else:
            content = raw.encode("utf-8", "replace") if isinstance(raw, str) else raw
            with held(content, str(place), ending_of(content)) as path:
                table = forecaster.data.table(path, forecaster.about, self.most)
            asked = SeriesInput(forecaster.chosen(table, self._only))
        return self._checked(asked, place)

    def _series(self, data: Any) -> Any:
        """An array [T, N] as a table, and one [T, 1] as a series, as `weft.fit` reads them."""
        if not isinstance(data, np.ndarray) or data.ndim != 2:
            return data
        names = [f"y{n + 1}" for n in range(data.shape[1])]
        if len(names) == 1 or names != [*self.forecaster.about["names"]]:
            return data[:, 0] if len(names) == 1 else data
        import pandas as pd

        return pd.DataFrame(data, columns=names)

    def _timed(self, data: Any) -> Any:
        """A table; what is assumed about the zone of its times is said."""
        data = self._series(data)
        zone, given, text = self.forecaster.data.zone, zone_of(data), ""
        if zone is not None and given is None and is_frame(data):
            text = f"times without a zone were read as those of {zone}, the zone of the training"
        elif given is not None and self.forecaster.about.get("base") == "":
            text = f"times of {given} were read as those of the training, which had no zone"
        if text:
            caution(text)
        return data

    def plot(
        self, raw: Any = None, *, series: str | int | Sequence[str | int] = (), **wrong: Any
    ) -> "Figure":
        """The forecasts of the first series of a table, or of those with these names; see Predictor.plot."""
        other = copy.copy(self)
        other._only = [*map(str, [series] if isinstance(series, str | int) else series)]
        is_file = isinstance(raw, str) and "\n" not in raw
        return predictor.Predictor.plot(other, Path(raw) if is_file else self._series(raw), **wrong)

    def evaluate(self, data: Any = None, *, split: Literal["test", "valid"] = "test") -> "pd.DataFrame":
        return super().evaluate(self._timed(data), split=split)

    def _checked(self, asked: SeriesInput, place: Place) -> SeriesInput:
        """The same, if every series can be forecast."""
        for one in asked.series:
            if why := self.forecaster.why_not(one._replace(name="") if asked.plain else one):
                raise place.refuse(why)
        return asked

    def inputs(self, source: Path | BinaryIO | None) -> Iterator[ParsedInput[SeriesInput]]:
        """The series of a file, or of the recipe's data."""
        forecaster = self.forecaster
        place = Place(forecaster.data.name if source is None else name_of(source))
        if self._scores and not forecaster.model.has_quantiles:
            raise ConfigError(
                "--scores: a point forecast has no quantiles; calibrate it with --set conformal=true, or "
                "train with the head normal, student or quantile"
            )
        data, about = forecaster.data, forecaster.about
        if source is not None and not isinstance(source, Path):
            yield from self.each_input(source)
            return
        table = data.table(source, about)
        if self._future is not None:
            table = data.future(self._future, table)
        chosen = forecaster.chosen(table, self._only)
        for note in (*table.assumed, *table.notes, *forecaster.remarks(chosen)):
            self._progress(note, 0, None)
        wrong = [forecaster.why_not(one) for one in chosen]
        if all(wrong):  # nothing is written then
            raise place.refuse(wrong[0] if wrong else "expected a column to forecast, got none; add one")
        style = data.style(source)
        for one, why in zip(chosen, wrong, strict=True):
            yield ParsedInput(place, DataError(why) if why else SeriesInput([one], style=style))

    def is_header(self, cells: Sequence[str]) -> bool:
        return True

    def count(self, value: SeriesInput) -> int:
        return len(value.series)

    def answers(self, inputs: Sequence[SeriesInput]) -> Iterator[ForecastAnswer]:
        for asked in inputs:
            found = [self.forecaster.forecast(one, quantiles=self._quantiles) for one in asked.series]
            yield ForecastAnswer(found, quantiles=self._scores, plain=asked.plain, style=asked.style)

    def formatted(self, answers: Iterable[Answer]) -> Iterator[tuple[Answer, str | None]]:
        """The first forecast with the table's header before it; a series without a forecast has no rows."""
        names = header(self.forecaster.levels if self._scores else ())
        for answer in answers:
            if answer.wrong or not isinstance(answer, ForecastAnswer):
                yield answer, None
            else:
                yield answer, f"{answer.style.header(names)}\n{answer.text()}" if names else answer.text()
                names = []

    def file(self, answers: Sequence[tuple[Answer, str | None]], output: Path) -> bytes:
        """CSV, or Parquet with all digits if the extension says so."""
        if output.suffix.lower() != ".parquet":
            return super().file(answers, output)
        texts = [one.whole() for one, _ in answers if isinstance(one, ForecastAnswer)]
        lines = [COMMAS.line(header(self.forecaster.levels if self._scores else ())), *texts] if texts else []
        return as_parquet("".join(f"{line}\n" for line in lines).encode(), output)

    def is_one(self, raw: Raw) -> bool:
        """Whether Python gave one series or table, not a list of them."""
        if isinstance(raw, str | bytes | Path) or is_frame(raw):
            return True
        if isinstance(raw, dict) or not hasattr(raw, "__getitem__"):  # neither, so its error is that of one
            return True
        return len(raw) > 0 and isinstance(raw[0], float | int | np.number | None)

    def value(self, answer: ForecastAnswer) -> Any:
        """A list of numbers, or a DataFrame of a table."""
        if answer.plain:
            return answer.json()
        import pandas as pd

        return pd.concat([_frame(one, self.forecaster.data.zone) for one in answer.found], ignore_index=True)

    @overload
    def predict(
        self,
        raw: Sequence[float],
        name: str | None = None,
        *,
        known: Mapping[str, Sequence[float]] = {},
        past: Mapping[str, Sequence[float]] = {},
    ) -> list[float]: ...

    @overload
    def predict(
        self, raw: "pd.DataFrame | pd.Series | str | Path | None" = None, *, future: Any = None
    ) -> "pd.DataFrame": ...

    @overload
    def predict(self, raw: "Sequence[Sequence[float]]") -> AnswerList[list[float]]: ...

    def predict(
        self,
        raw: Any = None,
        name: str | None = None,
        *,
        known: Mapping[str, Sequence[float]] = {},
        past: Mapping[str, Sequence[float]] = {},
        future: Any = None,
    ) -> Any:
        """The next `horizon` rows of every series of a table, or the next values of one series.

        Args:
            raw: a DataFrame, a Series or a file, as `weft predict` reads them: columns of series, or
                `unique_id`, time and value; or the values of one series, at least `lookback`, oldest first.
                A list of numbers is one series; a list of such lists, of Series or of DataFrames is many.
                None continues the recipe's own data.
            name: of a series of values, as in training; None uses the scale of the first series.
            known: covariates of values that are known in advance, by name, with `horizon` values more than
                `raw`.
            past: covariates of values whose future is unknown, with as many values as `raw`.
            future: of a table, the covariates that are known in advance, as a file or a DataFrame with the
                times after it.

        Returns:
            Of a table a DataFrame with the columns unique_id, ds and y, and q0.1 and so on if the model has
            quantiles; of plain values a list of numbers; of many an AnswerList of either.

        Raises:
            DataError: too few values, or covariates that are missing, too few or too many.
            ConfigError: the model requires dates or other series; give it a table.
        """
        raw = self._series(raw)
        if future is not None:
            return self._continued(raw, future)
        if raw is None or isinstance(raw, str | Path) or is_frame(raw):
            return self._table(raw)
        if not self.is_one(raw):
            return self.predict_all(raw)
        series = self.forecaster.of_values(raw, name, known, past)
        asked = self._checked(SeriesInput([series], plain=True), Place("input"))
        return self.value(next(self.answers([asked])))

    def _continued(self, raw: Any, future: Any) -> "pd.DataFrame":
        """The forecasts of a table, given its covariates of later times."""
        other = copy.copy(self)
        with (
            TemporaryDirectory() as folder,
            given_as_file(self._timed(raw), Path(folder), "input") as file,
            given_as_file(self._timed(future), Path(folder), "future") as later,
        ):
            other._future = later
            return other._table(file)

    def _table(self, raw: Any) -> "pd.DataFrame":
        import pandas as pd

        if not is_frame(raw):
            given = list(self.inputs(None if raw is None else Path(raw)))
            values = [one.value for one in given if isinstance(one.value, SeriesInput)]
            for one in given:
                if not isinstance(one.value, SeriesInput):
                    caution(one.place.why(one.value))
        else:
            values = [self.parse(raw, Place("input"))]
        for note in self.forecaster.remarks([one for asked in values for one in asked.series]):
            caution(note)
        answers = self.fresh().answers(values)
        return pd.concat(map(self.value, answers), ignore_index=True)

    def fresh(self) -> Self:
        """The same with quantiles, if the model has them."""
        other = copy.copy(self)
        other._quantiles = self.forecaster.model.has_quantiles
        return other


def _frame(one: ForecastRecord, zone: str | None) -> "pd.DataFrame":
    """A forecast as a DataFrame; its times are in a zone if those of the series are."""
    import pandas as pd

    times: Any = one.times
    if one.shown and (offset := re.search(r":\d\d([+-]\d\d:\d\d)$", one.shown[0])):
        times = pd.to_datetime(list(one.shown), utc=True).tz_convert(zone or offset[1])
    columns: dict[str, Any] = {"unique_id": one.name, "ds": times, "y": one.best}
    if one.quantiles is not None:
        columns |= {f"q{level:g}": one.quantiles[:, n] for n, level in enumerate(one.levels)}
    return pd.DataFrame(columns)


def inspect_series(forecaster: SeriesForecaster, text: str | None, series: str | None) -> Inspection:
    """The newest rows of a series, and the forecast of those after the last one.

    If the table lacks the covariates for that, its last rows are forecast instead, beside the true values.
    """
    data, model = forecaster.data, forecaster.model
    file = None if text is None else file_named(text, "a file of series")
    table = data.table(file, forecaster.about)
    one = forecaster.chosen(table, [series] if series else ())[0]
    if (why := forecaster.why_not(one)) and not data.known:
        raise DataError(why)
    windows, chosen = forecaster.last_rows(one) if why else forecaster.window(one)
    found = record(model, windows, chosen, forecaster.levels, quantiles=model.has_quantiles)
    past, _ = tensors(windows, chosen, next(model.parameters()).device)
    with torch.no_grad():
        best = model.best(past)
    mask = torch.ones_like(best, dtype=torch.bool)
    return Inspection(
        text=text or f"the newest rows of {data.name}",
        answer=" ".join(f"{value:.4g}" for value in found.best),
        source=[str(n) for n in range(-past.values.shape[1] + 1, 1)],
        target=[f"+{n}" for n in range(1, best.shape[1] + 1)],
        batch=SeriesBatch(past, best, mask, int(mask.sum())),
        forecast=found if why else found._replace(actual=None),
    )


SEED = 1
CLOSE = 1e-4
"""Share of the largest number by which equal forecasts may differ."""


class BestForecast(nn.Module):
    """Scaled values and the number of each series, and other inputs that the model has, to the forecast."""

    def __init__(self, model: ForecastNetwork, horizon: int, known: int) -> None:
        super().__init__()
        self.model = model
        self.horizon = horizon
        self.known = known

    def forward(self, values: Tensor, which: Tensor, *more: Tensor) -> Tensor:
        """[B, L], [B] int64, [B, L + H, G] if G, [B, L, C] if C, to [B, H]."""
        rows, lookback = values.shape
        known = more[0] if self.known else values.new_zeros(rows, lookback + self.horizon, 0)
        seen = more[-1] if len(more) > bool(self.known) else values.new_zeros(rows, lookback, 0)
        return self.model.best(Past(values, known, which, seen))


def export_forecaster(model: ForecastNetwork, data: SeriesData, about: Mapping[str, Any]) -> ModelExport:
    """A forecaster as one graph: the newest values of series to the next ones."""
    for name in ("static", "categories", "gaps", "transform"):
        if getattr(data, name):
            raise _not_exported(name, "reads numbers as they are")
    channels = (about.get("channels") or {}).get("names", [])
    sizes = len(about["names"]), about["known"], len(channels)
    two, three = (_inputs(data, *sizes, rows=rows) for rows in (2, 3))
    graph = Graph(
        "forecast_values", BestForecast(model, data.horizon, about["known"]), (two, three), ["best"]
    )
    settings: dict[str, Any] = {
        "kind": "forecaster",
        "lookback": data.lookback,
        "horizon": data.horizon,
        "fill": about.get("fill", 1),
        "positive": data.positive,
        "names": list(about["names"]),
        "mean": list(map(float, about["mean"])),
        "std": list(map(float, about["std"])),
    }
    if not about["known"] and not channels:
        waves = partial(_examples, data, about)
        return ModelExport([graph], settings, {}, waves, "series", None, _shown, distance, CLOSE)
    settings |= {"kind": "tables", **_of_tables(data, about)}
    examples = partial(tables, data, about)
    return ModelExport([graph], settings, {}, examples, "tables", None, _rows, _distance_of_rows, CLOSE)


def _not_exported(setting: str, why: str) -> ConfigError:
    return ConfigError(f"data: {setting}: the exported program {why}; serve the run with weft serve")


def _inputs(data: SeriesData, series: int, known: int, channels: int, *, rows: int) -> dict[str, Tensor]:
    """Random windows."""
    draw = torch.Generator().manual_seed(SEED + rows)
    found = {
        "values": torch.randn(rows, data.lookback, generator=draw),
        "which": torch.randint(series, (rows,), generator=draw),
    }
    if known:
        found["known"] = torch.randn(rows, data.lookback + data.horizon, known, generator=draw)
    if channels:
        found["seen"] = torch.randn(rows, data.lookback, channels, generator=draw)
    return found


def _of_tables(data: SeriesData, about: Mapping[str, Any]) -> dict[str, Any]:
    if data.resample is not None:
        raise _not_exported("resample", "reads rows as they are")
    which = data.columns
    if len(which.time) > 1:
        raise _not_exported("time", "reads times of one column")
    trained = scales_of(about)
    scales = {"covariates": trained.known, "channels": trained.channels}
    columns = about["channels"]["names"][: -len(data.past) or None] if data.inputs == "all" else []
    return {
        "time": which.time[0] if which.time else None,
        "times": list(TIMES),
        "dates": data.dates,
        "id": list(which.id),
        "base": about.get("base"),
        "targets": list(data.targets or data.trained(about)),
        "known": list(data.known),
        "past": list(data.past),
        "columns": list(columns),  # of a model that reads them all
        "calendar": about["known"] > len(data.known),
        "step": None if data.frequency is None else _step(data.frequency),
        **{key: {"mean": one.mean.tolist(), "std": one.std.tolist()} for key, one in scales.items()},
    }


def _step(frequency: str) -> dict[str, int]:
    """The distance of two times."""
    months = calendar.months_of(frequency)
    if calendar.OTHER_DAY.match(frequency):
        return {"months": months}
    offset = calendar.offset_of(frequency)
    kind = type(offset).__name__
    if kind == "Week":
        return {"seconds": 7 * 86400 * offset.n}
    if kind == "BusinessDay" and offset.n == 1:
        return {"business": 1}
    if months and "Business" not in kind:
        return {"months": months}
    with suppress(ValueError):
        return {"seconds": offset.nanos // 10**9}
    raise _not_exported("frequency", f"cannot count times of the frequency {frequency}")


def _examples(data: SeriesData, about: Mapping[str, Any], count: int) -> Sequence[Sequence[float]]:
    """Waves with noise at the scale of the first series."""
    rows, mean, std = data.lookback + 7, about["mean"][0], about["std"][0]
    return [[float(value) for value in row] for row in _waves(rows, count) * std + mean]


def _waves(rows: int, count: int) -> np.ndarray:
    """[count, rows]."""
    draw = np.random.default_rng(SEED)
    return np.sin(np.arange(rows) * draw.uniform(0.05, 1.0, (count, 1))) + draw.normal(0, 0.3, (count, rows))


def tables(data: SeriesData, about: Mapping[str, Any], count: int) -> Sequence[str]:
    """Tables of waves as CSV, with covariates and times if the model reads any."""
    rows = data.lookback + 7
    import pandas as pd

    begin = pd.Timestamp("2024-02-29", tz=about.get("base") or None)
    times = (
        [] if data.frequency is None else calendar.after(data.frequency, begin, rows + data.horizon).tolist()
    )
    names = [*about["columns"], *data.known, *data.past]
    values = _waves(rows + data.horizon, count * len(names)).reshape(count, len(names), -1)
    which = data.columns
    names_of = [*([*which.time[:1], "ds"][:1] if times else []), *which.id, *names]
    found = []
    for table in values:
        table[len(about["columns"]) + len(data.known) :, rows:] = np.nan
        table[: len(about["columns"]), rows:] = np.nan
        lines = [",".join(names_of)]
        for n, row in enumerate(table.T):
            numbers = ["" if np.isnan(one) else f"{one:.4f}" for one in row]
            lines.append(",".join([*map(str, times[n : n + 1]), *("a" for _ in which.id), *numbers]))
        found.append("\n".join(lines) + "\n")
    return found


def _shown(answer: Answer) -> str:
    numbers: Any = answer.json()
    return " ".join(map(repr, numbers))


def distance(ours: str, theirs: str) -> float:
    """The largest difference of two lines of numbers, as a share of the largest number of the first.

    Example:
        >>> distance("-4 2", "-4 2.5"), distance("1 2", "1")
        (0.125, inf)
    """
    a, b = (np.array(text.split(), np.float64) for text in (ours, theirs))
    if a.shape != b.shape:
        return math.inf
    found = float(np.abs(a - b).max() / (np.abs(a).max() or 1))
    return found if math.isfinite(found) else math.inf


def _rows(answer: Answer) -> str:
    return f"{COMMAS.line(header(()))}\n{answer.text()}"


def _distance_of_rows(ours: str, theirs: str) -> float:
    """Infinite unless series and times are the same."""
    a, b = ([line.rsplit(",", 1) for line in text.split("\n")[1:]] for text in (ours, theirs))
    if [row[0] for row in a] != [row[0] for row in b]:
        return math.inf
    return distance(*(" ".join(row[1] for row in rows) for rows in (a, b)))
