"""Texts with a label: `__label__x text` lines as fastText has them, or two columns of a TSV or CSV file.

Read next: lines.py.
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from weft.data.files import COMPRESSED
from weft.data.lines import read_lines
from weft.errors import DataError

MARK = "__label__"


class Labelled(NamedTuple):
    """A text and what it is."""

    number: int
    """The line in its file, the first is 1."""

    label: str
    text: str
    cells: dict[str, str]
    """The whole row of a table, by its columns."""


class LabelledText:
    """Labelled texts of a file, read anew whenever they are iterated.

    Args:
        path: ends in .tsv or .csv (also compressed), else it has `__label__x text` lines.
        text, label: the columns of a table with a first line that names them; a TSV file of two columns
            may do without names: label TAB text.

    Raises:
        DataError: the file is missing, or a column is.
    """

    def __init__(self, path: str | Path, *, text: str = "text", label: str = "label") -> None:
        self.path = Path(path)
        self.text, self.label = text, label
        self.kind = kind_of(self.path)
        self._names: list[str] = []
        self._header = 0
        first = next(self._split(), None)
        if self.kind == "lines" or first is None:
            return
        names = [cell.strip() for cell in first[1]]
        missing = next((name for name in (text, label) if name not in names), None)
        if missing is None:
            self._names, self._header = names, 1
        elif self.kind == "tsv" and len(names) == 2 and not {text, label} & set(names):
            self._names = [label, text]
        else:
            shown = ", ".join(name[:20] for name in names[:10])
            raise DataError(
                f"{path}:1: no column is called {missing!r}, the first line has {shown}; name the columns "
                "in the recipe (data.text, data.label), or in the first line"
            )

    def __iter__(self) -> Iterator[Labelled]:
        for row, (number, cells) in enumerate(self._split()):
            if row < self._header:
                continue
            if self.kind == "lines":
                yield self._marked(number, cells[0])
                continue
            if len(cells) != len(self._names):
                raise DataError(
                    f"{self.path}:{number}: {_columns(cells)}, need {len(self._names)}; mend the line"
                )
            row_ = dict(zip(self._names, cells, strict=True))
            label = row_[self.label].strip()
            if not label:
                raise DataError(f"{self.path}:{number}: the label is empty; give one or remove the line")
            yield Labelled(number, label, row_[self.text], row_)

    def _split(self) -> Iterator[tuple[int, list[str]]]:
        lines = read_lines(self.path)
        if self.kind == "csv":
            reader = csv.reader((line + "\n" for line in lines), strict=True)
            begun = 1
            try:
                for cells in reader:
                    if cells:
                        yield begun, cells
                    begun = reader.line_num + 1
            except csv.Error as error:
                raise DataError(f"{self.path}:{begun}: {error}; quote the cell or mend the line") from error
            return
        for number, line in enumerate(lines, 1):
            yield number, line.split("\t") if self.kind == "tsv" else [line]

    def _marked(self, number: int, line: str) -> Labelled:
        first, _, rest = line.strip().partition(" ")
        label = first.removeprefix(MARK)
        if not first.startswith(MARK) or not label:
            raise DataError(
                f"{self.path}:{number}: {line[:30]!r} has no label; begin the line with {MARK}NAME and a "
                "space, or give a .tsv or .csv file"
            )
        if rest.lstrip().startswith(MARK):
            raise DataError(
                f"{self.path}:{number}: two labels came, one is needed; keep one or remove the line"
            )
        return Labelled(number, label, rest, {})


def kind_of(path: Path) -> str:
    """tsv, csv or lines, by the ending of a name.

    Example:
        >>> kind_of(Path("a.csv.gz"))
        'csv'
    """
    name = path.name.lower()
    for end in COMPRESSED:
        name = name.removesuffix(end)
    return name.rpartition(".")[2] if name.endswith((".tsv", ".csv")) else "lines"


def _columns(cells: list[str]) -> str:
    return f"{len(cells)} column{'s' if len(cells) != 1 else ''}"
