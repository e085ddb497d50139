"""Plain text, a segment for each line, and subtitles (.srt, .vtt), a segment for each subtitle.

A subtitle is written on as many lines as it had. A line that ended with a sentence does so again, if the
translation has as many sentences. Read next: ../text/segments.py; html.py.
"""

import re
import textwrap
from collections.abc import Sequence

import regex

from weft.documents.html import Html
from weft.errors import DataError
from weft.text.segments import Segment, WrittenSentence

_END = re.compile(r"(\r\n|\n|\r)")


class Plain:
    """A text; line ends are kept."""

    def __init__(self, text: str) -> None:
        self._parts = _END.split(text)
        self.segments = [Segment(line) for line in self._parts[::2]]

    def written(self, found: Sequence[WrittenSentence]) -> str:
        """The text with the translations of its lines."""
        parts = list(self._parts)
        parts[::2] = [one.text for one in found]
        return "".join(parts)


_CLOCK = r"\s*-?(\d+:)?\d\d?:\d\d?([,.]\d{1,3})?"
_TIME = re.compile(rf"{_CLOCK}\s*-->{_CLOCK}(\s.*)?")
_STYLE = re.compile(r"\{\\[^{}]*\}")
"""How SubStation writes the format of what follows, such as {\\i1}."""
_WORD_TIME = re.compile(r"<[\d:.]+>")
"""When a word of WebVTT is spoken, which says nothing of the words of a translation."""
_BLOCKS = ("WEBVTT", "NOTE", "STYLE", "REGION")
"""First words of the blocks of WebVTT that are no subtitles."""
_HEAD = re.compile(r"\s*(\{\\[^}]*\})*\s*([-\u2013\u2014]\s*)?")
"""What a speaker's text begins with: places on the screen, and a dash."""
_CLOSING = r"(?:[\"'\u2019\u201d\u00bb)\]\u300d\u300f]|</[^<>]*>|\{[^{}]*\})*+"
_FULL = r"[\u3002\uff01\uff1f]"
_BETWEEN = regex.compile(rf"(?:[.!?\u2026]{_CLOSING}\s++|{_FULL}(?!{_FULL}){_CLOSING}\s*+)(?=\S)")
"""What is between two sentences, with the end of the first."""


class Srt:
    """A file of subtitles; numbers, times and empty lines stay as they are."""

    def __init__(self, text: str, name: str) -> None:
        self.segments: list[Segment] = []
        self._parts: list[str | tuple[str, Html, Sequence[str]]] = []
        """Lines that stay as they are; texts, with what they begin with and the lines that they were."""
        self._end = "\r\n" if "\r\n" in text else "\n"
        lines = text.replace("\r\n", "\n").split("\n")
        self._web = name.lower().endswith(".vtt")
        if self._web and not lines[0].startswith("WEBVTT"):
            raise DataError(f"expected the line WEBVTT, got {lines[0][:40]!r}", path=name, line=1)
        place = 0
        while place < len(lines):
            if not lines[place].strip():
                self._parts.append(lines[place])
                place += 1
            elif self._web and lines[place].split()[0] in _BLOCKS:
                end = next((n for n in range(place, len(lines)) if not lines[n].strip()), len(lines))
                self._parts += lines[place:end]
                place = end
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
            head, page, source = part
            there = page.written(found[place : place + len(page.segments)])
            place += len(page.segments)
            lines += _broken(head + (_cue(there) if self._web else _plain(there)), source)
        return self._end.join(lines)

    def _subtitle(self, lines: Sequence[str], place: int, name: str) -> int:
        """Take a number, times and a text; the place after them."""
        number = lines[place].strip()
        named = not _TIME.fullmatch(number)  # WebVTT needs no number, or has a name
        if named and not self._web and not number.isdecimal():
            raise DataError(
                f"expected the number of a subtitle, got {number[:40]!r}", path=name, line=place + 1
            )
        times = lines[place + named] if place + named < len(lines) else ""
        if not _TIME.fullmatch(times):
            raise DataError(
                f"expected times such as 00:00:01,000 --> 00:00:02,500, got {times[:40]!r}",
                path=name,
                line=place + named + 1,
            )
        self._parts += lines[place : place + named + 1]
        begin = place = place + named + 1
        while place < len(lines) and not self._ends(lines, place):
            place += 1
        for one in _speakers(lines[begin:place]):
            if not one[0].strip():
                self._parts += one
                continue
            text = " ".join([one[0].rstrip(), *(line.strip() for line in one[1:])])
            found = _HEAD.match(text)
            assert found is not None
            rest = text[found.end() :]
            page = Html(_page(rest) if self._web else _STYLE.sub(r"<!--\g<0>-->", rest.replace("&", "&amp;")))
            self.segments += page.segments
            self._parts.append((found[0], page, one))
        return place

    def _ends(self, lines: Sequence[str], place: int) -> bool:
        """Whether a line ends a text: an empty one, or the next number or times without one between."""
        line, *after = lines[place : place + 2]
        if self._web and not line:  # a line of spaces is a part of a text of WebVTT
            return True
        if not line.strip() and not self._web:  # so is an empty one of SubRip, before more text
            place = next((n for n in range(place, len(lines)) if lines[n].strip()), len(lines))
            below = "".join(lines[place + 1 : place + 2])
            return place == len(lines) or bool(_TIME.fullmatch(below)) or self._ends(lines, place)
        numbered = line.strip().isdecimal() and bool(after) and bool(_TIME.fullmatch(after[0]))
        return numbered or bool(_TIME.fullmatch(line))


def _speakers(lines: Sequence[str]) -> list[list[str]]:
    """The lines of a subtitle, those of each speaker, who begins with a dash, together; empty ones alone."""
    found: list[list[str]] = []
    dashes = [line.lstrip().startswith(("-", "\u2013", "\u2014")) for line in lines]
    for line, dash in zip(lines, dashes, strict=True):
        if dash or not found or not (line.strip() and found[-1][0].strip()):
            found.append([])
        found[-1].append(line)
    return found


def _page(cue: str) -> str:
    """The text of WebVTT as HTML, in which a class is an attribute of an element inside a sentence."""
    return re.sub(r"<(/?)c(?=[.>])", r"<\1span ", _WORD_TIME.sub("", cue))


def _cue(page: str) -> str:
    return re.sub(r"<(/?)span ", r"<\1c", page)


def _plain(text: str) -> str:
    text = text.replace("<!--{", "{").replace("}-->", "}")
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _broken(text: str, source: Sequence[str]) -> list[str]:
    """A text on at most as many lines as its source, which breaks between the same sentences."""
    lines = [line.strip() for line in source]
    numbers = {end: number for number, end in enumerate(_ends(" ".join(lines)))}
    ends, found = _ends(text), list[str]()
    place = begin = done = 0
    for count, line in enumerate(lines if len(ends) == len(numbers) else [], 1):
        place += len(line) + 1  # where the next line begins
        if place in numbers:
            end = ends[numbers[place]]
            found += _wrapped(text[begin:end].rstrip(), count - done)
            begin, done = end, count
    return [*found, *_wrapped(text[begin:], len(lines) - done)]


def _ends(text: str) -> list[int]:
    """Where the sentences of a text end, except for the last one."""
    return [found.end() for found in _BETWEEN.finditer(text)]


def _wrapped(text: str, count: int) -> list[str]:
    """A text on at most so many lines of about the same length."""
    if count <= 1:
        return [text]
    width = -(-len(text) // count)
    while len(lines := textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)) > count:
        width += 1
    return lines
