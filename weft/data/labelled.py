"""Read labelled texts: `__label__x text` lines as in fastText, lines that begin with their class as in
published data sets, or the columns of a table.

Read next: tables.py, which reads tables.
"""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from weft.data.files import bare
from weft.data.lines import numbered_lines
from weft.data.report import Finding
from weft.data.several import is_folder
from weft.data.tables import RECORDS, Row, TableFile, is_table
from weft.errors import ConfigError, DataError

MARK = "__label__"
MARKED = re.compile(rf"(?<!\S){MARK}(?!,*(?:\s|$))(\S+)(?:\s+|$)")
"""The labels of a line, which fastText reads anywhere in it, and the white space behind."""

BORDER = " \u241e "
"""Between the columns of a text: a word that no text has, and every vocabulary of such texts."""

NO_BORDER = " "  # of runs that were trained before there was one

Labels = Literal["marked", "first", "coarse"]
"""Where a line has its class: in __label__x, in its first word, or in its first word up to the colon."""

FIRST = "data.labels: first, or coarse for NUM of NUM:dist (--labels)"
RECIPE = "in the recipe (data.text, data.label)"
OPTIONS = "with --text and --label"


class LabelledExample(NamedTuple):
    """A text and its class.

    Example:
        >>> LabelledExample(1, "sport", "They won again.", {}).label
        'sport'
    """

    number: int
    """Line number in its file, from 1."""

    label: str
    text: str
    cells: dict[str, str]
    """All cells of a table row, by column."""

    row: Sequence[str] = ()
    """All cells of a table row, in order."""


class LabelledText:
    """The labelled texts of a file; each iteration reads the file again.

    Args:
        path: a table (see tables.py), or any other file with `__label__x text` lines; or a folder with a
            folder of texts for each class.
        text: the column of the text, or several with a border between them; by name, or by number from 1 in
            a table without a header. A .tsv with two columns and no header is label TAB text.
        label: the column of the class.
        labels: format of lines: "marked" is `__label__x text`, or `text __label__x`, "first" takes the first
            word as the class, as in `0 a dull film`, and "coarse" takes that word up to its colon, NUM in
            `NUM:dist How far is it ?`.
        encoding: of the file, such as latin-1.
        unlabelled: whether the label of a table's row may be empty.
        border: between the texts of several columns.
        separator: joins the labels of a line that has several `__label__`; None if it may have only one.
        named: where users name the columns, for the error message.

    Attributes:
        table: the table; None for lines.
        headed: whether its first row names the columns.
        names: the columns of a table; empty for lines.

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
        text: str | Sequence[str] = "text",
        label: str = "label",
        labels: Labels = "marked",
        encoding: str = "utf-8",
        unlabelled: bool = False,
        border: str = BORDER,
        separator: str | None = None,
        named: str = RECIPE,
    ) -> None:
        from weft.shapes import check_choice  # here, as it imports torch, which weft init does not need

        check_choice("labels", labels, Labels)
        check_encoding(encoding)
        self.labels, self.encoding, self.unlabelled = labels, encoding, unlabelled
        self.separator, self.border = separator, border
        self.path = Path(path)
        self.table = TableFile(path, encoding) if is_table(path) else None
        self.names: list[str] = []
        self.headed = False
        self._answer: int | None = None
        if is_folder(self.path):
            if not folders_of(self.path):
                what = "expected a folder of texts (.txt) for each class in the folder, got none; name a file"
                raise DataError(what, path=self.path)
        elif self.table is not None:
            self.path = self.table.path
            self._find(self.table, text_columns(text), label, named)
        elif isinstance(first := next(self._lines(), None), Finding):
            raise first.error()

    def __iter__(self) -> Iterator[LabelledExample]:
        for row in self.rows():
            if isinstance(row, Finding):
                raise row.error()
            yield row

    def rows(self, *, every: bool = False) -> Iterator[LabelledExample | Finding]:
        """Every text, or a finding if its line is wrong; reading continues after it. See `TableFile.rows`."""
        if is_folder(self.path):
            yield from self._folders()
            return
        if self.table is None:
            for found in self._lines():
                yield found if isinstance(found, Finding) else self._marked(*found)
            return
        rows = self.table.rows(every=every)
        if self.headed:
            next(rows)
        for row in rows:
            if isinstance(row, Finding):
                yield _advised(row)
            elif self._answer is None or row.cells[self._answer] not in ("reject", "ignore"):
                yield self._example(row)

    def _find(self, table: TableFile, texts: Sequence[str], label: str, named: str) -> None:
        """Find the columns by their names; or by their numbers, or their order, in a table without names."""
        self.names = table.names()
        width = len(self.names)
        found = [table.find(name) for name in (*texts, label)]
        if table.kind in RECORDS and {"annotations", "data"} <= {*self.names}:
            raise DataError(
                "expected a text and its label in each record, got those of Label Studio; export the project "
                "as JSON-MIN or CSV",
                path=table.path,
            )
        if table.kind in RECORDS:  # of Prodigy: the options that were accepted, or whether the label was
            self._answer = table.find("answer")
            if found[-1] is None and self._answer is not None:
                found[-1] = table.find("accept")
        columns = [column for column in found if column is not None]
        if len(columns) == len(found):
            self.headed = True
        elif all(name.isdecimal() and 0 < int(name) <= width for name in (*texts, label)):
            self.names = [str(n + 1) for n in range(width)]
            columns = [int(name) - 1 for name in (*texts, label)]
        elif table.kind == ".tsv" and width == 2 and not columns and len(texts) == 1:
            self.names, columns = [label, texts[0]], [1, 0]
        else:
            absent = (name for name, one in zip((*texts, label), found, strict=True) if one is None)
            missing = list(dict.fromkeys(absent))
            wanted = (
                f"the columns {' and '.join(map(repr, missing))}"
                if missing[1:]
                else f"a column {missing[0]!r}"
            )
            shown = ", ".join(name[:20] for name in self.names[:10])
            raise DataError(
                f"expected {wanted}, got {shown} (1, 2, ... without a header); name the "
                f"columns {named}, or in the first line",
                path=table.path,
                line=table.number,
            )
        self._texts, self._label = columns[:-1], columns[-1]

    def _example(self, row: Row) -> LabelledExample | Finding:
        number, cells = row
        label = cells[self._label].strip()
        if self.table is not None and self.table.kind in RECORDS and (names := _listed(label)) is not None:
            if len(names) > 1 and self.separator is None:
                return self._wrong(number, "unlabelled", _several(names))
            label = (self.separator or "").join(map(str, names))
        if not label and not self.unlabelled:
            what = "the label is empty; give one or remove the line"
            return self._wrong(number, "unlabelled", what)
        text = joined_columns([cells[column] for column in self._texts], self.border)
        return LabelledExample(number, label, text, dict(zip(self.names, cells, strict=True)), cells)

    def _lines(self) -> Iterator[tuple[int, str] | Finding]:
        """Each line with its number, or what is wrong with it."""
        for line in numbered_lines(self.path, self.encoding):
            yield _advised(line) if isinstance(line, Finding) else line

    def _folders(self) -> Iterator[LabelledExample | Finding]:
        """The texts of a folder, each the lines of a file."""
        texts = ((folder.name, file) for folder in folders_of(self.path) for file in _texts_in(folder))
        for number, (label, file) in enumerate(texts, 1):
            lines = list(numbered_lines(file, self.encoding))
            wrong = next((line for line in lines if isinstance(line, Finding)), None)
            text = " ".join(line[1].strip() for line in lines if not isinstance(line, Finding)).strip()
            if wrong is not None:
                yield _advised(wrong)
            elif text:
                yield LabelledExample(number, label, text, {})

    def _marked(self, number: int, line: str) -> LabelledExample | Finding:
        """A line that begins with its class, or has labels; white space of any kind ends a class."""
        first, *rest = line.split(maxsplit=1) or [""]
        text = rest[0].strip() if rest else ""
        if self.labels != "marked":
            label = first.partition(":")[0] if self.labels == "coarse" else first
            if label and text:
                return LabelledExample(number, label, text, {})
            what = f"expected a class and a text with a space between, got {line[:30]!r}; remove the line"
            return self._wrong(number, "unlabelled", what)
        found = [one.strip(",") for each in MARKED.findall(line) for one in each.split(f",{MARK}")]
        if not found:
            advice = (
                "rename it .tsv if it is a table" if "\t" in line else "give a table such as .tsv or .csv"
            )
            what = f"{line[:30]!r} has no label; begin the line with {MARK}NAME and a space, {advice}"
            return self._wrong(
                number, "unlabelled", f"{what}, or say that the first word is the class: {FIRST}"
            )
        text = MARKED.sub("", line).strip()
        if len(found) > 1 and self.separator is None:
            return self._wrong(number, "unlabelled", _several(found))
        return LabelledExample(number, (self.separator or "|").join(found), text, {})

    def _wrong(self, number: int, kind: str, what: str) -> Finding:
        return Finding(str(self.path), number, kind, what)


def folders_of(path: Path) -> list[Path]:
    """The folders of texts in a folder, one for each class."""
    inside = sorted(one for one in path.iterdir() if one.is_dir()) if is_folder(path) else []
    return [one for one in inside if any(_texts_in(one))]


def _texts_in(folder: Path) -> list[Path]:
    return sorted(one for one in folder.glob("*.txt*") if one.is_file() and bare(one).suffix == ".txt")


def _listed(label: str) -> list[object] | None:
    """The labels of a record that has a list of them, which the table shows as JSON; None for other text."""
    try:
        found = json.loads(label) if label.startswith("[") else None
    except (ValueError, RecursionError):  # a name such as [neg]
        return None
    return found if isinstance(found, list) else None


def _several(names: Sequence[object]) -> str:
    what = f"expected one label, got two or more ({', '.join(map(str, names))[:60]}); keep one"
    return f'{what}, or pass a separator for several (data.separator: "|", --separator)'


def _advised(wrong: Finding) -> Finding:
    """With advice on reading a file in the encoding that a finding suggests."""
    found = re.search(r"(?:probably|for the first: iconv -f) ((WINDOWS|ISO|KOI8|CP|IBM)[\w-]+)", wrong.text)
    if not found:
        return wrong
    name = found[1].lower()
    name += " (or latin-1)" if name == "windows-1252" else ""
    advice = f"; or read it as it is: data.encoding: {name}, --encoding on the command line"
    return wrong._replace(text=wrong.text + advice)


def check_encoding(name: str) -> None:
    """Check that Python knows an encoding and that it encodes line ends as ASCII."""
    try:
        plain = "a\n".encode(name) == b"a\n"
    except (LookupError, UnicodeError, ValueError, TypeError):
        plain = False
    if not plain:
        raise ConfigError(
            f"encoding: expected one such as utf-8, latin-1 or cp1250, got {name[:40]!r}; convert other "
            "files with iconv"
        )


def joined_columns(cells: Sequence[str], border: str) -> str:
    """The columns of a text as one text, with the border between them; empty if all of them are."""
    if len(cells) == 1:
        return cells[0]
    texts = [one.strip() for one in cells]
    return border.join(one for one in texts if one or border != NO_BORDER) if any(texts) else ""


def text_columns(text: str | Sequence[str]) -> list[str]:
    """The columns of a text; one may be given without a list."""
    return [text] if isinstance(text, str) else list(text)
