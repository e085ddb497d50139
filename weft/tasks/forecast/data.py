"""A recipe's section `data` for time series: which file, which columns, which windows."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from weft.data import calendar
from weft.data.future import read_future, with_future
from weft.data.held import held
from weft.data.series import Columns, Series, Table, read_series
from weft.data.windows import Scale, Windows
from weft.errors import ConfigError

GENERATED = ("waves",)


@dataclass(frozen=True, kw_only=True)
class SeriesData:
    """Where series come from, and what is forecast from what.

    Args:
        file: .csv or .parquet: wide (a column a series) or long (unique_id, ds, y, or as id and targets say).
        generated: made-up series instead of a file: waves (two seasons, a trend and noise).
        folder: where the file is; the current one by default.
        time: the column of the times; found by its name where null.
        id: the column that names the series of a row, in a long table with one column of values.
        dates: whether dates begin with the day or the month (31.12.2024, 12/31/2024); null asks the dates.
        targets: columns to forecast; all in a wide table where empty.
        inputs: own forecasts a column from its own past; all from the pasts of all columns of a wide table.
        known: columns of covariates that are known ahead, such as holidays; a forecast must be given them.
        past: columns of covariates whose future is not known, such as the weather; only their past is read.
        frequency: how often rows come, as pandas writes it (h, 15min, D, B, W-SUN, MS, ME, QE); by the
            times where null.
        resample: mean, sum, first, last, min or max gathers rows into periods of `frequency`; null expects
            regular rows.
        calendar: hour, weekday, day and month as covariates.
        split: three shares or three numbers of rows, one after the other: training, validation, test.
        lookback, horizon: rows that are read, and rows that are forecast.
        season: rows of a season, for the seasonal baseline; by the frequency where null.
        batch_rows: windows a batch.
        windows_an_epoch: windows drawn for an epoch; 0 for all.
        seed: of generated series.
    """

    file: str | None = None
    generated: str | None = None
    folder: Path = Path()
    time: str | None = None
    id: str | None = None
    dates: Literal["day", "month"] | None = None
    targets: tuple[str, ...] = ()
    inputs: Literal["own", "all"] = "own"
    known: tuple[str, ...] = ()
    past: tuple[str, ...] = ()
    frequency: str | None = None
    resample: Literal["mean", "sum", "first", "last", "min", "max"] | None = None
    calendar: bool = False
    split: tuple[float, ...] = (0.7, 0.1, 0.2)
    lookback: int = 96
    horizon: int = 24
    season: int | None = None
    batch_rows: int = 256
    windows_an_epoch: int = 0
    seed: int = 1

    def __post_init__(self) -> None:
        if (self.file is None) == (self.generated is None):
            raise ConfigError("give either file (your series) or generated: waves, and only one of them")
        if self.generated is not None and self.generated not in GENERATED:
            raise ConfigError(f"generated: expected one of {', '.join(GENERATED)}, got {self.generated!r}")
        for name in ("lookback", "horizon", "batch_rows"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}: expected at least 1, got {getattr(self, name)}")
        if len(self.split) != 3:
            raise ConfigError(f"split: expected three parts, got {list(self.split)}")
        if self.resample is not None and self.frequency is None:
            raise ConfigError(
                f"resample: {self.resample} needs the periods to gather into, such as frequency: D"
            )

    @property
    def name(self) -> str:
        """For people."""
        return self.generated or Path(str(self.file)).name

    def table(self, file: Path | None = None) -> Table:
        """The series of the recipe, or of another file with the same columns."""
        if file is None and self.generated is not None:
            return waves(self.seed)
        path = file if file is not None else self.folder / str(self.file)
        table = read_series(path, self.columns)
        missing = [name for name in self.targets if name not in table.columns]
        if missing:
            raise ConfigError(
                f"targets: {path} has no column {missing[0]!r}, but {', '.join(table.columns)}; name some of "
                "them"
            )
        return table

    def future(self, file: Path, table: Table) -> Table:
        """A table whose series know the covariates of another file, for the periods after their last."""
        return with_future(table, read_future(file, self.columns, table.long), str(file))

    @property
    def columns(self) -> Columns:
        """Which columns of a table are what."""
        targets = self.targets if self.inputs == "own" else ()
        return Columns(
            self.time, targets, self.known, self.past, self.frequency, self.resample, self.id, self.dates
        )

    def windows(self, table: Table, scales: tuple[Scale, Scale] | None = None) -> Windows:
        """Of a table.

        Args:
            table: read by this section.
            scales: of known covariates and of columns beside, where a run has them.

        Raises:
            ConfigError: inputs of all columns, and there is but one.
        """
        channels = self.inputs == "all"
        if channels and (table.long or len(table.columns) < 2):
            raise ConfigError(
                f"inputs: expected own, got all, but {self.name} has no other columns; give a wide table"
            )
        return Windows(
            table,
            split=self.split,
            lookback=self.lookback,
            horizon=self.horizon,
            calendar=self.calendar,
            targets=self.targets,
            channels=channels,
            scales=scales,
        )

    def season_of(self, table: Table) -> int:
        """Rows of a season: given, or by the frequency of the first series that has one; else 1."""
        if self.season is not None:
            return self.season
        names = [series.frequency for series in table.series if series.frequency]
        return calendar.season_of(names[0]) if names else 1


def waves(seed: int, rows: int = 2400, count: int = 3) -> Table:
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
    times = np.datetime64("2024-01-01T00", "s") + np.timedelta64(3600, "s") * t
    columns = tuple(f"wave{n + 1}" for n in range(count))
    none = np.zeros((rows, 0))
    return Table([Series("", times, values, none, none, none[:0], "h")], columns, (), (), False)


def received(text: bytes, data: SeriesData, name: str = "standard input") -> Table:
    """A table that is no file: the text of a CSV.

    Args:
        text: in UTF-8.
        data: which columns are what.
        name: what errors call it.

    Raises:
        DataError: names the line of what cannot be read.
    """
    with held(text, name, ".csv") as path:
        return data.table(path)
