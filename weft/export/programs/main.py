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
import inspect
import json
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal, TextIO

from weft.export.programs.columns import OTHER, is_header, texts_of
from weft.export.programs.common import KINDS

OWN = ("folder", "file", "output")
"""Options of the program, which no model reads."""


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
