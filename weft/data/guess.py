"""Guess the columns of a table: texts and their classes, or times and series.

`weft init` and `weft data check` print this guess; a recipe names its columns. Read next: dialect.py.
"""

import csv
from collections.abc import Sequence
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from weft.data.clock import parse
from weft.data.dialect import iso, mark_of, with_points
from weft.data.lines import read_lines
from weft.data.sides import raw_lines
from weft.errors import DataError

ROWS = 2_000
"""Rows examined."""

LABELS = ("label", "class", "category", "topic", "sentiment", "type", "tag", "target", "stars", "rating")
"""Common names of a column of classes."""

MOST_CLASSES = 200


class ColumnStatistics(NamedTuple):
    """Statistics of a column's cells."""

    name: str
    words: float
    """Mean number of words."""

    distinct: int
    filled: int
    numbers: bool
    times: bool


class TableColumns(NamedTuple):
    """The columns of a table of labelled texts."""

    text: str
    label: str


class SeriesColumns(NamedTuple):
    """The columns of a table of series."""

    time: str | None
    id: str | None
    targets: tuple[str, ...]
    left: tuple[str, ...]
    """Unused columns, which are not numbers."""


def columns_of(path: Path, encoding: str = "utf-8") -> list[ColumnStatistics]:
    """The columns of a .csv or .tsv with a header; empty if its quoting is damaged.

    Raises:
        DataError: the file cannot be read as text.
    """
    try:
        lines = read_lines(path)
        if encoding.lower().replace("_", "-") not in ("utf-8", "utf8"):
            raw = (line for line in raw_lines(str(path)) if isinstance(line, bytes))
            lines = (line.decode(encoding, "replace") for line in raw)
        head = next(lines, "")
        mark = mark_of(head)
        rows = list(
            islice(csv.reader((f"{line}\n" for line in chain([head], lines)), delimiter=mark), ROWS + 1)
        )
    except csv.Error:
        return []
    names = [name.strip() for name in rows[0]] if rows else []
    body = [row for _, row in with_points([(0, row) for row in rows[1:] if len(row) == len(names)], mark)]
    return [_column(name, [row[n].strip() for row in body]) for n, name in enumerate(names)] if body else []


def texts_of(columns: Sequence[ColumnStatistics]) -> TableColumns | None:
    """The column of texts (with the most words) and that of their classes (with few distinct cells)."""
    textual = [one for one in columns if not one.numbers and not one.times and one.words >= 2]
    text = max(textual, key=lambda one: one.words, default=None)
    if text is None:
        return None
    likely = [
        one
        for one in columns
        if one is not text and not one.times and 1 < one.distinct <= min(MOST_CLASSES, one.filled / 2)
    ]
    named = [one for one in likely if one.name.lower() in LABELS]
    few = sorted(likely, key=lambda one: (one.numbers, one.distinct))
    label = next(iter([*named, *few]), None)
    return None if label is None else TableColumns(text.name, label.name)


def holds_texts(path: Path) -> bool:
    """Whether a table seems to hold labelled texts; a .tsv with two columns may be parallel text."""
    try:
        found = columns_of(path)
    except DataError:
        return False
    return (".csv" in path.name.lower() or len(found) > 2) and texts_of(found) is not None


def series_of(columns: Sequence[ColumnStatistics]) -> SeriesColumns | None:
    """The columns of times and of numbers, and that of the series' names if times repeat."""
    time = next((one for one in columns if one.times), None)
    targets = tuple(one.name for one in columns if one.numbers and not one.times)
    if not targets:
        return None
    others = [one for one in columns if not one.numbers and not one.times]
    repeats = time is not None and time.distinct < time.filled
    named = next((one for one in others if repeats and one.distinct < one.filled), None)
    left = tuple(one.name for one in others if one is not named)
    return SeriesColumns(time and time.name, named and named.name, targets, left)


def _column(name: str, cells: Sequence[str]) -> ColumnStatistics:
    filled = [cell for cell in cells if cell]
    return ColumnStatistics(
        name,
        sum(len(cell.split()) for cell in filled) / max(1, len(filled)),
        len(set(filled)),
        len(filled),
        bool(filled) and all(map(_is_number, filled)),
        bool(filled) and all(map(_is_time, filled)),
    )


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _is_time(cell: str) -> bool:
    if cell.isdigit():
        return False  # a year or a count
    for order in ("day", "month"):
        try:
            parse(iso(cell, order))
        except ValueError:
            continue
        return True
    return False
