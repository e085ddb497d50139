"""Tables and lists of Python as files that the readers of this room read, so that both mean the same.

Read next: tables.py, which reads tables; ../fitting.py, which trains on them.
"""

import csv
import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from weft.errors import Cautions, ConfigError, DataError, cautions, saying_what_to_install
from weft.wording import kind_of


def is_frame(data: Any) -> bool:
    """Whether this is a table or a column of pandas, or of a library that makes one of it."""
    return any(hasattr(data, name) for name in ("to_pandas", "to_csv"))


def _of_pandas(data: Any) -> Any:
    return data.to_pandas() if hasattr(data, "to_pandas") else data


def as_csv(data: Any) -> str:
    """A table as CSV; an index of times, or one with names, is a column of it.

    The table is of pandas, or has `to_pandas` (polars, Arrow, Hugging Face).
    """
    data = _of_pandas(data)
    table = data if hasattr(data, "columns") else data.to_frame("y" if data.name is None else data.name)
    if type(table.index).__name__ == "PeriodIndex":
        table = table.set_axis(table.index.to_timestamp())
    timed = type(table.index).__name__ == "DatetimeIndex"
    if timed and table.index.name is None:
        table = table.rename_axis("ds")
    return str(table.to_csv(index=timed or any(name is not None for name in table.index.names)))


def zone_of(data: Any) -> str | None:
    """The time zone of a table's index or of one of its columns; None if its times have none."""
    data = _of_pandas(data)
    if not is_frame(data):
        return None
    columns = [*data.dtypes] if hasattr(data, "columns") else []
    kinds = [getattr(data.index, "dtype", None), *columns]
    zones = [str(kind.tz) for kind in kinds if getattr(kind, "tz", None) is not None]
    return zones[0] if zones else None


def located(data: Any) -> Any:
    """A table, or a list of tuples, in which files of the working folder have absolute names."""

    def absolute(cell: Any) -> Any:
        return str(Path(cell).absolute()) if isinstance(cell, str | Path) and os.path.isfile(cell) else cell

    if is_frame(data):
        return _of_pandas(data).map(absolute)
    if not isinstance(data, list):
        return data
    return [tuple(map(absolute, one)) if isinstance(one, tuple | list) else one for one in data]


class GivenData(NamedTuple):
    """Data of Python, and the file that holds it."""

    name: str  # what errors call it, such as train
    data: Any
    path: Path

    def row(self, line: int) -> str:
        """The row at a line of the file, as Python addresses it: train.loc[7], or texts[7]."""
        number = _item(self.path, line)
        if number < 0:
            return self.name
        index = getattr(self.data, "index", None) if hasattr(self.data, "iloc") else None
        if index is None or number >= len(index):
            return f"{self.name}[{number}]"
        label = index[number : number + 1].tolist()[0]
        shown = repr(label) if isinstance(label, int | float | str | tuple) else repr(str(label))
        return f"{self.name}.loc[{shown}]" if index.is_unique else f"{self.name}.iloc[{number}]"


def _item(path: Path, line: int) -> int:
    """The number of the item at a line of a file of `as_file`, from 0; below 0 of a header."""
    text = path.read_text("utf-8", "replace")
    if path.suffix == ".txt":
        return line - 1
    if path.suffix == ".tsv":
        return text.split("\n")[: line - 1].count("")
    reader = csv.reader(io.StringIO(text))
    return next((number for number, _ in enumerate(reader, -1) if line <= reader.line_num), -1)


def in_python(text: str, given: Sequence[GivenData] = ()) -> str:
    """A sentence of a command as Python's: with data for files, and arguments for options.

    Example:
        >>> in_python("x.csv: expected a column 'text'; name the column with --text")
        "x.csv: expected a column 'text'; name the column with text="
    """
    for one in given:
        text = re.sub(
            rf"{re.escape(str(one.path))}(?::(\d+))?",
            lambda found, one=one: one.row(int(found[1])) if found[1] else one.name,  # type: ignore[misc]
            text,
        )
        text = re.sub(rf"(?<![\w/]){re.escape(one.path.name)}\b", one.name, text)
        text = re.sub(r"\bline (\d+)\b", lambda found, one=one: one.row(int(found[1])), text)  # type: ignore[misc]
        text = text.replace(" (1, 2, ... without a header)", "").replace(", or in the first line", "")
    if given:  # no recipe names the data
        text = re.sub(r"\(data\.[a-z_]+, (--[a-z-]+)\)", r"(\1)", text)
        text = re.sub(r"(--[a-z-]+) \(data\.[a-z_]+\)", r"\1", text)
    text = re.sub(r"`?weft data check`?", "weft.check", text)
    clauses = text.split("; ")
    for number, clause in enumerate(clauses):
        if not re.search(r"\bweft [a-z]+", clause):  # a command that is to be typed as it is
            clause = re.sub(r"--split (\w+)", r"split='\1'", clause)
            clauses[number] = re.sub(
                r"--([a-z][a-z-]*)( [A-Z]+\b)?", lambda found: f"{found[1].replace('-', '_')}=", clause
            )
    return "; ".join(clauses)


@contextmanager
def given_as_file(data: Any, folder: Path, name: str, columns: Sequence[str] = ()) -> Iterator[Path | None]:
    """A file with the data of a user, and inside errors that name the data; their own file as it is."""
    if data is None or isinstance(data, str | Path):
        with named():
            yield None if data is None else Path(data)
        return
    path, content = as_file(data, folder / name, columns)
    path.write_bytes(content)
    with named([GivenData(name, data, path)]):
        yield path


@contextmanager
def named(given: Sequence[GivenData] = ()) -> Iterator[None]:
    """Errors and warnings inside say what Python's user gave, see `in_python`; each warning comes once."""
    outer = cautions.get() or Cautions(str, set())
    token = cautions.set(outer._replace(words=lambda text: outer.words(in_python(text, given))))
    try:
        with saying_what_to_install():
            yield
    except (DataError, ConfigError) as error:
        said = in_python(str(error), given)
        if said == str(error):
            raise
        raise (DataError if isinstance(error, DataError) else ConfigError)(said) from None
    finally:
        cautions.reset(token)


def as_file(data: Any, path: Path, columns: Sequence[str] = ()) -> tuple[Path, bytes]:
    """The path, given without an extension, with that of a format, and the content to write there.

    The data are a table, see `as_csv`; numbers [T] or [T, N]; or a list of texts, of tuples with a cell for
    each of `columns`, of sentences as lists of (word, tag) or as tuples (words, tags).
    """
    if is_frame(data):
        if not len(data):
            raise DataError("expected a table, a list or a file, got a table without rows", path=path.name)
        for name in (*columns[1:], "unique_id"):
            if name in getattr(data, "columns", ()) and getattr(data[name], "dtype", "") == "object":
                _check_one_meaning(path.name, name, data[name])
        return path.with_suffix(".csv"), as_csv(data).encode()
    many = isinstance(data, Iterable) and not isinstance(data, str | bytes | Mapping)
    rows = list(data) if many and getattr(data, "shape", True) else []  # an array () has no rows
    if not rows:
        what = f"{kind_of(data)}{' without rows' if many else ''}"
        hint = "; give pd.DataFrame(data)" if isinstance(data, Mapping) else ""
        raise DataError(f"expected a table, a list or a file, got {what}{hint}", path=path.name)
    if all(isinstance(one, str) for one in rows) and len(columns) > 1 and "__label__" not in rows[0]:
        wanted = f"a table, or a list of tuples ({', '.join(columns)})"
        raise DataError(f"expected {wanted}, got a list of texts alone", path=path.name)
    if all(isinstance(one, str) for one in rows):
        return path.with_suffix(".txt"), "".join(f"{one}\n" for one in rows).encode()
    if columns and all(
        isinstance(one, tuple | list | np.ndarray) and len(one) == len(columns) for one in rows
    ):
        _check_one_meaning(path.name, columns[-1], [one[-1] for one in rows])
        return path.with_suffix(".csv"), _rows([columns, *rows])
    numbers = [one.tolist() if hasattr(one, "tolist") else one for one in rows]
    cells = [list(one) if isinstance(one, list | tuple) else [one] for one in numbers]
    if not columns and all(isinstance(one, int | float) or one is None for row in cells for one in row):
        names = ["y"] if len(cells[0]) == 1 else [f"y{n + 1}" for n in range(len(cells[0]))]
        return path.with_suffix(".csv"), _rows([names, *cells])
    if not columns and all(isinstance(one, list | tuple) and one for one in rows):
        lines = ("".join(f"{word}\t{tag}\n" for word, tag in _tagged(one, path.name)) for one in rows)
        return path.with_suffix(".tsv"), "\n".join(lines).encode()
    wanted = f"texts or tuples ({', '.join(columns)})" if columns else "texts, numbers or sentences"
    odd = next((one for one in rows if not isinstance(one, str)), rows[0])
    raise DataError(f"expected a list of {wanted}, got one with {kind_of(odd)}", path=path.name)


def _check_one_meaning(place: str, name: str, values: Iterable[Any]) -> None:
    """Refuse a column in which equal numbers have several texts, and so would be several classes."""
    texts: dict[float, set[str]] = {}
    for one in values:
        if isinstance(one, int | float):
            texts.setdefault(float(one), set()).add(str(one))
    if twice := next((sorted(each) for each in texts.values() if len(each) > 1), None):
        why = f"{' and '.join(twice)} in {name} are one number and two texts; make them alike"
        raise DataError(f"{why}, such as with astype(float).astype(int)", path=place)


def _tagged(sentence: Any, name: str) -> list[tuple[str, str]]:
    """The words of a sentence with their tags."""
    pairs = list(zip(*sentence, strict=False)) if isinstance(sentence, tuple) else list(sentence)
    lengths = {len(one) for one in sentence} if isinstance(sentence, tuple) else {len(pairs)}
    texts = (isinstance(text, str) and text for one in pairs if isinstance(one, list | tuple) for text in one)
    if (
        len(lengths) > 1
        or {len(one) if isinstance(one, list | tuple) else 0 for one in pairs} != {2}
        or not all(texts)
    ):
        shown = repr(sentence)[:60]
        raise DataError(f"expected a tag for each word of a sentence, both as texts, got {shown}", path=name)
    return pairs


def _rows(rows: Iterable[Iterable[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()
