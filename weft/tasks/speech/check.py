"""Reports every problem in lists of recordings at once, each with its place."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from weft.data.audio import SOUNDS, read_sound
from weft.data.lines import read_lines
from weft.data.report import COMMON, Finding, Report, placed
from weft.errors import DataError

WORDS = COMMON | {
    "recording": "recordings that cannot be read",
    "unspoken": "recordings without a transcript",
    "silent": "silent recordings",
    "nothing": "lists without recordings",
    "duplicate": "duplicate recordings in one list",
    "overlap": "recordings that also occur in an earlier list",
}


def check_recordings(files: Sequence[Path]) -> Report:
    """Check lists (FILE TAB TRANSCRIPT) and every recording in them, or single recordings.

    Args:
        files: the lists or recordings; recordings that an earlier list also contains are reported.
    """
    findings: list[Finding] = []
    lines: dict[str, int] = {}
    seen: dict[Path, str] = {}
    for file in files:
        if file.suffix.lower() in SOUNDS:
            findings += _sound(file, str(file), 0)
            lines[str(file)] = 1
            continue
        try:
            rows = list(read_lines(file))
        except DataError as error:
            findings.append(placed(str(file), error))
            continue
        lines[str(file)] = len(rows)
        for number, row in enumerate(rows, 1):
            if row.strip():
                findings += _row(file, number, row.split("\t"), seen)
        if not any(row.strip() for row in rows):
            findings.append(Finding(str(file), 0, "nothing", "expected recordings, got none"))
    return Report(findings, dict(Counter(one.kind for one in findings)), lines, WORDS, "recordings")


def _row(file: Path, number: int, columns: list[str], seen: dict[Path, str]) -> list[Finding]:
    if len(columns) != 2:
        what = f"expected 2 columns (FILE TAB TRANSCRIPT), got {len(columns)}"
        return [Finding(str(file), number, "columns", what)]
    found = []
    path = file.parent / columns[0].strip()
    if not columns[1].strip():
        what = f"no transcript of {columns[0]}; write what is said, or remove the line"
        found.append(Finding(str(file), number, "unspoken", what))
    first = seen.setdefault(path.resolve(), f"{file}:{number}")
    if first != f"{file}:{number}":
        kind = "duplicate" if first.rpartition(":")[0] == str(file) else "overlap"
        return [*found, Finding(str(file), number, kind, f"{columns[0]} is also at {first}")]
    return found + _sound(path, str(file), number)


def _sound(path: Path, file: str, line: int) -> list[Finding]:
    try:
        sound = read_sound(path)
    except DataError as error:
        return [Finding(file, line, "recording", str(error) if line else error.why)]
    if not sound.samples.any():
        return [Finding(file, line, "silent", f"{path} is silent; is it the right file?")]
    return []
