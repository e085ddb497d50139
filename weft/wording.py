"""Words of messages: counts with their noun, and text from files, safe to print.

No control character reaches a terminal: a run's names, tokens, labels and recipe can contain escape sequences
that retitle it, move its cursor or hide a line. `visible` escapes them, and `shown` applies it to the
program's streams: always to stderr, and to stdout if it is a terminal (a pipe carries data).
Read next: errors.py.
"""

import difflib
import io
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and line feed, DEL, C1
    "\u202a-\u202e\u2066-\u2069"  # changes of text direction
    "\ud800-\udfff]"  # half a surrogate pair, which no stream can encode
)


def visible(text: str) -> str:
    """The text with control characters escaped, except tabs and line feeds."""
    return _CONTROL.sub(_escaped, text)


@contextmanager
def shown() -> Iterator[None]:
    """Escape control characters in sys.stderr, and in sys.stdout if it is a terminal, within the block."""
    out, err = sys.stdout, sys.stderr
    ours = [
        out if out is None or not out.isatty() else _wrapped(out),
        err if err is None else _wrapped(err),
    ]
    try:
        sys.stdout, sys.stderr = ours
        yield
    finally:
        sys.stdout, sys.stderr = out, err
        for stream in ours:
            if isinstance(stream, _Shown):
                stream.leave()


def beneath(stream: TextIO) -> TextIO:
    """The stream below `shown`, for code that colours text; it must call `visible` itself."""
    return stream.below if isinstance(stream, _Shown) else stream


class _Shown(io.TextIOWrapper):
    below: TextIO

    def write(self, text: str) -> int:
        super().write(visible(text))
        return len(text)

    def leave(self) -> None:
        """Return the buffer to the stream below, which may be closed."""
        with suppress(OSError, ValueError):
            self.detach()


def _wrapped(stream: TextIO) -> TextIO:
    buffer = getattr(stream, "buffer", None)
    if buffer is None or isinstance(stream, _Shown):  # an editor's console takes text unchanged
        return stream
    stream.flush()
    lines = bool(getattr(stream, "line_buffering", True))
    made = _Shown(buffer, stream.encoding, stream.errors, line_buffering=lines, write_through=not lines)
    made.below = stream
    return made


def _escaped(found: re.Match[str]) -> str:
    number = ord(found[0])
    if found[0] == "\r":
        return "\\r"
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"


def columns() -> int:
    """The width of the terminal; 80 in a pipe or a file, or the environment variable COLUMNS."""
    return shutil.get_terminal_size((80, 24)).columns


def folded(text: str, width: int, *, indent: int = 4) -> str:
    """The text with lines of prose folded at blanks and after "|"; no word is cut.

    Lines with two blanks in a row, except before a mark "  <- ...", are rows of a table and stay as they are.

    Example:
        >>> print(folded("  BLEU 24.79 (nrefs:1|case:mixed|tok:13a)", 24, indent=2))
          BLEU 24.79 (nrefs:1|
            case:mixed|tok:13a)
    """
    return "\n".join(_folded(line, width, indent) for line in text.split("\n"))


def _folded(line: str, width: int, indent: int) -> str:
    prose = line.lstrip(" ")
    lead = len(line) - len(prose)
    if len(line) <= width or "  " in prose.replace("  <-", ""):
        return line
    lines = [" " * lead]
    for piece in re.split(r"(?<=[ |])(?! )", prose):
        if len((lines[-1] + piece).rstrip()) > width and lines[-1].strip():
            lines.append(" " * (lead + indent))
        lines[-1] += piece
    return "\n".join(one.rstrip() for one in lines)


def close_name(word: str, known: Iterable[str]) -> str:
    """The known name that a mistyped word most likely means, in any letter case, or ""."""
    word, names = word[:80].lower(), {name.lower(): name for name in known}
    begun = [name for name in names if len(word) > 2 and name.startswith(word)]
    near = difflib.get_close_matches(word, names, 3)
    alike = (name for name in near if 2 * min(len(name), len(word)) > max(len(name), len(word)))
    return next((names[name] for name in (*begun[:1], *alike)), "")


def plural(count: int, noun: str) -> str:
    """A count and its noun, in the plural unless the count is 1.

    Example:
        >>> [plural(0, "line"), plural(1, "line"), plural(1200, "unknown word"), plural(2, "class")]
        ['0 lines', '1 line', '1,200 unknown words', '2 classes']
        >>> [plural(3, "summary"), plural(2, "hypothesis"), plural(2, "series"), plural(2, "day")]
        ['3 summaries', '2 hypotheses', '2 series', '2 days']
    """
    return f"{count:,} {noun if count == 1 else _several(noun)}"


def _several(noun: str) -> str:
    if noun.endswith("series"):
        return noun
    if noun.endswith("sis"):
        return f"{noun[:-2]}es"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"


def kind_of(value: object) -> str:
    """What a value is, for people: JSON types by their plain names.

    Example:
        >>> kind_of(None), kind_of(float("nan")), kind_of(7), kind_of([])
        ('nothing', 'nothing (NaN)', 'a number', 'a list')
    """
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, float) and value != value:
        return "nothing (NaN)"
    names = {type(None): "nothing", int: "a number", float: "a number", str: "a text", bytes: "bytes"}
    return {**names, list: "a list", dict: "an object"}.get(type(value), type(value).__name__)


def numbered(path: Path) -> Path:
    """A similar path with the next number, to suggest for what comes after it: en-es, en-es-2, en-es-3."""
    stem, dash, number = path.name.rpartition("-")
    if dash and number.isdecimal() and len(number) < 4:
        return path.with_name(f"{stem}-{int(number) + 1}")
    return path.with_name(f"{path.name}-2")
