"""How a table is written, so that its answers are written alike.

Its delimiter, its byte order mark, its line ends and its decimal separator; the csv module writes the rows.
Read next: tables.py, which reads tables; dialect.py, which reads their numbers.
"""

import csv
import io
import re
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from weft.data.dialect import has_decimal_comma
from weft.data.files import file_bytes
from weft.data.lines import BYTE_ORDERS
from weft.data.tables import NAMED, WORKBOOKS, Row, TableFile

ROWS = 1000  # rows whose numbers tell the decimal separator

_FIRST_ROW = re.compile(rb'(?:"[^"]*"|[^"\n])*\n')


class TableStyle(NamedTuple):
    """How the rows of a text table are written."""

    mark: str = ","
    quoted: bool = True  # whether quotes enclose cells; else they are part of the text
    begin: str = ""  # a byte order mark, or nothing
    end: str = "\n"
    comma: bool = False  # whether numbers have a decimal comma

    def header(self, cells: Sequence[str]) -> str:
        """The first row."""
        return self.begin + self.line(cells)

    def line(self, cells: Sequence[str]) -> str:
        """A row without its LF; its CR stays where lines end with CR LF."""
        if not self.quoted:
            return f"{self.mark.join(cells)}{self.end}".removesuffix("\n")
        text = io.StringIO()
        csv.writer(text, delimiter=self.mark, lineterminator=self.end).writerow(cells)
        return text.getvalue().removesuffix("\n")

    def number(self, text: str) -> str:
        """A number with the decimal separator of the table."""
        return text.replace(".", ",") if self.comma else text


def style_of(table: TableFile) -> TableStyle:
    """How a table is written; workbooks and records are answered as plain CSV."""
    if table.kind in (*NAMED, *WORKBOOKS):
        return TableStyle()
    head = next(file_bytes(table.path), b"")
    marked = any(map(head.startswith, BYTE_ORDERS))
    first = _FIRST_ROW.match(head.replace(b"\0", b""))  # of UTF-16 too
    ends = first is not None and first[0].endswith(b"\r\n")
    rows = [row.cells for row in islice(table.rows(), 1, ROWS) if isinstance(row, Row)]
    comma = has_decimal_comma(rows, table.mark)
    return TableStyle(table.mark, table.quoted, "\ufeff" if marked else "", "\r\n" if ends else "\n", comma)
