"""Reports every problem in files of series at once."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from weft.data.report import COMMON, Report
from weft.data.series import Columns, read_series
from weft.data.sides import Finding, placed
from weft.errors import ConfigError, DataError
from weft.tasks.forecast.columns import guessed

WORDS = COMMON | {
    "empty": "columns with missing values",
    "same": "columns that never change",
    "period": "series with missing periods",
}


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
        except DataError as error:
            findings.append(placed(str(file), error))
            continue
        except ConfigError as error:
            findings.append(Finding(str(file), 0, "file", str(error).removeprefix(f"{file}: ")))
            continue
        for series in table.series:
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
