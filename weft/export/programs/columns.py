"""The texts in the named columns of a table, for the models that were trained on tables."""

import csv
import io
from collections.abc import Iterator, Sequence

OTHER = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods", ".jsonl", ".ndjson", ".json", ".parquet")
"""Tables that Weft reads and the program does not."""

csv.field_size_limit(2**26)


def header_of(line: str, columns: Sequence[str]) -> tuple[list[str], str]:
    """The cells of a table's first line and its delimiter, which is the one that separates most columns."""
    rows = [(next(csv.reader([line.strip("\r\n")], delimiter=mark), []), mark) for mark in ",;\t|"]
    return max(rows, key=lambda row: (len({*folded(row[0])} & {*folded(columns)}), len(row[0])))


def is_header(line: str, columns: Sequence[str]) -> bool:
    """Whether a line on standard input names columns of the model, all of them if it has no others."""
    cells, _ = header_of(line, columns)
    known = {*folded(columns)} & {*folded(cells)}
    return bool(known) and (len(cells) > 1 or len(columns) == 1)


def texts_of(table: str, columns: Sequence[str], border: str) -> Iterator[tuple[int, str | ValueError]]:
    """The line and the text of each row, or why it has none; several columns have a border between them."""
    lines = table.split("\n")
    names, mark = header_of(lines[0], columns)
    if mark == "\t" and '"' in table:
        raise ValueError('a quote (") in a table with tabs may enclose cells or not; save the table as .csv')
    names = folded(names)
    wrong = [name for name, one in zip(columns, folded(columns), strict=True) if names.count(one) != 1]
    if wrong:
        raise ValueError(
            f"expected one column {wrong[0]!r} in the first line, got {lines[0].strip()[:200]}; name it so, "
            "or give one text per line in a .txt"
        )
    places = [names.index(one) for one in folded(columns)]
    reader, begun = csv.reader(io.StringIO(table, newline=""), delimiter=mark, strict=True), 1
    while True:
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise ValueError(
                f"line {begun}: {error}; write a quote inside a quoted cell twice, or correct the line"
            ) from None
        if row is None:
            return
        while len(row) > len(names) and not row[-1].strip():
            row.pop()
        if row and begun > 1 and len(row) != len(names):
            yield begun, ValueError(f"expected {len(names)} columns, got {len(row)}; correct the line")
        elif row and begun > 1:
            cells = ["" if row[place] == "\\N" else row[place] for place in places]
            yield begun, cells[0] if len(cells) == 1 else joined(cells, border)
        begun = reader.line_num + 1


def joined(cells: Sequence[str], border: str) -> str:
    """Several columns as one text; empty if all of them are."""
    texts = [cell.strip() for cell in cells]
    return border.join(one for one in texts if one or border.strip()) if any(texts) else ""


def folded(names: Sequence[str]) -> list[str]:
    """Names without differences of letter case and white space."""
    return [" ".join(name.split()).casefold() for name in names]
