"""The roles of the columns of a table of series, and every problem in files of series."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from weft.data.guess import columns_of, series_of
from weft.data.report import COMMON, Finding, Report, placed
from weft.data.series import LONG, Columns, read_rows, read_series
from weft.errors import ConfigError, DataError
from weft.wording import plural


def guessed(path: Path, which: Columns, *, check: bool = False) -> tuple[Columns, str]:
    """Columns that the user did not name are guessed from their values; a sentence says which.

    A table with unique_id, ds and y needs no guess.

    Args:
        path: the table.
        which: the columns that the user names.
        check: read every numeric column of a table that names its series; otherwise one must be named.

    Raises:
        DataError: the table cannot be read.
    """
    header = [name.lower() for name in read_rows(path)[0]]
    if path.suffix == ".parquet" or (all(name in header for name in LONG) and not which.targets):
        return which, ""
    said = {*which.id, *which.known, *which.past, ""}
    every = columns_of(path)
    columns = [one for one in every if one.name not in said]
    found = series_of(columns, ledger=which.resample is not None)
    if found is None:
        return which, ""
    unnamed = any(not one.name and one.filled for one in every)  # such as pandas' row numbers
    named, time = tuple(which.id) or found.id, tuple(which.time) or found.time
    targets = which.targets or (found.targets if named or found.left or unnamed else ())
    if named and check and len(targets) > 1:
        which = which._replace(past=(*which.past, *targets[1:]))
        targets = targets[:1]
    names = ", ".join(map(repr, named))
    if named and len(targets) != 1:
        raise ConfigError(
            f"{path}: expected one column of values next to the series' names ({names}), got "
            f"{', '.join(targets)[:200]}; name it with --target, and the others with --known or --past"
        )
    kept = which._replace(time=time, id=named, targets=tuple(targets))
    shown = [f"times {', '.join(map(repr, time))}"] if time else []
    shown += [f"names of series {names}"] if named else []
    shown += [f"to forecast {', '.join(map(repr, targets or found.targets))}"]
    shown += [f"left out {', '.join(map(repr, found.left))}"] if found.left else []
    return kept, f"{path}: {'; '.join(shown)}; --time, --id and --target name others"


def parts(file: Path, names: str) -> list[str]:
    """Column names from a comma-separated list, or a single name if a column is called that."""
    if names in read_rows(file)[0]:
        return [names]
    return [one.strip() for one in names.split(",") if one.strip()]


def short(left_out: Sequence[str]) -> str:
    """What training says about the series that it leaves out."""
    more = f"; and {plural(len(left_out) - 3, 'other')}" if len(left_out) > 3 else ""
    return f"left out {plural(len(left_out), 'series')}: {'; '.join(left_out[:3])}{more}"


WORDS = COMMON | {
    "empty": "columns with missing values",
    "same": "columns that never change",
    "period": "series with missing periods",
    "short": "series much shorter than the others",
}


SHORT = 4.0
"""A series is reported if the usual length is more than so many times its own."""


def check(files: Sequence[Path]) -> Report:
    """Find unreadable files and, in the others, missing values, constant columns and irregular times."""
    findings: list[Finding] = []
    lines: dict[str, int] = {}
    notes: list[str] = []
    for file in files:
        try:
            which, note = guessed(file, Columns(), check=True)
            notes += [note] if note else []
            table = read_series(file, which)
            notes += table.assumed
        except DataError as error:
            findings.append(placed(str(file), error))
            continue
        except ConfigError as error:
            findings.append(Finding(str(file), 0, "file", str(error).removeprefix(f"{file}: ")))
            continue
        usual = float(np.median([len(series.times) for series in table.series]))
        for series in table.series:
            if len(series.times) < usual / SHORT:
                what = (
                    f"series {series.name!r} has {plural(len(series.times), 'row')}, {usual:,.0f} are usual; "
                )
                what += "training leaves out what is shorter than lookback and horizon"
                findings.append(Finding(str(file), 0, "short", what))
            called = f"{file} {series.name}".strip()
            lines[called] = len(series.times)
            missing = np.isnan(series.values).sum(0)
            constant = (series.values == series.values[:1]).all(0)
            for column, name in enumerate(table.columns):
                values, holes = series.values[:, column], int(missing[column])
                if holes == len(values):
                    findings.append(Finding(str(file), 0, "empty", f"column {name} of {called} is empty"))
                elif holes:
                    what = f"column {name}: {holes:,} of {len(values):,} values are missing; they add no loss"
                    findings.append(Finding(str(file), 0, "empty", what))
                elif constant[column]:
                    findings.append(Finding(str(file), 0, "same", f"column {name} never changes"))
        findings += [Finding(str(file), 0, "period", note.removeprefix(f"{file}: ")) for note in table.notes]
    return Report(
        findings, dict(Counter(one.kind for one in findings)), lines, WORDS, "rows", notes=tuple(notes)
    )
