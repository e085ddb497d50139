"""Text that may come from a stranger's file, made safe to show: no control character reaches a terminal.

A run's names, tokens, labels and recipe can hold escape sequences that retitle a terminal, move its cursor
or hide a line. `visible` writes each as an escape, and `shown` puts that between the program and its
streams: always for stderr, and for stdout where it is a terminal (in a pipe it carries data).
Read next: cli.py.
"""

import io
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and line feed, DEL, C1
    "\u202a-\u202e\u2066-\u2069"  # what turns the direction of the text around it
    "\ud800-\udfff]"  # half a surrogate pair, which no stream can encode
)


def visible(text: str) -> str:
    """The text with each control character as an escape; tabs and line feeds stay.

    Example:
        >>> [visible(text) for text in ("plain", chr(27) + "[2J")] == ["plain", chr(92) + "x1b[2J"]
        True
    """
    return _CONTROL.sub(_escaped, text)


@contextmanager
def shown() -> Iterator[None]:
    """In the block sys.stderr, and sys.stdout where it is a terminal, show control characters as escapes."""
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
    """The stream below `shown`, for one that colours text itself; it has to call `visible`."""
    return stream.below if isinstance(stream, _Shown) else stream


class _Shown(io.TextIOWrapper):
    below: TextIO

    def write(self, text: str) -> int:
        super().write(visible(text))
        return len(text)

    def leave(self) -> None:
        """Give the buffer back to the stream below, which may be closed or gone."""
        with suppress(OSError, ValueError):
            self.detach()


def _wrapped(stream: TextIO) -> TextIO:
    buffer = getattr(stream, "buffer", None)
    if buffer is None or isinstance(stream, _Shown):  # an editor's console: text goes in as it is
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
