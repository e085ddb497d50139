"""Use a model that Weft exported to ONNX, with onnxruntime and numpy.

It also needs tokenizers for text, Pillow for pictures and soundfile for recordings.

On the command line, one answer per line of a file (UTF-8) or of standard input, or per row of a table (.csv,
.tsv) with the columns that README.md names:
    python weft_onnx.py input.txt --output answers.txt
    python weft_onnx.py --beam 1 < input.txt

From Python:
    from weft_onnx import load
    model = load("folder")
    print(model("Click the button."))
"""

import argparse
import csv
import inspect
import io
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal, TextIO

from weft.export.programs.common import KINDS

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


OWN = ("folder", "file", "output")  # options of the program, which no model reads


def load(folder: str | Path) -> Any:
    """The model in a folder."""
    place = Path(folder)
    about = json.loads((place / "weft.json").read_text("utf-8"))
    return KINDS[about["kind"]](place, about)


def main() -> None:
    """Answer each line, or each row of a table; README.md says what the input holds."""
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument(
        "file",
        nargs="?",
        help="the input: lines, or a table (.csv, .tsv) with the model's columns, which README.md names "
        "(default: standard input)",
    )
    parser.add_argument("--output", help="file to write (default: standard output)")
    parser.add_argument("--folder", default=here, help="the exported model (default: this file's folder)")
    parser.add_argument("--beam", type=int, help="beam width; 1 is greedy (default: the recipe's)")
    parser.add_argument("--scores", action="store_true", default=None, help="probabilities too")
    parser.add_argument("--nbest", type=int, help="pieces of each gap (default: the text, filled)")
    parser.add_argument("--source", help="source language, of a model of several")
    parser.add_argument("--target", help="target language, of a model of several")
    options = parser.parse_args()
    model = load(options.folder)
    more = {name: value for name, value in vars(options).items() if name not in OWN and value is not None}
    wrong = [f"--{name}" for name in more if name not in inspect.signature(model.__call__).parameters]
    if wrong:
        parser.error(f"{', '.join(wrong)}: a model of this kind has no such option")
    sys.stdin.reconfigure(encoding="utf-8-sig")  # type: ignore[union-attr]  # Windows has other encodings
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    failed, whole = False, getattr(model, "whole", False)
    about = json.loads(Path(options.folder, "weft.json").read_text("utf-8"))
    with ExitStack() as files:
        given = files.enter_context(text_file(parser, options.file, "r")) if options.file else sys.stdin
        out = files.enter_context(text_file(parser, options.output, "w")) if options.output else sys.stdout
        try:
            for number, line in enumerate([given.read()], 1) if whole else inputs(given, options.file, about):
                try:
                    if isinstance(line, ValueError):
                        raise line
                    answer = model(line, **more)
                except ValueError as error:  # the next line may be right
                    print(error if whole else f"line {number}: {error}", file=sys.stderr)
                    answer, failed = "", True
                else:
                    if note := getattr(model, "note", ""):
                        print(f"line {number}: {note}", file=sys.stderr)
                print(answer, file=out, flush=True)
        except BrokenPipeError:  # as of `| head`; what is left of the output goes nowhere
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(141)
        except ValueError as error:
            parser.error(f"{options.file or 'standard input'}: {error}")
    sys.exit(3 if failed else 0)


def inputs(given: TextIO, name: str | None, about: dict[str, Any]) -> Iterator[tuple[int, str | ValueError]]:
    """The lines of the input with their numbers; of a table, the texts of its rows."""
    columns, ending = about.get("columns") or [], Path(name or "").suffix.lower()
    if columns and ending in OTHER:
        raise ValueError(f"expected lines (.txt) or a table (.csv, .tsv), got {ending}; save it as .csv")
    first = given.readline()
    if columns and (ending in (".csv", ".tsv") or (name is None and is_header(first, columns))):
        yield from texts_of(first + given.read(), columns, about.get("border", " "))
        return
    if first:
        yield 1, first.rstrip("\n")
    for number, line in enumerate(given, 2):
        yield number, line.rstrip("\n")


def text_file(parser: argparse.ArgumentParser, name: str, mode: Literal["r", "w"]) -> TextIO:
    """A file of UTF-8, with or without a byte order mark; if it fails, the program ends with a sentence."""
    try:
        return open(
            name,
            mode,
            encoding="utf-8-sig" if mode == "r" else "utf-8",
            newline=None if mode == "r" else "\n",
        )
    except OSError as error:
        parser.error(f"{name}: {error.strerror}")


if __name__ == "__main__":
    main()
