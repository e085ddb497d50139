"""A recipe's section `data` for time series: which file, which columns, which windows."""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from weft.data.series import Series, Table, is_months, read_series, step_of
from weft.data.windows import Windows
from weft.errors import ConfigError, DataError

GENERATED = ("waves",)


@dataclass(frozen=True, kw_only=True)
class SeriesData:
    """Where series come from, and what is forecast from what.

    Args:
        file: .csv or .parquet: wide (a column a series) or long (unique_id, ds, y).
        generated: made-up series instead of a file: waves (two seasons, a trend and noise).
        folder: where the file is; the current one by default.
        time: the column of the times; found by its name where null.
        targets: columns to forecast; all in a wide table where empty.
        inputs: own forecasts a column from its own past; all from the pasts of all columns of a wide table.
        known: columns of covariates that are known ahead.
        calendar: hour, weekday, day and month as covariates.
        split: three shares or three numbers of rows, one after the other: training, validation, test.
        lookback, horizon: rows that are read, and rows that are forecast.
        season: rows of a season, for the seasonal floor; by the distance of the times where null.
        batch_rows: windows a batch.
        windows_an_epoch: windows drawn for an epoch; 0 for all.
        seed: of generated series.
    """

    file: str | None = None
    generated: str | None = None
    folder: Path = Path()
    time: str | None = None
    targets: tuple[str, ...] = ()
    inputs: Literal["own", "all"] = "own"
    known: tuple[str, ...] = ()
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
            raise ConfigError(f"generated: {self.generated!r} came, there is {', '.join(GENERATED)}")
        for name in ("lookback", "horizon", "batch_rows"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}: {getattr(self, name)} came, at least 1 is needed")
        if len(self.split) != 3:
            raise ConfigError(f"split: {list(self.split)} came, three parts are needed")

    @property
    def name(self) -> str:
        """For people."""
        return self.generated or Path(str(self.file)).name

    def table(self, file: Path | None = None) -> Table:
        """The series of the recipe, or of another file with the same columns."""
        if file is None and self.generated is not None:
            return waves(self.seed)
        path = file if file is not None else self.folder / str(self.file)
        if self.inputs == "own":
            return read_series(path, time=self.time, targets=self.targets, known=self.known)
        table = read_series(path, time=self.time, known=self.known)
        missing = [name for name in self.targets if name not in table.columns]
        if missing:
            raise ConfigError(
                f"targets: {path} has no column {missing[0]!r}, but {', '.join(table.columns)}; name some of "
                "them"
            )
        return table

    def windows(self, table: Table) -> Windows:
        """Of a table.

        Raises:
            ConfigError: inputs of all columns, and there is but one.
        """
        channels = self.inputs == "all"
        if channels and (table.long or len(table.columns) < 2):
            raise ConfigError(
                f"inputs: all came, and {self.name} has no other columns; give a wide table, or inputs: own"
            )
        return Windows(
            table,
            split=self.split,
            lookback=self.lookback,
            horizon=self.horizon,
            calendar=self.calendar,
            targets=self.targets,
            channels=channels,
        )

    def season_of(self, table: Table) -> int:
        """Rows of a season: given, or a day of hours, a week of days, a year of months; else 1."""
        if self.season is not None:
            return self.season
        step = step_of(table.series[0].times)
        if not isinstance(step, np.timedelta64):
            return 24 if self.generated else 1
        if is_months(step):
            return 12
        seconds = int(step.astype("timedelta64[s]").astype(int))
        return {86400: 7, 604800: 52}.get(seconds, max(1, 86400 // seconds) if seconds < 86400 else 1)


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
    return Table([Series("", times, values, np.zeros((rows, 0)))], columns, (), False)


def received(text: bytes, data: SeriesData, name: str = "standard input") -> Table:
    """A table that is no file: the text of a CSV.

    Args:
        text: in UTF-8.
        data: which columns are what.
        name: what errors call it.

    Raises:
        DataError: names the line of what cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="weft-") as folder:
        path = Path(folder) / "table.csv"
        path.write_bytes(text)
        try:
            return data.table(path)
        except (ConfigError, DataError) as error:
            raise type(error)(str(error).replace(str(path), name)) from None
