"""Subtitles (.srt): the text of each subtitle is a segment, and is written on as many lines as it had.

Read next: html.py.
"""

import re
import textwrap
from collections.abc import Sequence

from weft.documents.html import Html
from weft.documents.segments import Segment, WrittenSentence
from weft.errors import DataError

_TIME = re.compile(r"\s*-?\d+:\d\d?:\d\d?([,.]\d{1,3})?\s*-->\s*-?\d+:\d\d?:\d\d?([,.]\d{1,3})?(\s.*)?")
_HEAD = re.compile(r"\s*(\{\\[^}]*\})*\s*([-\u2013\u2014]\s*)?")
"""What a speaker's text begins with: places on the screen, and a dash."""


class Srt:
    r"""A file of subtitles; numbers, times and empty lines stay as they are.

    Args:
        text: the file.
        name: its name, for errors.

    Raises:
        DataError: a subtitle has no number or no times.

    Example:
        >>> file = Srt("1\n00:00:01,000 --> 00:00:02,000\nOpen the\n<i>file</i>.\n", "film.srt")
        >>> [one.text for one in file.segments]
        ['Open the file.']
    """

    def __init__(self, text: str, name: str) -> None:
        self.segments: list[Segment] = []
        self._parts: list[str | tuple[str, Html, int]] = []
        """Lines that stay as they are; texts, with what they begin with and on how many lines they were."""
        self._end = "\r\n" if "\r\n" in text else "\n"
        lines = text.replace("\r\n", "\n").split("\n")
        place = 0
        while place < len(lines):
            if not lines[place].strip():
                self._parts.append(lines[place])
                place += 1
            else:
                place = self._subtitle(lines, place, name)

    def written(self, found: Sequence[WrittenSentence]) -> str:
        """The file with the translations of its texts."""
        lines: list[str] = []
        place = 0
        for part in self._parts:
            if isinstance(part, str):
                lines.append(part)
                continue
            head, page, count = part
            there = page.written(found[place : place + len(page.segments)])
            place += len(page.segments)
            lines += _wrapped(head + there, count)
        return self._end.join(lines)

    def _subtitle(self, lines: Sequence[str], place: int, name: str) -> int:
        """Take a number, times and a text; the place after them."""
        number, times = lines[place].strip(), lines[place + 1] if place + 1 < len(lines) else ""
        if not number.isdecimal():
            raise DataError(
                f"expected the number of a subtitle, got {number[:40]!r}", path=name, line=place + 1
            )
        if not _TIME.fullmatch(times):
            raise DataError(
                f"expected times such as 00:00:01,000 --> 00:00:02,500, got {times[:40]!r}",
                path=name,
                line=place + 2,
            )
        self._parts += [lines[place], times]
        begin = place = place + 2
        while place < len(lines) and lines[place].strip():
            place += 1
        spoken = _speakers(lines[begin:place])
        for one in spoken:
            text = " ".join([one[0].rstrip(), *(line.strip() for line in one[1:])])
            found = _HEAD.match(text)
            assert found is not None
            page = Html(text[found.end() :].replace("&", "&amp;"))
            self.segments += page.segments
            self._parts.append((found[0], page, len(one)))
        return place


def _speakers(lines: Sequence[str]) -> list[list[str]]:
    """The lines of a subtitle, those of each speaker together: each begins with a dash."""
    found: list[list[str]] = []
    dashes = [line.lstrip().startswith(("-", "\u2013", "\u2014")) for line in lines]
    for line, dash in zip(lines, dashes, strict=True):
        if dash or not found:
            found.append([])
        found[-1].append(line)
    return found


def _wrapped(text: str, count: int) -> list[str]:
    """A text on at most so many lines of about the same length."""
    text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    if count <= 1:
        return [text]
    width = -(-len(text) // count)
    while len(lines := textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)) > count:
        width += 1
    return lines
