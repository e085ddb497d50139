"""A recipe's section `data` for time series, what a run saves about its series (series.json), and its checks.

Read next: ../../data/windows.py.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from weft.data import calendar, periods
from weft.data.dialect import MISSING
from weft.data.future import read_future, with_future
from weft.data.guess import ROWS, VALUE, ColumnStatistics, series_of, statistics_of
from weft.data.report import COMMON, Finding, Report, placed
from weft.data.series import (
    LONG,
    Columns,
    SeriesTable,
    TimeSeries,
    columns_of,
    read_rows,
    read_series,
    slower_columns,
)
from weft.data.table_style import TableStyle, style_of
from weft.data.tables import TableFile, kind_of
from weft.data.times import UNKNOWN
from weft.data.windows import PowerTransform, Scale, SeriesWindows, TrainedScales, TransformName
from weft.errors import CheckpointError, ConfigError, DataError, within
from weft.setting_types import AtLeastOne, check_fields
from weft.store import jsonfile
from weft.tasks.task import SPLITS, Split
from weft.wording import plural


@dataclass(frozen=True, kw_only=True)
class SeriesData:
    """The source of the series, the columns to forecast and the inputs.

    Args:
        file: a table (.csv, .tsv, .xlsx, .parquet): wide (a column per series) or long (unique_id, ds, y,
            or other names in `id` and `targets`).
        generated: made-up series instead of a file: waves (two seasons, a trend and noise).
        folder: folder of the file; by default the current one.
        time: the column of times, or a list of columns that make a time together (a date and a time of day; a
            year and a month); null finds it by name.
        id: the column that names the series of a row, in a long table with one column of values; or a list
            of columns that name it together.
        dates: whether dates begin with the day or the month (31.12.2024, 12/31/2024); null infers
            it from the dates.
        zone: time zone of the times, such as Europe/Zagreb; null reads it from their offsets from UTC, or
            takes times without offsets as they are.
        targets: columns to forecast; if empty, all of a wide table.
        inputs: `own` forecasts a column from its own past; `all` from the pasts of all columns of a wide
            table.
        known: covariates that are known in advance, such as holidays; forecasts need their values.
        past: covariates with an unknown future, such as the weather; only their past is read.
        static: covariates with one value for each series, such as the size of a shop; their future is known.
        categories: those of the covariates that hold classes, such as a, b; each class becomes an input.
        frequency: time between rows, as a pandas alias (h, 15min, D, B, W-SUN, MS, ME, QE); null infers
            one for all series from the times, `each` one for each series.
        resample: mean, sum, first, last, min or max aggregates rows into periods of `frequency`; null expects
            regular rows.
        absent: zero or missing, for periods without a row when rows are aggregated; null is zero for sums.
        positive: no value is below 0, as of counts: forecasts and quantiles below 0 become 0.
        transform: log, log1p (of the value plus 1) or box-cox (with the power that fits the training part):
            the model reads and forecasts values transformed so; forecasts are written in units.
        gaps: add as inputs which values of the past are missing.
        calendar: add hour, weekday, day and month as covariates.
        split: three shares or three numbers of rows, one after the other: training, validation, test.
        lookback, horizon: number of rows to read, and number of rows to forecast.
        season: rows per season, for the seasonal baseline; null infers it from the frequency.
        batch_rows: windows per batch.
        windows_an_epoch: windows drawn per epoch; 0 for all.
        seed: of generated series.
    """

    file: str | None = None
    generated: Literal["waves"] | None = None
    folder: Path = Path()
    time: str | tuple[str, ...] | None = None
    id: str | tuple[str, ...] | None = None
    dates: Literal["day", "month"] | None = None
    zone: str | None = None
    targets: tuple[str, ...] = ()
    inputs: Literal["own", "all"] = "own"
    known: tuple[str, ...] = ()
    past: tuple[str, ...] = ()
    static: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    frequency: str | None = None
    resample: Literal["mean", "sum", "first", "last", "min", "max"] | None = None
    absent: Literal["zero", "missing"] | None = None
    positive: bool = False
    transform: TransformName | None = None
    gaps: bool = False
    calendar: bool = False
    split: tuple[float, ...] = (0.7, 0.1, 0.2)
    lookback: AtLeastOne = 96
    horizon: AtLeastOne = 24
    season: int | None = None
    batch_rows: AtLeastOne = 256
    windows_an_epoch: int = 0
    seed: int = 1

    def __post_init__(self) -> None:
        check_fields(self)
        if (self.file is None) == (self.generated is None):
            raise ConfigError("set exactly one of file (your series) and generated: waves")
        if len(self.split) != 3:
            raise ConfigError(f"split: expected three parts, got {list(self.split)}")
        if self.resample is not None and self.frequency is None:
            raise ConfigError(
                f"resample: {self.resample} requires the length of a period, such as frequency: D"
            )

    def has(self, split: Split) -> bool:
        """Whether the recipe has the split."""
        return self.split[SPLITS.index(split)] > 0

    def find(self, split: Split) -> None:
        """Check that the file is there."""
        if self.file is not None and not (self.folder / self.file).exists():
            raise DataError("no such file; check data.file", path=self.folder / self.file)

    @property
    def name(self) -> str:
        """The name of the data, for titles and messages."""
        return self.generated or Path(str(self.file)).name

    def table(self, file: Path | None = None, about: Mapping[str, Any] = {}, most: int = 0) -> SeriesTable:
        """The series of the recipe, or of another file with the same columns."""
        if file is None and self.generated is not None:
            return waves(self.seed)
        path = file if file is not None else self.folder / str(self.file)
        if file is None and not path.exists():
            why = "no such file, and a saved forecaster has no data of its own; give a table, predict(frame)"
            raise DataError(f"{why}, or weft predict RUN FILE", path=path)
        which = self.columns
        if self.generated is None:
            base = about.get("base", UNKNOWN) if about else None
            inferred = bool(about and about.get("inferred"))
            which = which._replace(base=base, trained=self.trained(about), inferred=inferred)
        if about and "fill" not in about:
            which = which._replace(absent="older")
        which = which._replace(classes=about.get("classes", {}))
        table = read_series(path, which._replace(most=most, own=file is None))
        missing = [name for name in self.targets if name not in table.columns]
        if missing:
            raise ConfigError(
                f"targets: {path} has no column {missing[0]!r}, but {', '.join(table.columns)}; name some of "
                "them"
            )
        return table

    def style(self, file: Path | None) -> TableStyle:
        """How the table of the recipe, or another file, is written."""
        path = self.folder / str(self.file) if file is None else file
        generated = file is None and self.generated is not None
        if generated or path.suffix.lower() == ".tsf" or kind_of(path) not in ("", ".csv", ".tsv"):
            return TableStyle()
        return style_of(TableFile(path))

    def trained(self, about: Mapping[str, Any]) -> Sequence[str]:
        """The columns that a run forecasts, if they are a wide table's and the recipe does not name them."""
        columns = about.get("columns", ())
        wide = self.inputs == "own" and not self.targets and not self.id and self.generated is None
        return columns if wide and set(about.get("names", ())) <= set(columns) else ()

    def future(self, file: Path, table: SeriesTable) -> SeriesTable:
        """The table with covariates from another file for the periods after the last one of each series."""
        which = self.columns._replace(base=table.base, classes=table.classes)
        return with_future(table, read_future(file, which, table.long), str(file))

    @property
    def columns(self) -> Columns:
        """The roles of a table's columns."""
        same = ("known", "past", "static", "categories", "frequency", "resample", "absent", "dates", "zone")
        given: dict[str, Any] = {name: getattr(self, name) for name in same}
        targets = self.targets if self.inputs == "own" else ()
        return Columns(time=_names(self.time), id=_names(self.id), targets=targets, **given)

    def windows(
        self, table: SeriesTable, about: Mapping[str, Any] = {}, *, whole: bool = False
    ) -> SeriesWindows:
        """The windows of a table; of a whole one, all of them are tests."""
        channels = self.inputs == "all"
        if channels and (table.long or len(table.columns) < 2):
            raise ConfigError(
                f"inputs: expected own, got all, but {self.name} has no other columns; give a wide table"
            )
        return SeriesWindows(
            table,
            split=None if whole else self.split,
            lookback=self.lookback,
            horizon=self.horizon,
            calendar=self.calendar,
            targets=self.targets,
            channels=channels,
            season=self.season_of(table),
            positive=self.positive,
            gaps=self.gaps,
            transform=self.transform,
            trained=scales_of(about) if about else None,
        )

    def season_of(self, table: SeriesTable) -> int:
        """Rows per season: as set, or from the frequency of the first series that has one, or 1."""
        if self.season is not None:
            return self.season
        names = [series.frequency for series in table.series if series.frequency]
        return calendar.season_of(names[0]) if names else 1


def _names(given: str | tuple[str, ...] | None) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else given or ()


def waves(seed: int, rows: int = 2400, count: int = 3) -> SeriesTable:
    """Hourly series with a daily and a weekly season, a slow trend and noise."""
    generator = np.random.default_rng(seed)
    t = np.arange(rows)
    values = np.stack(
        [
            generator.uniform(1, 3) * np.sin(2 * np.pi * (t / 24 + generator.random()))
            + generator.uniform(0.5, 1.5) * np.sin(2 * np.pi * (t / 168 + generator.random()))
            + 0.3 * np.cumsum(generator.normal(0, 0.05, rows))
            + generator.normal(0, 0.2, rows)
            for _ in range(count)
        ],
        1,
    )
    import pandas as pd

    times = pd.date_range("2024-01-01", periods=rows, freq="h")
    columns = tuple(f"wave{n + 1}" for n in range(count))
    none = np.zeros((rows, 0))
    return SeriesTable([TimeSeries("", times, values, none, none, none[:0], "h")], columns, (), (), False)


_SCALE = ("mean", "std")


class SavedScale(jsonfile.Schema):
    """Means and deviations of columns, and their names unless series.json has them elsewhere."""

    mean: list[jsonfile.Real]
    std: list[jsonfile.Amount]
    names: list[str] = jsonfile.field(default_factory=list)


class SavedSeries(jsonfile.Schema):
    """A series.json."""

    names: Annotated[list[str], jsonfile.Meta(min_length=1)]
    mean: list[jsonfile.Real]
    std: list[jsonfile.Amount]
    known: Annotated[int, jsonfile.Meta(ge=0, le=100_000)]
    columns: list[str] = jsonfile.field(default_factory=list)
    frequency: str | None = None
    base: str | None = None  # of times (data/times.py); earlier runs have none
    covariates: SavedScale | None = None
    channels: SavedScale | None = None
    classes: dict[str, list[str]] = jsonfile.field(default_factory=dict)  # of the categories
    transform: list[jsonfile.Real] | None = None  # power and shift
    fill: Annotated[int, jsonfile.Meta(ge=1, le=1_000_000)] | None = None  # rows, for gaps
    unmeasured: dict[str, str] = jsonfile.field(default_factory=dict)  # times without values, by series


def read_facts(path: Path) -> dict[str, Any]:
    """The series.json of a run, as `series_facts` made it."""
    remedy = "train the run again"
    saved = jsonfile.load(path, SavedSeries, remedy)
    beside, ahead = saved.channels, saved.covariates
    sizes = [("mean", saved.mean, len(saved.names)), ("std", saved.std, len(saved.names))]
    sizes += [("channels." + key, getattr(beside, key), len(beside.names)) for key in _SCALE if beside]
    sizes += [("covariates." + key, getattr(ahead, key), len(ahead.names)) for key in _SCALE if ahead]
    for key, numbers, size in sizes:
        if len(numbers) != size:
            raise CheckpointError(f"{path}: $.{key}: expected {size} numbers, got {len(numbers)}; {remedy}")
    return {key: value for key, value in jsonfile.plain(saved).items() if value is not None}


def series_facts(windows: SeriesWindows) -> dict[str, Any]:
    """Names and scales of the training data, as plain values for JSON."""
    table = windows.table
    frequencies = {series.frequency for series in table.series if series.frequency}
    found: dict[str, Any] = {
        "names": windows.names,
        "columns": list(table.columns),
        "frequency": frequencies.pop() if len(frequencies) == 1 else None,
        "base": table.base,
        **_plain(windows.scale),
        "known": windows.known_size,
        "fill": windows.fill,
        "unmeasured": windows.unmeasured(),
        "classes": dict(table.classes),
        "transform": list(windows.transform),
        "covariates": {"names": list(table.known), **_plain(windows.known_scale)},
    }
    if len(windows.channels.mean):
        names = [*(table.columns if windows.sees_all else ()), *table.past]
        found["channels"] = {"names": names, **_plain(windows.channels)}
    return found


def scales_of(about: Mapping[str, Any]) -> TrainedScales:
    """The scales of training; runs of version 0.4 and earlier did not scale the known covariates."""
    none: dict[str, list[float]] = {"mean": [], "std": []}
    parts = about, about.get("covariates") or {"mean": 0.0, "std": 1.0}, about.get("channels") or none
    series, known, channels = (Scale(np.array(one["mean"]), np.array(one["std"])) for one in parts)
    transform = PowerTransform(*about.get("transform", ()))
    return TrainedScales(about["names"], series, known, channels, about.get("fill", 1), transform)


def _plain(scale: Scale) -> dict[str, list[float]]:
    return {"mean": scale.mean.tolist(), "std": scale.std.tolist()}


def guessed(path: Path, which: Columns, *, check: bool = False) -> tuple[Columns, str]:
    """Columns that the user did not name are guessed from their values; a sentence says which.

    A table with unique_id, ds and y, or with a series or a day in each row, needs no guess.
    """
    if path.suffix.lower() == ".tsf":
        return which, ""
    header, rows, _ = read_rows(path, which.time)
    in_rows = periods.of_days(header, rows) or periods.of_series(header, rows)
    if not which.targets and (in_rows or set(LONG) <= {name.lower() for name in header}):
        return which, ""
    said = {*which.id, *which.ahead, *which.past, ""}
    every = statistics_of(header, rows[:ROWS])
    columns = [one for one in every if one.name not in said]
    found = series_of(columns, ledger=which.resample is not None)
    if not which.targets and (wrong := _wrong_values(columns)):
        which = which._replace(targets=(wrong,))  # which the reader refuses
    if found is None:
        return which, ""
    unnamed = any(not one.name and one.filled for one in every)  # such as pandas' row numbers
    named, time = tuple(which.id) or found.id, tuple(which.time) or found.time
    targets = which.targets or (found.targets if named or found.left or unnamed else ())
    if named and check and len(targets) > 1:
        which = which._replace(past=(*which.past, *targets[1:]))
        targets = targets[:1]
    usual = [one for one in targets if VALUE.fullmatch(one)]
    left = found.left
    if named and len(usual) == 1:
        others = tuple(one for one in targets if one != usual[0])
        targets, left = ((usual[0], *others), left) if check else ((usual[0],), (*left, *others))
    names = ", ".join(map(repr, named))
    if named and len(targets) != 1:
        raise ConfigError(
            f"{path}: expected one column of values next to the series' names ({names}), got "
            f"{', '.join(targets)[:200]}; name it with --target, and the others with --known or --past"
        )
    kept, slower = which._replace(time=time, id=named, targets=tuple(targets)), dict[str, str]()
    gaps = any(cell.strip().lower() in MISSING for _, row in rows for cell in row)
    if gaps and not (named or which.targets or which.frequency):
        slower = slower_columns(read_series(path, kept))
        targets = tuple(name for name in targets or found.targets if name not in slower)
        kept = kept._replace(past=(*which.past, *slower), targets=targets if kept.targets else ())
    shown = [f"times {', '.join(map(repr, time))}"] if time else []
    shown += [f"names of series {names}"] if named else []
    shown += [f"to forecast {', '.join(map(repr, targets or found.targets))}"]
    shown += [f"past covariate {name!r}, as its values come at {often}" for name, often in slower.items()]
    shown += [f"left out {', '.join(map(repr, left))}"] if left else []
    return kept, f"{path}: {'; '.join(shown)}; --time, --id and --target name others"


def _wrong_values(columns: Sequence[ColumnStatistics]) -> str:
    """The column that is named like values and holds texts, unless another one named so holds numbers."""
    called = [one for one in columns if VALUE.fullmatch(one.name) and one.filled and not one.times]
    return "" if any(one.numbers for one in called) or not called else called[0].name


ROLES = ("time", "id", "known", "past", "static", "category")
FORMS = ("dates", "zone", "frequency", "resample", "absent")
"""Options that name columns of a table, and that say how it is read."""


def named(file: Path, given: Mapping[str, Any]) -> Columns:
    """The columns that the user names, and how they are read."""
    if given.get("resample") and not given.get("frequency"):
        raise ConfigError("--resample: expected --frequency with it, got none; add one, such as D")
    values: dict[str, Any] = {name: given.get(name) or () for name in (*ROLES, "target")}
    lists = {name: [some] if isinstance(some, str) else some for name, some in values.items()}
    header = read_rows(file)[0] if any(lists.values()) else []
    columns: dict[str, Any] = {
        name: [part for one in some for part in ([one] if one in header else _parts(one))]
        for name, some in lists.items()
    }
    for name, some in columns.items():
        with within(f"--{name}"):
            columns_of(file, header, some)
    forms: dict[str, Any] = {name: given.get(name) for name in FORMS}
    categories = columns.pop("category")
    others = (*columns["known"], *columns["past"], *columns["static"])
    columns["known"] += [name for name in categories if name not in others]
    return Columns(targets=columns.pop("target"), categories=categories, **columns, **forms)


def _parts(names: str) -> list[str]:
    return [one.strip() for one in names.split(",") if one.strip()]


def short(left_out: Sequence[str]) -> str:
    """What training says about the series that it leaves out."""
    more = f"; and {plural(len(left_out) - 3, 'other')}" if len(left_out) > 3 else ""
    return f"left out {plural(len(left_out), 'series')}: {'; '.join(left_out[:3])}{more}"


def without_meaning(found: Mapping[str, str]) -> list[str]:
    """At most a sentence on the times at which series never had a value in training."""
    by_times: dict[str, list[str]] = {}
    for name, text in found.items():
        by_times.setdefault(text, []).append(name)
    shown = [f"{text} ({few(names)})" for text, names in by_times.items()][:3]
    more = ["other times of other series"] if len(by_times) > len(shown) else []
    said = f"no value in training at {', '.join(shown + more)}, so forecasts there mean nothing"
    return [said] if found else []


def few(names: Sequence[str]) -> str:
    """The first names, and how many there are."""
    return ", ".join(names[:5]) + (f", ... ({len(names):,} in all)" if len(names) > 5 else "")


WORDS = COMMON | {
    "empty": "columns with missing values",
    "never": "columns that never have a value at some times of day or weekdays",
    "same": "columns that never change",
    "period": "series with missing periods",
    "short": "series much shorter than the others",
    "code": "columns with a number that may mean a missing value",
}


CODE = re.compile(r"-?99(9+|\.9+)?")
"""Numbers that are written where nothing was measured."""

LOOKBACK = 8
"""Minimum lookback that `weft init` writes."""

LEAST = 13
"""Minimum rows of a table to train on: the training part holds LOOKBACK and a horizon of 1."""

SHORT = 4.0
"""A series is reported if the usual length is more than so many times its own."""


def check(files: Sequence[Path], given: Mapping[str, Any] = {}) -> Report:
    """Find unreadable files and, in the others, missing values, constant columns and irregular times."""
    findings: list[Finding] = []
    lines: dict[str, int] = {}
    notes: list[str] = []
    for file in files:
        try:
            which, note = guessed(file, named(file, given), check=True)
            notes += [note] if note else []
            table = read_series(file, which)
            notes += table.assumed
        except DataError as error:
            findings.append(placed(str(file), error))
            continue
        except ConfigError as error:
            findings.append(Finding(str(file), 0, "file", str(error).removeprefix(f"{file}: ")))
            continue
        for series, inserted in zip(table.series, table.inserted, strict=True):
            lines[f"{file} {series.name}".strip()] = len(series.times) - inserted
        findings += [Finding(str(file), 0, kind, said) for kind, said in _faults(file, table)]
    return Report(
        findings, dict(Counter(one.kind for one in findings)), lines, WORDS, "rows", notes=tuple(notes)
    )


def _faults(file: Path, table: SeriesTable) -> Iterator[tuple[str, str]]:
    """The kinds of findings in a table, and what they say."""
    lengths = [len(series.times) for series in table.series]
    try:
        SeriesData(file=str(file), lookback=LOOKBACK, horizon=1).windows(table)
    except DataError as error:
        why = f"expected at least {LEAST} rows to train on, got {max(lengths)}; give more"
        yield "file", why if max(lengths) < LEAST else error.why
    usual = float(np.median(lengths))
    for series, length, inserted in zip(table.series, lengths, table.inserted, strict=True):
        if length < usual / SHORT:
            what = f"series {series.name!r} has {plural(length, 'row')}, {usual:,.0f} are usual; training "
            yield "short", f"{what}leaves out what is shorter than lookback and horizon"
        for column, name in enumerate(table.columns):
            values = series.values[np.isfinite(series.values[:, column]), column]
            rows, what = (
                length - inserted,
                f"column {name}" + f" of series {series.name!r}" * bool(series.name),
            )
            if never := calendar.unmeasured(series.times, series.values[:, column]):
                yield "never", f"{what}: never a value at {never}; forecasts there mean nothing"
            if not len(values):
                yield "empty", f"{what} has no value"
            elif holes := rows - len(values):
                yield "empty", f"{what}: {holes:,} of {rows:,} values are missing; they add no loss"
            elif said := _coded(values):
                yield "code", f"{what}: {said}"
            elif (values == values[0]).all():
                yield "same", f"{what} never changes"
    yield from (("period", note.removeprefix(f"{file}: ")) for note in table.notes)


def _coded(values: np.ndarray) -> str:
    """What to say of a number such as -999 that is far from all others."""
    for code in (values.min(), values.max()):
        others = values[values != code]
        if not CODE.fullmatch(f"{code:g}") or not len(others):
            continue
        low, high = float(others.min()), float(others.max())
        if max(low - code, code - high) > high - low:
            rows = plural(int((values == code).sum()), "row")
            what = f"{code:g} in {rows}, {low:g} to {high:g} in the others"
            return f"{what}; leave the cells empty if it means that there is no value"
    return ""
