"""Read labelled texts: `__label__x text` lines as in fastText, lines that begin with their class as in
published data sets, or two columns of a TSV or CSV file.

Read next: sides.py, which reads the raw lines.
"""

import codecs
import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from weft.data.dialect import csv_fault, mark_of
from weft.data.files import COMPRESSED
from weft.data.lines import wrong_bytes
from weft.data.sides import Finding, raw_lines
from weft.errors import ConfigError, DataError
from weft.shapes import check_choice
from weft.wording import plural

MARK = "__label__"
Labels = Literal["marked", "first", "coarse"]
"""Where a line has its class: in __label__x, in its first word, or in its first word up to the colon."""

FIRST = "data.labels: first, or coarse for NUM of NUM:dist (--labels)"
RECIPE = "in the recipe (data.text, data.label)"
OPTIONS = "with --text and --label"


class LabelledExample(NamedTuple):
    """A text and its class."""

    number: int
    """Line number in its file, from 1."""

    label: str
    text: str
    cells: dict[str, str]
    """All cells of a table row, by column."""


class LabelledText:
    """The labelled texts of a file; each iteration reads the file again.

    Args:
        path: ends in .tsv or .csv (also compressed); any other file has `__label__x text` lines.
        text, label: column names in the header of a table; a TSV file with two columns may omit the
            header: label TAB text.
        labels: format of lines: "marked" is `__label__x text`, "first" takes the first word as the class, as
            in `0 a dull film`, and "coarse" takes that word up to its colon, NUM in `NUM:dist How far is it
            ?`.
        encoding: of the file, such as latin-1.
        unlabelled: whether the label of a table's row may be empty.
        named: where users name the columns, for the error message.

    Raises:
        DataError: the file or a column is missing.
        ConfigError: unknown format or encoding.

    Example:
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "q.label")
        ...     _ = path.write_bytes(b"NUM:dist How far ?")
        ...     [(one.label, one.text) for one in LabelledText(path, labels="coarse")]
        [('NUM', 'How far ?')]
    """

    def __init__(
        self,
        path: str | Path,
        *,
        text: str = "text",
        label: str = "label",
        labels: Labels = "marked",
        encoding: str = "utf-8",
        unlabelled: bool = False,
        named: str = RECIPE,
    ) -> None:
        check_choice("labels", labels, Labels)
        check_encoding(encoding)
        self.labels, self.encoding, self.unlabelled = labels, encoding, unlabelled
        self.path = Path(path)
        self.text, self.label = text, label
        self.kind = kind_of(self.path)
        self.mark = self._mark()
        self._names: list[str] = []
        self._header = 0
        first = next(self._split(), None)
        if isinstance(first, Finding):
            raise first.error()
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
                f"expected a column {missing!r}, got {shown}; name the columns {named}, or in the first line",
                path=path,
                line=1,
            )

    def __iter__(self) -> Iterator[LabelledExample]:
        for row in self.rows():
            if isinstance(row, Finding):
                raise row.error()
            yield row

    def rows(self) -> Iterator[LabelledExample | Finding]:
        """Every text, or a finding if its line is wrong; reading continues after it."""
        for row, found in enumerate(self._split()):
            if row < self._header:
                continue
            if isinstance(found, Finding):
                yield found
                continue
            number, cells = found
            if self.kind == "lines":
                yield self._marked(number, cells[0])
            elif len(cells) != len(self._names):
                what = f"expected {plural(len(self._names), 'column')}, got {len(cells)}"
                yield self._wrong(number, "columns", f"{what}; correct or remove the line")
            else:
                named = dict(zip(self._names, cells, strict=True))
                label = named[self.label].strip()
                if label or self.unlabelled:
                    yield LabelledExample(number, label, named[self.text], named)
                else:
                    what = "the label is empty; give one or remove the line"
                    yield self._wrong(number, "unlabelled", what)

    def _mark(self) -> str:
        """The delimiter; for a .csv it is guessed from the first line."""
        return mark_of(next(self._lines(), ("", None))[0]) if self.kind == "csv" else "\t"

    @property
    def headed(self) -> bool:
        """Whether the first line names the columns."""
        return self._header > 0

    @property
    def names(self) -> list[str]:
        """The columns of a table; empty for lines."""
        return self._names

    def _split(self) -> Iterator[tuple[int, list[str]] | Finding]:
        if self.kind == "csv":
            yield from self._records()
            return
        for number, (line, wrong) in enumerate(self._lines(), 1):
            yield wrong or (number, line.split("\t") if self.kind == "tsv" else [line])

    def _records(self) -> Iterator[tuple[int, list[str]] | Finding]:
        """Rows of a CSV file; a row of several lines is numbered by its first line."""
        wrong: list[Finding] = []

        def usable() -> Iterator[str]:
            for line, found in self._lines():
                wrong.extend([found] if found else ())
                yield f"{line}\n"

        reader = csv.reader(usable(), strict=True, delimiter=self.mark)
        while True:
            begun = reader.line_num + 1
            cells: list[str] | None = []
            try:
                cells = next(reader, None)
                mistaken = None
            except csv.Error as error:
                mistaken = self._wrong(begun, "columns", csv_fault(error))
            yield from wrong or ([mistaken] if mistaken else ())
            if cells is None:
                return
            if cells and not wrong:
                yield begun, cells
            wrong.clear()

    def _lines(self) -> Iterator[tuple[str, Finding | None]]:
        """Each line, and what is wrong with it."""
        for number, line in enumerate(raw_lines(str(self.path)), 1):
            if isinstance(line, Finding):
                yield "", line
                continue
            why = wrong_bytes(line, str(self.path)) if self._is_utf8 else None
            wrong = self._wrong(number, "bytes", why + _option(why)) if why else None
            yield line.decode(self.encoding, "replace"), wrong

    @property
    def _is_utf8(self) -> bool:
        return codecs.lookup(self.encoding).name == "utf-8"

    def _marked(self, number: int, line: str) -> LabelledExample | Finding:
        first, _, rest = line.strip().partition(" ")
        if self.labels != "marked":
            label = first.partition(":")[0] if self.labels == "coarse" else first
            if label and rest.strip():
                return LabelledExample(number, label, rest.strip(), {})
            what = f"expected a class and a text with a space between, got {line[:30]!r}; remove the line"
            return self._wrong(number, "unlabelled", what)
        label = first.removeprefix(MARK)
        if not first.startswith(MARK) or not label:
            what = (
                f"{line[:30]!r} has no label; begin the line with {MARK}NAME and a space, give a .tsv or .csv"
            )
            return self._wrong(
                number, "unlabelled", f"{what} file, or say that the first word is the class: {FIRST}"
            )
        if rest.lstrip().startswith(MARK):
            what = "expected one label, got two; keep one or remove the line"
            return self._wrong(number, "unlabelled", what)
        return LabelledExample(number, label, rest, {})

    def _wrong(self, number: int, kind: str, what: str) -> Finding:
        return Finding(str(self.path), number, kind, what)


def _option(wrong: str) -> str:
    """Advice on reading a file in the encoding that an error message suggests."""
    found = re.search(r"probably (WINDOWS|ISO)(\S+):", wrong)
    if not found:
        return ""
    name = (found[1] + found[2]).lower()
    name += " (or latin-1)" if name == "windows-1252" else ""
    return f"; or read it as it is: data.encoding: {name}, --encoding on the command line"


def check_encoding(name: str) -> None:
    """Check that Python knows an encoding and that it encodes line ends as ASCII.

    Raises:
        ConfigError: it does not.
    """
    try:
        plain = "a\n".encode(name) == b"a\n"
    except (LookupError, UnicodeError, ValueError, TypeError):
        plain = False
    if not plain:
        raise ConfigError(
            f"encoding: expected one such as utf-8, latin-1 or cp1250, got {name[:40]!r}; convert other "
            "files with iconv"
        )


def kind_of(path: Path) -> str:
    """The file format, tsv, csv or lines, by the file name.

    Example:
        >>> kind_of(Path("a.csv.gz"))
        'csv'
    """
    name = path.name.lower()
    for end in COMPRESSED:
        name = name.removesuffix(end)
    return name.rpartition(".")[2] if name.endswith((".tsv", ".csv")) else "lines"
