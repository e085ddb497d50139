"""Make untrusted text safe to print: no control character reaches a terminal.

A run's names, tokens, labels and recipe can contain escape sequences that retitle a terminal, move its cursor
or hide a line. `visible` escapes them, and `shown` applies it to the program's streams: always to stderr,
and to stdout if it is a terminal (a pipe carries data).
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
    "\u202a-\u202e\u2066-\u2069"  # changes of text direction
    "\ud800-\udfff]"  # half a surrogate pair, which no stream can encode
)


def visible(text: str) -> str:
    """The text with control characters escaped, except tabs and line feeds.

    Example:
        >>> [visible(text) for text in ("plain", chr(27) + "[2J")] == ["plain", chr(92) + "x1b[2J"]
        True
    """
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
