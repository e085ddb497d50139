"""What `weft init forecast` writes: a recipe for a user's series, with the reasons as comments."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from weft.data.series import Columns, read_series
from weft.errors import ConfigError, DataError
from weft.tasks.forecast.columns import guessed, parts
from weft.tasks.init import Init, Option, Written
from weft.tasks.shared.planned import planned

FEW, MANY = 2_000, 20_000  # training windows

YEARS = 3
"""Of training from which the calendar is an input: before, a month is a date that never comes again."""


class Forecast(Init):
    """A table of series, and which of its columns are what."""

    about: ClassVar[str] = "A forecaster for series in CSV or Parquet."
    examples: ClassVar = (
        "--file sales.csv --horizon 28",
        "--file sales.csv --horizon 28 --known holiday,promotion --past temperature",
        "--file shops.csv --horizon 28 --id shop --time date --target sales",
    )
    options: ClassVar = (
        Option("file", "Table: a column for each series, or unique_id, ds and y.", Path, required=True),
        Option("horizon", "Number of rows to forecast.", int, required=True),
        Option("time", "Column of the times. Default: guessed, and printed."),
        Option("id", "Column of the series' names, in a long table. Default: guessed, and printed."),
        Option("target", "Columns to forecast: a,b (repeatable). Default: all numbers.", multiple=True),
        Option("known", "Columns known in advance, such as holidays: a,b (repeatable).", multiple=True),
        Option(
            "past", "Columns with an unknown future, such as the weather: a,b (repeatable).", multiple=True
        ),
        Option(
            "dates",
            "What ambiguous dates begin with: the day (31/12/2024) or the month (12/31/2024).",
            choices=("day", "month"),
        ),
        Option(
            "frequency", "Time between rows, as pandas names it: h, D, B, MS, QE. Default: from the times."
        ),
        Option(
            "resample",
            "Aggregate irregular rows into periods of --frequency.",
            choices=("mean", "sum", "first", "last", "min", "max"),
        ),
    )

    def write(self, given: Mapping[str, Any], say: Callable[[str], None]) -> Written:
        """A recipe for the forecaster; says which columns it guessed."""
        if given["resample"] and not given["frequency"]:
            raise ConfigError("--resample: expected --frequency beside it, got none; add one, such as D")
        file: Path = given["file"]
        lists: Mapping[str, Sequence[str]] = {
            "targets": given["target"],
            "known": given["known"],
            "past": given["past"],
        }
        named = {name: [part for one in names for part in parts(file, one)] for name, names in lists.items()}
        single: dict[str, Any] = {
            name: given[name] for name in ("time", "id", "dates", "frequency", "resample")
        }
        which, note = guessed(file, Columns(**{**single, **named}))
        if note:
            say(note)
        return Written(recipe(file, given["horizon"], which), [("data", "check", str(file))])


def years(times: np.ndarray) -> float:
    """How long a series is; 0 where it has no dates."""
    if times.dtype.kind != "M":
        return 0.0
    return float((times[-1] - times[0]) / np.timedelta64(365 * 86400, "s"))


def recipe(file: Path, horizon: int, which: Columns) -> str:
    """A recipe whose lookback, segment and season fit the file.

    Args:
        file: .csv or .parquet.
        horizon: rows to forecast.
        which: columns, as the user named them.

    Raises:
        DataError: the file cannot be read, or is too short for the horizon.
    """
    from weft.tasks.forecast.data import SeriesData  # loads torch

    table = read_series(file, which)
    targets, known, past = which.targets, which.known, which.past
    lengths = [len(series.times) for series in table.series]
    rows, most = min(lengths), max(lengths)
    shown = f"{rows:,} rows" if rows == most else f"{rows:,} to {most:,} rows"
    season = SeriesData(file=str(file)).season_of(table)
    frequency = table.series[0].frequency
    often = f", at the frequency {frequency}" if frequency else ""
    train = int(0.7 * rows)
    lookback = max(horizon, 2 * season, 8)
    while lookback > horizon and lookback + horizon > train // 2:
        lookback -= 1
    if lookback + horizon > train:
        raise DataError(
            f"expected at least {int(2 * horizon / 0.7) + 1} rows for a horizon of {horizon}, got {rows}",
            path=file,
        )
    segment = next(
        one for one in range(min(lookback, horizon, 48), 0, -1) if not (lookback % one or horizon % one)
    )
    count = len(table.series) * len(table.columns)
    windows = len(table.columns) * sum(
        max(1, int(0.7 * len(series.times)) - lookback - horizon + 1) for series in table.series
    )
    batch = 256 if windows > MANY else 64 if windows > FEW else 16
    plan = planned(windows / batch, epochs=30, warmup=0)
    lines = [
        f"# {count} series of {shown} in {file.name}{often}; a season looks like {season} rows.",
        *(f"# {note.removeprefix(f'{file}: ')}" for note in table.notes),
        "task: forecast",
        "data:",
        f"  file: {json.dumps(str(file), ensure_ascii=False)}",
    ]
    for key, value in (("time", which.time), ("id", which.id), ("dates", which.dates)):
        lines += [f"  {key}: {json.dumps(value, ensure_ascii=False)}"] if value else []
    lines += [f"  targets: {json.dumps(list(targets), ensure_ascii=False)}"] if targets else []
    for key, names, what in (
        ("known", known, "covariates that are known ahead: weft predict must be given them for the future"),
        ("past", past, "covariates whose future is not known; only their past is read"),
    ):
        lines += [f"  {key}: {json.dumps(list(names), ensure_ascii=False)}   # {what}"] if names else []
    lines += [f"  frequency: {json.dumps(which.frequency)}"] if which.frequency else []
    lines += [f"  resample: {which.resample}"] if which.resample else []
    calendar = "true" if min(years(series.times) for series in table.series) * 0.7 >= YEARS else "false"
    lines += [
        f"  lookback: {lookback}                # rows that are read",
        f"  horizon: {horizon}                 # rows that are forecast",
        f"  season: {season}                  # of the baseline 'last season repeated'",
        "  split: [0.7, 0.1, 0.2]       # training, validation, test, one after the other",
        f"  calendar: {calendar}               # hour, weekday, day and month as inputs",
        f"  batch_rows: {batch}               # windows a batch",
        "model:",
        f"  forecaster: {{use: segments, segment: {segment}, hidden: 128, dropout: 0.2}}",
        "  head: {use: quantile, best: mean}   # bands and a mean; or point, normal, student",
        "  normalise: last              # each window without its last value",
        "  base: linear                 # begin as ridge regression and learn what it leaves",
        "training:",
        f"  optimiser: {{use: adam, lr: {0.001 if windows > MANY else 0.002}}}",
        "  schedule: {use: cosine}",
        f"  max_epochs: {plan.epochs}",
        f"  patience: {max(5, plan.epochs // 4)}                 # epochs without a better validation",
        "  validate_start: true         # keep that beginning where nothing better is learnt",
        "  metric: mse",
    ]
    return "\n".join(lines) + "\n"
