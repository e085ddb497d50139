"""Guess the columns of a table: texts and their classes, the two sides of pairs, or times and series.

`weft init` and `weft data check` print this guess; a recipe names its columns. Read next: tables.py.
"""

import math
import re
from collections.abc import Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import NamedTuple

from weft.data.conll import columns_of_words
from weft.data.dialect import MISSING, plain_numbers
from weft.data.labelled import MARKED, folders_of
from weft.data.languages import SIDES, code_of
from weft.data.lines import raw_lines
from weft.data.spans import holds_spans
from weft.data.tables import Row, TableFile, is_number, is_table, kind_of
from weft.data.times import are_times, count_times
from weft.errors import ConfigError, DataError

ROWS = 2_000  # rows examined

LABELS = ("label", "class", "category", "topic", "sentiment", "type", "tag", "target", "stars", "rating")
"""Common names of a column of classes."""

MOST_CLASSES = 200

CLOCK = re.compile(r"\d\d?:\d\d(:\d\d(\.\d+)?)?( ?[ap]m)?", re.IGNORECASE)

HOUR = re.compile(r"hour|hr|he|stunde|sat|heure|hora|ora", re.IGNORECASE)
"""Names of columns of hours."""

HALF_HOUR = re.compile(r"(settlement_?)?period|half_?hour|sp", re.IGNORECASE)
"""Names of columns of half-hours, from 1 to 48."""

PERIODS = {
    "W": re.compile(r"(iso)?_?(week|kw|woche)", re.IGNORECASE),
    "Q": re.compile(r"q$|qtr|quart", re.IGNORECASE),
}
"""Names of columns of weeks and quarters of a year."""

_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,\d+\s*")

MANY_ROWS = 20  # minimum rows of each series in a ledger

TIMES = ("ds", "date", "datetime", "time", "timestamp", "month", "day", "year", "datum", "fecha")
"""Common names of a column of times."""

ID = re.compile(
    r"(^|[_ ])(id|nr|nbr|no|num|number|code|store|shop|item|product|sku|series|site|meter|station|region|dept"
    r"|department|sensor|device|warehouse)$"
    r"|[a-z]Id$",
    re.IGNORECASE,
)
"""Common names of a column of numbers that names a series."""


VALUE = re.compile(
    r"y|((num|unit|units|weekly|daily|total|net)_?)?(sales|sold|demand|quantity|qty|orders|visitors|load|consumption"
    r"|revenue|value|cnt)",
    re.IGNORECASE,
)
"""Common names of a column to forecast, beside others."""


class ColumnStatistics(NamedTuple):
    """Statistics of a column's cells."""

    name: str
    words: float  # mean number of words
    distinct: int
    filled: int
    numbers: bool
    times: bool
    counts: bool = False  # whether its numbers look like years, days or Unix times, and grow
    clocks: bool = False  # whether it has times of the day
    even: bool = False  # whether its numbers grow by the same step from row to row, as those of rows do
    whole: bool = False  # whether its numbers have digits only
    truth: bool = False  # whether its cells are true and false


class TableColumns(NamedTuple):
    """The columns of a table of labelled texts."""

    texts: list[str]
    label: str


class SeriesColumns(NamedTuple):
    """The columns of a table of series."""

    time: tuple[str, ...]  # several if they make a time together
    id: tuple[str, ...]
    targets: tuple[str, ...]
    left: tuple[str, ...]  # unused columns, which are not numbers


def columns_of(path: Path, encoding: str = "utf-8") -> list[ColumnStatistics]:
    """The columns of a table, named 1, 2, ... if it has no header; none if it has no good row."""
    table = TableFile(path, encoding)
    rows = []
    for row in islice(table.rows(), 1, ROWS + 1):
        if isinstance(row, Row):
            rows.append([cell.strip() for cell in row.cells])
        elif row.kind != "columns":
            raise row.error()
    if not rows:
        return []
    names = table.names()
    if not has_header(names, rows, table.mark):
        rows = [[cell.strip() for cell in table.first], *rows]
        names = [str(n + 1) for n in range(len(names))]
    return statistics_of(names, plain_numbers([(0, row) for row in rows], table.mark).rows)


def statistics_of(names: Sequence[str], rows: Sequence[tuple[int, Sequence[str]]]) -> list[ColumnStatistics]:
    """The columns of rows with plain numbers, by their names."""
    return [_column(name, [row[n].strip() for _, row in rows]) for n, name in enumerate(names)]


def holds_values(first: Sequence[str], mark: str) -> bool:
    """Whether a first row has numbers alone, or numbers behind a time."""
    if not are_times(first[:1]):
        return all(is_number(cell) or _DECIMAL_COMMA.fullmatch(cell) for cell in first)
    ((_, others),) = plain_numbers([(1, list(first[1:]))], mark).rows
    return all(is_number(cell) or cell.lower() in MISSING for cell in others)


def has_header(first: Sequence[str], rows: Sequence[Sequence[str]], mark: str = ",") -> bool:
    """Whether the first row names the columns: no cell of it is also a value of a column with few values.

    A row of numbers names them if it counts from 0, as pandas does, or if it alone has whole numbers only.
    """
    if all(map(is_number, first)):
        below = [cell.strip() for row in rows for cell in row]
        whole = all(map(str.isdecimal, first)) and not any(map(str.isdecimal, below))
        counted = list(first) == [str(n) for n in range(len(first))] and rows[:1] and rows[0][0] != "1"
        return bool(counted and len(first) > 1) or (whole and len(rows) > 1 and len(set(first)) == len(first))
    if holds_values(first, mark):
        return False
    for name, cells in zip(first, zip(*rows, strict=True), strict=True):
        values = set(cells)
        if name and name in values and len(values) <= len(cells) / 2:
            return False
    return True


def texts_of(
    columns: Sequence[ColumnStatistics], texts: Sequence[str] | None = None, label: str | None = None
) -> TableColumns | None:
    """The column of texts (with the most words) and that of their classes (with few distinct cells)."""
    if not texts and label is None and {"text", "accept", "answer"} <= {one.name for one in columns}:
        return TableColumns(["text"], "accept")  # of Prodigy, whose options are in each record
    textual = [one for one in columns if not one.numbers and not one.times and one.words >= 2]
    textual = [one for one in textual if one.name != label]
    if not texts:
        if not textual:
            return None
        texts = [max(textual, key=lambda one: one.words).name]
    if label is not None:
        return TableColumns(list(texts), label)
    likely = [
        one
        for one in columns
        if one.name not in texts and not one.times and 1 < one.distinct <= min(MOST_CLASSES, one.filled / 2)
    ]
    named = [one for one in likely if one.name.lower() in LABELS]
    few = sorted(likely, key=lambda one: (one.numbers, one.distinct))
    best = next(iter([*named, *few]), None)
    return None if best is None else TableColumns(list(texts), best.name)


def holds_texts(path: Path) -> bool:
    """Whether a file seems to hold labelled texts; a .tsv with two columns may hold pairs."""
    if folders_of(path):
        return True
    if not is_table(path):
        first = next(raw_lines(path), b"")
        return isinstance(first, bytes) and MARKED.search(first.decode("utf-8", "replace")) is not None
    found = _columns(path)
    if names_languages(found) or columns_of_words(path) or holds_spans(path):
        return False
    said = texts_of(found)
    if said is None or kind_of(path) != ".tsv" or len(found) > 2:
        return said is not None
    return any(one.name == said.label and one.distinct <= one.filled / 10 for one in found)


def holds_pairs(path: Path) -> bool:
    """Whether a file is a table that seems to hold sentence pairs."""
    found = _columns(path) if is_table(path) and not holds_spans(path) else []
    return names_languages(found) or _two_texts(found) is not None


def names_languages(columns: Sequence[ColumnStatistics]) -> bool:
    """Whether two columns are called after languages, or source and target."""
    names = {one.name.lower() for one in columns}
    return sum(code_of(name) is not None for name in names) >= 2 or {"source", "target"} <= names


def sides_of(columns: Sequence[ColumnStatistics]) -> tuple[str, str] | None:
    """The two columns that are called after languages, or the two with the most text, in their order.

    None if there are no two columns with different texts, or if they have no names.
    """
    bare = [one.name for one in columns] == [str(n + 1) for n in range(len(columns))]
    titles = [_is_title(one.name) and not one.name.isdecimal() for one in columns]
    bare = bare or (not all(titles) if len(columns) == 2 else not any(titles))
    return None if bare else _two_texts(columns)


def _two_texts(columns: Sequence[ColumnStatistics]) -> tuple[str, str] | None:
    named = [one.name for one in columns if code_of(one.name) is not None]
    named = named or [one.name for one in columns if one.name.lower() in ("source", "target")]
    if len(named) == 2:
        return named[0], named[1]
    textual = [one for one in columns if not one.numbers and not one.times and one.words >= 1.5]
    textual = [one for one in textual if one.distinct > one.filled / 2 and one.filled > 1]
    if len(textual) < 2 or len({one.name for one in textual}) < len(textual):
        return None
    most = sorted(textual, key=lambda one: one.filled * one.words)[-2:]
    first, second = (one.name for one in columns if one in most)
    return first, second


def _is_title(cell: str) -> bool:
    """Whether a cell may name a column: a word, or a few of which one names a language or a side.

    Example:
        >>> [_is_title(cell) for cell in ("Deutsch", "English text", "Source text", "The cat", "Hello!")]
        [True, True, True, False, False]
    """
    words = cell.lower().split()
    told = any(word in SIDES or (len(word) > 3 and code_of(word) is not None) for word in words)
    return cell[-1:].isalnum() and (len(words) == 1 or (len(words) <= 3 and told))


def _columns(path: Path) -> list[ColumnStatistics]:
    try:
        return columns_of(path)
    except (DataError, ConfigError):
        return []


def series_of(columns: Sequence[ColumnStatistics], *, ledger: bool = False) -> SeriesColumns | None:
    """The columns of times and of numbers, and those of the series' names if times repeat."""
    numbers = [one for one in columns if one.numbers]
    dated = [one for one in numbers if one.name.lower() in TIMES or (one is columns[0] and one.counts)]
    time = next(iter([*(one for one in columns if one.times), *dated]), None)
    more = _beside(time, columns) if time is not None and time.distinct < time.filled else []
    columns = [one for one in columns if one not in more]
    named: list[ColumnStatistics] = []
    if time is not None and time.distinct < time.filled:
        told = 1
        repeats = time.filled / math.prod(one.distinct for one in (time, *more))
        texts = [one for one in columns if not one.numbers and not one.times and not one.truth]
        ids = [one for one in numbers if one is not time and ID.search(one.name)]
        for one in sorted((*texts, *ids), key=lambda one: not ID.search(one.name)):
            if told < repeats and one.distinct * (MANY_ROWS if ledger else 1) < one.filled:
                named.append(one)
                told *= one.distinct
    begin = columns[: columns.index(time)] if time in columns else columns[:1]
    rows = [one for one in begin if one.even and one.name]  # as pandas and R number rows
    targets = tuple(one.name for one in numbers if one not in (time, *more, *named, *rows))
    if not targets:
        return None
    if time is None and rows and rows[0].whole:
        time, rows = rows[0], []
    unused = [one for one in columns if not one.numbers or one in rows]
    left = tuple(one.name for one in unused if one not in (time, *named))
    times = () if time is None else tuple(one.name for one in (time, *more))
    return SeriesColumns(times, tuple(one.name for one in named), targets, left)


def _beside(time: ColumnStatistics, columns: Sequence[ColumnStatistics]) -> list[ColumnStatistics]:
    """The columns that make a time with days or years: times of the day; months, and days."""
    hours = [one for one in columns if one.clocks or (one.numbers and HOUR.fullmatch(one.name))][:1]
    if time.name.lower() != "year":
        return hours or [one for one in columns if one.numbers and HALF_HOUR.fullmatch(one.name)][:1]
    months, days = ([one for one in columns if one.name.lower() == name] for name in ("month", "day"))
    periods = [one for one in columns if any(form.match(one.name) for form in PERIODS.values())]
    return [*months, *days, *hours] if months else periods[:1]


def _column(name: str, cells: Sequence[str]) -> ColumnStatistics:
    filled = [cell for cell in cells if cell]
    values = [cell for cell in filled if cell.lower() not in MISSING]
    return ColumnStatistics(
        name,
        sum(len(cell.split()) for cell in filled) / max(1, len(filled)),
        len(set(filled)),
        len(filled),
        numbers := bool(values) and all(map(is_number, values)),
        bool(values) and not numbers and are_times(values),
        numbers and count_times(values),
        bool(values) and all(map(CLOCK.fullmatch, values)),
        numbers and _even(cells),
        numbers and all(map(str.isdecimal, values)),
        bool(values) and all(value.lower() in ("true", "false") for value in values),
    )


def _even(cells: Sequence[str]) -> bool:
    if len(cells) < 3 or not all(map(is_number, cells)):
        return False
    steps = [float(after) - float(before) for before, after in pairwise(cells)]
    return steps[0] > 0 and max(steps) - min(steps) < 1e-6 * steps[0]
