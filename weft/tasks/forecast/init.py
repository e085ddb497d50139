"""`weft init forecast`: a recipe for a user's series."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from weft.data.calendar import week_of
from weft.data.periods import horizon_of
from weft.data.series import Columns, SeriesTable, read_series
from weft.data.windows import TransformName
from weft.errors import ConfigError, DataError
from weft.tasks.init import TRAIN, Init, ModelCandidate, NewRecipe, Option, Trial, filled, only, planned
from weft.wording import plural

FEW, MANY = 2_000, 20_000  # training windows

TRIAL = Trial(
    (
        ModelCandidate("ridge", "ridge regression, the last season or the last value, solved at once"),
        ModelCandidate("network", "the same, whose errors a network learns", updates=2000),
    ),
    untried="network",
    unit="training horizon",
    fewest=140,  # 20 to validate on: with half of them, ridge won a draw on sunspots and lost the test
    most=200_000,
    part="training window",
    meant="rows to train on, divided by --horizon",
)

LONGEST_SEASON = 1440
"""Rows of the longest season that a lookback covers: a week of 10 minutes, a day of minutes."""

YEARS = 3
"""Minimum training length, in years, for the calendar as an input; below it, each month is too rare."""


WRITTEN = ("time", "id", "dates", "zone", "targets", "known", "past", "static", "categories", "frequency")
"""Fields of Columns that a recipe states if they are set."""


class ForecastInit(Init):
    """A recipe for a table of series; columns are named or guessed."""

    about: ClassVar[str] = "A forecaster for series in tables."
    examples: ClassVar = (
        "sales.csv --horizon 28",
        "sales.csv --horizon 28 --known holiday --past rain",
        "shops.csv --horizon 28 --id shop --time day --target sold",
    )
    options: ClassVar = (
        TRAIN._replace(help="Table: a column for each series, or unique_id, ds and y.", old="file"),
        Option("horizon", "Number of rows to forecast. Default: the @horizon of a .tsf.", int),
        Option(
            "time",
            "Column of the times, or several that make a time: date,hour. Default: guessed, and printed.",
            multiple=True,
        ),
        Option(
            "id",
            "Columns that name the series, in a long table: a,b (repeatable). Default: guessed, and printed.",
            multiple=True,
        ),
        Option(
            "target", "Columns to forecast: a,b (repeatable). Default: all numeric columns.", multiple=True
        ),
        Option("known", "Columns known in advance, such as holidays: a,b (repeatable).", multiple=True),
        Option(
            "past", "Columns known only for the past, such as the weather: a,b (repeatable).", multiple=True
        ),
        Option(
            "static",
            "Columns with one value for each series, such as a region: a,b (repeatable).",
            multiple=True,
        ),
        Option(
            "category",
            "Columns of classes instead of numbers, such as 0, a, b: of those above, or known in advance.",
            multiple=True,
        ),
        Option(
            "dates",
            "Order of ambiguous dates: day first (31/12/2024) or month first (12/31/2024).",
            choices=("day", "month"),
        ),
        Option(
            "zone",
            "Time zone of the times, such as Europe/Zagreb. Default: from their offsets from UTC, if any.",
        ),
        Option(
            "frequency",
            "Time between rows, as a pandas alias: h, D, B, MS, QE. Default: inferred from the times.",
        ),
        Option(
            "resample",
            "Aggregate irregular rows into periods of --frequency.",
            choices=("mean", "sum", "first", "last", "min", "max"),
        ),
        Option(
            "absent",
            "What periods without a row are with --resample. Default: zero for sums.",
            choices=("zero", "missing"),
        ),
        Option("positive", "No value is below 0, as of counts: no forecast shall be.", bool),
        Option(
            "transform",
            "Forecast transformed values, such as those that grow by a share a year.",
            choices=("log", "log1p", "box-cox"),
        ),
        Option("gaps", "Give the network which values of the past are missing.", bool),
        *TRIAL.options(),
    )
    trial: ClassVar = TRIAL

    def write(self, given: Mapping[str, Any], say: Callable[[str], None]) -> NewRecipe:
        """A recipe for the forecaster; reports the guessed columns."""
        from weft.tasks.forecast.data import FORMS, ROLES, guessed, named  # here, as it imports torch

        file: Path = given["train"]
        which, note = guessed(file, named(file, given))
        if note:
            say(note)
        words = ["data", "check", str(file)]
        for name in (*ROLES, "target", *FORMS):
            values = given[name] if isinstance(given[name], list | tuple) else [given[name]]
            words += [word for one in values if one for word in (f"--{name}", one)]
        horizon = given["horizon"] or horizon_of(file)
        if not horizon:
            raise ConfigError("--horizon: expected the number of rows to forecast, got none; give one")
        solve = given["model"] == "ridge"
        forms = {name: given[name] for name in ("positive", "transform", "gaps")}
        return recipe(file, horizon, which, forms, solve=solve)._replace(steps=[words])


def years(times: np.ndarray) -> float:
    """Length of a series in years; 0 without dates."""
    if times.dtype.kind != "M":
        return 0.0
    return float((times[-1] - times[0]) / np.timedelta64(365 * 86400, "s"))


class _Measured(NamedTuple):
    """What the recipe states about a table."""

    values: Mapping[str, object]  # of the template
    windows: int  # of the training part
    left_out: Sequence[str]


def recipe(
    file: Path, horizon: int, which: Columns, forms: Mapping[str, Any] = {}, *, solve: bool = False
) -> NewRecipe:
    """A recipe whose lookback, segment and season fit the file; windows that do not overlap are counted."""
    from weft.tasks.forecast.data import short

    table = read_series(file, which)
    found = _measured(table, file, horizon, which, forms.get("transform"))
    batch = 256 if found.windows > MANY else 64 if found.windows > FEW else 16
    plan = planned(found.windows / batch, epochs=30, warmup=0)
    said = (*table.assumed, *table.notes, *([short(found.left_out)] if found.left_out else []))
    given = {name: getattr(which, name) for name in WRITTEN}
    given |= {name: given[name][0] for name in ("time", "id") if len(given[name]) == 1}
    text = filled(
        "forecast",
        {
            **found.values,
            "notes": "\n# ".join(note.removeprefix(f"{file}: ") for note in said) or None,
            "file": json.dumps(str(file), ensure_ascii=False),
            **{name: json.dumps(one, ensure_ascii=False) if one else None for name, one in given.items()},
            "resample": which.resample,
            "absent": which.absent,
            "horizon": horizon,
            **{
                name: str(forms[name]).lower() if forms.get(name) else None
                for name in ("positive", "transform", "gaps")
            },
            "batch": batch,
            "rate": 0.001 if found.windows > MANY else 0.002,
            "epochs": plan.epochs,
            "patience": max(5, plan.epochs // 4),
            "solved": only(solve),
        },
    )
    return NewRecipe(text, examples=found.windows // horizon, parts=found.windows)


def _measured(
    table: SeriesTable, file: Path, horizon: int, which: Columns, transform: TransformName | None
) -> _Measured:
    from weft.tasks.forecast.data import LOOKBACK, SeriesData  # loads torch
    from weft.tasks.forecast.model import lookback_of

    lengths = sorted(len(series.times) for series in table.series)
    usable = [rows for rows in lengths if int(0.7 * rows) >= 2 * horizon]
    if not usable:
        least = int(2 * horizon / 0.7) + 1
        why = f"expected at least {least} rows for a horizon of {horizon}, got {lengths[-1]}"
        raise DataError(why, path=file)
    rows, most = usable[len(usable) // 10], lengths[-1]  # a tenth may be too short for what the others need
    data = SeriesData(file=str(file), targets=tuple(which.targets), horizon=horizon, transform=transform)
    season, frequency = data.season_of(table), table.series[0].frequency
    train = int(0.7 * rows)
    room = max(horizon, train // 2 - horizon)
    wanted = [week_of(frequency) if frequency else 0, 2 * season, season]
    fitting = [one for one in wanted if one <= min(room, LONGEST_SEASON)] or [min(2 * season, room)]
    lookback = max(horizon, LOOKBACK, *fitting)
    if not which.ahead:  # the closed form does not read them, and would take a longer past in their place
        longest = train // 2 - horizon
        lookback = lookback_of(lambda rows: replace(data, lookback=rows).windows(table), lookback, longest)
    left_out = replace(data, lookback=lookback).windows(table).left_out
    segments = range(min(lookback, horizon, 48), 0, -1)
    windows = (max(1, int(0.7 * length) - lookback - horizon + 1) for length in lengths)
    shortest = 0.7 * min(years(series.times) for series in table.series if len(series.times) >= rows)
    counted = f"{plural(len(table.series) * len(table.columns), 'series')} of {rows:,}"
    counted += f"{'' if rows == most else f' to {most:,}'} rows in {file.name}"
    values = {
        "counted": counted + (f", at the frequency {frequency}" if frequency else ""),
        "season": season,
        "lookback": lookback,
        "segment": next(one for one in segments if not (lookback % one or horizon % one)),
        "calendar": "true" if shortest >= YEARS else "false",
    }
    return _Measured(values, len(table.columns) * sum(windows), left_out)
