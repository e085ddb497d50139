"""Find files that are sides of one text, and read their raw lines even if some are wrong.

Read next: check.py, which checks the lines.
"""

import csv
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import NamedTuple

from weft.data.dialect import mark_of
from weft.data.files import bare, file_bytes
from weft.data.guess import LABELS, TIMES, columns_of, sides_of
from weft.data.languages import CODE, SIDES, code_of
from weft.data.lines import folding, raw_lines
from weft.data.pairs import languages
from weft.data.parallel import ParallelText, headless, is_memory, names_side, one_line, pair_columns
from weft.data.quoting import drawn
from weft.data.report import Finding, placed
from weft.data.several import PART
from weft.data.tables import TableFile, is_table
from weft.errors import ConfigError, DataError

_TITLES = {"text", "id", "summary", *SIDES, *LABELS, *TIMES}


class SideLines(NamedTuple):
    """One line of each side, undecoded."""

    number: int
    sides: list[bytes]


class AlignedText(NamedTuple):
    """Sides aligned line by line; for a table, `files` repeats the same file."""

    name: str
    sides: list[str]
    files: list[str]
    columns: list[int]  # columns of the sides in a table; empty if each side is a file
    header: bool = False  # whether the first row of a table names its columns
    notes: tuple[str, ...] = ()  # how the files were interpreted, where that was a guess
    units: bool = False  # whether it is a memory, whose units may be anywhere in the lines of its file

    def rows(self) -> Iterator[SideLines | Finding]:
        """Every line, or a finding if it cannot be split into sides."""
        if self.units:
            return self._units()
        return self._cells() if self.columns else self._lines()

    def _units(self) -> Iterator[SideLines | Finding]:
        file, (source, target) = self.files[0], self.sides
        try:
            for pair in ParallelText(file, source, target):
                yield SideLines(pair.number, [pair.source.encode(), pair.target.encode()])
        except DataError as error:
            yield placed(file, error)

    def _cells(self) -> Iterator[SideLines | Finding]:
        rows = TableFile(self.files[0]).rows()
        if self.header:
            next(rows)
        for row in rows:
            if isinstance(row, Finding):
                yield row
            else:
                yield SideLines(row.number, [one_line(row.cells[column]).encode() for column in self.columns])

    def _lines(self) -> Iterator[SideLines | Finding]:
        sides = [raw_lines(file, prose=len(self.files) == 1) for file in self.files]
        counts = [0] * len(sides)
        broken = False
        for number, lines in enumerate(zip_longest(*sides), 1):
            wrong = [line for line in lines if isinstance(line, Finding)]
            yield from wrong
            broken = broken or bool(wrong)
            for side, line in enumerate(lines):
                counts[side] += isinstance(line, bytes)
            if min(counts) == number:
                yield SideLines(number, [line for line in lines if isinstance(line, bytes)])
        if not broken and len(set(counts)) > 1:
            shown = ", ".join(f"{file} {count:,}" for file, count in zip(self.files, counts, strict=True))
            yield Finding(
                self.files[0], 0, "count", f"unequal numbers of lines ({shown}); each line needs its pair"
            )


def texts(
    paths: Iterable[str | Path], *, pairs: bool = True, columns: tuple[str, str] | None = None
) -> Iterator[AlignedText | Finding]:
    """The texts formed by the paths, those named "train" first, and findings for missing paths."""
    tables: list[str] = []
    memories: list[str] = []
    groups: dict[str, dict[str, str]] = {}
    for path in paths:
        if is_memory(path):
            memories.append(str(path))
            continue
        if is_table(path):
            tables.append(str(path))
            continue
        files = [Path(path)]
        if not files[0].exists():
            files = sorted(file for file in files[0].parent.glob(f"{files[0].name}.*") if file.is_file())
        if not files:
            yield Finding(
                str(path),
                0,
                "file",
                f"no such file, nor one with a language after the name, such as {path}.en",
            )
        for file in files:
            stem, _, language = str(bare(file)).rpartition(".")
            groups.setdefault((stem or str(file)) if pairs else str(file), {})[language] = str(file)
    found: list[AlignedText | Finding] = [_table(file, columns) for file in dict.fromkeys(tables)]
    found += [_memory(file) for file in dict.fromkeys(memories)]
    given = [file for sides in groups.values() for file in sides.values()]
    if not (tables or memories) and len(given) == len(groups) and _may_pair(given):
        names = [side_name(file) for file in given[:2]]
        found += [_files_as_pair(names, *pair) for pair in zip(given[::2], given[1::2], strict=True)]
        groups.clear()
    order = {side: place for place, side in enumerate(dict.fromkeys(chain.from_iterable(groups.values())))}
    for name, sides in groups.items():  # use one order of the sides in all texts
        ordered = sorted(sides, key=lambda side: order[side])
        own = [sides[side] for side in ordered]
        if len(own) == 1 and columns is not None:
            what = "expected a table (.csv, .tsv, .xlsx), as --source and --target name its columns; "
            found.append(
                Finding(own[0], 0, "columns", f"{what}if it is one, name it {bare(Path(own[0])).stem}.tsv")
            )
        elif len(own) == 1:
            found.append(AlignedText(own[0], ordered, own, [], notes=(*folding(own[0]), *_tabs(own[0]))))
        else:
            found.append(AlignedText(name, ordered, own, []))
    yield from sorted(found, key=lambda text: "train" not in Path(text[0]).name)


def _tabs(file: str) -> tuple[str, ...]:
    """A note about a table that is called a text."""
    lines = [
        line.decode("utf-8", "replace") for line in islice(raw_lines(file), 20) if isinstance(line, bytes)
    ]
    if lines and "\t" in lines[0]:
        return (f"{file}: its lines have tabs; name it .tsv to have its columns read",)
    if why := drawn(lines, Path(file)):
        return (f"{file}: {why}",)
    mark = mark_of(lines)
    rows = [row for row in csv.reader(lines, delimiter=mark) if row]
    names = [name.strip().lower() for name in rows[0]] if len(rows) > 1 else []
    told = any(name in _TITLES or code_of(name) is not None for name in names)
    if len(names) > 1 and told and all(len(row) == len(names) for row in rows):
        return (
            f"{file}: its first line names columns ({', '.join(names)[:100]}); "
            "name it .csv to have them read",
        )
    return ()


def _may_pair(files: Sequence[str]) -> bool:
    """Whether consecutive files can be pairs; train.en and valid.en cannot, they are the same side."""
    if not files or len(files) % 2:
        return False
    return all(side_name(one) != side_name(other) for one, other in zip(files[::2], files[1::2], strict=True))


def side_name(file: str) -> str:
    """The name of a side: its language extension, or its file name without the word train, valid or test."""
    path = bare(Path(file))
    end = path.suffix[1:]
    if CODE.fullmatch(end) and end != "txt":
        return end
    return PART.sub("", path.stem).strip("-_. ") or end


def _files_as_pair(names: list[str], *files: str) -> AlignedText:
    """Two files as a pair; the names and order of the sides are those of the first pair."""
    if [side_name(file) for file in reversed(files)] == names:
        files = files[::-1]
    note = f"{files[0]} and {files[1]} are read as a pair, line by line"
    return AlignedText(" + ".join(files), names, list(files), [], notes=(note,))


def _memory(file: str) -> AlignedText | Finding:
    try:
        return AlignedText(
            file, list(languages(file_bytes(file), str(bare(Path(file))))), [file] * 2, [], units=True
        )
    except DataError as error:
        return placed(file, error.at(file, error.line))


def _table(file: str, named: tuple[str, str] | None) -> AlignedText | Finding:
    try:
        table = TableFile(file)
        names, notes = table.names(), list(table.notes)
        columns = [column for column, name in enumerate(names) if names_side(name)]
        header, guessed = len(columns) >= 2, named is None and len(columns) < len(names)
        if named is not None:
            left, right, header = pair_columns(table, *named)
            names, columns = list(named), [left, right]
            notes += [] if header else headless(table)
        elif header:
            if unknown := [name for name in names if name.lower() not in SIDES and code_of(name) is None]:
                what = f"{unknown[0]!r} in its first row is read as a name of a column"
                notes += [f"{file}: {what}; if the row is a pair, write a line of names above it"] * (
                    len(names) == 2
                )
        else:
            found = sides_of(columns_of(Path(file)))
            if found is not None:
                columns, header, guessed = [names.index(name) for name in found], True, True
            elif len(names) == 2:
                notes += headless(table)
                names, columns = ["source", "target"], [0, 1]
            else:
                what = f"expected two columns of texts, got {', '.join(names)[:200]}; "
                what += "write their names into a first line, or name them: --source and --target"
                what += ", 1 and 2 for the first two" * (not any(map(names_side, names)))
                return Finding(file, table.number, "columns", what)
    except DataError as error:
        return placed(file, error, "columns" if error.line else "file")
    except ConfigError as error:
        return Finding(file, 0, "file", str(error).removeprefix(f"{file}: "))
    sides = names if len(names) == len(columns) else [names[column] for column in columns]
    if header:
        read = " and ".join(repr(table.names()[column]) for column in columns)
        what = "the two sides" if len(columns) == 2 else "sides"
        others = "; --source and --target name others" if guessed else ""
        notes.append(f"{file}: columns {read} are read as {what}{others}")
    return AlignedText(file, sides, [file] * len(columns), columns, header, tuple(notes))
