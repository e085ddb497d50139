"""Where the markup of a text belongs in its translation.

A mark is used exactly once: around the longest run of words that have most of their weight in its own words.
Read next: segments.py.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from weft.text.segments import Links, Mark, Segment, WrittenSentence

_NEVER = 1e6  # against sums of weights of at most 1 each
_begin, _end = itemgetter(0), itemgetter(1)


class Laid(NamedTuple):
    """A mark in a translation, and what is inside it."""

    what: Any
    inner: "list[str | Laid]"


class _Room(NamedTuple):
    """Words of the translation, by number, and the part of the text that they are in."""

    first: int
    last: int  # not included
    begin: int
    end: int


def laid(segment: Segment, found: WrittenSentence) -> list[str | Laid]:
    """The translation of a segment as texts and marks in order.

    A point with white space on a side of it in the source has white space there in the translation too.
    """
    if found.links is None:
        return [found.text]
    room = _Room(0, len(found.links.target), 0, len(found.text))
    marks = [_at_end(one, segment.text, found.text) for one in _moved(segment.marks, found.links, room)]
    return list(_parts(segment, found.text, marks, 0, len(found.text)))


def with_tags(parts: Sequence[str | Laid], written: Callable[[str], str] = str) -> str:
    """A translation whose marks are Tags, as text."""
    return "".join(
        written(part)
        if isinstance(part, str)
        else part.what.before + with_tags(part.inner, written) + part.what.after
        for part in parts
    )


class _Moved(NamedTuple):
    """A mark of the source and its place in the translation."""

    begin: int
    end: int
    mark: Mark
    inner: "list[_Moved]"


def _parts(
    segment: Segment, text: str, marks: Sequence[_Moved], begin: int, end: int
) -> Iterator[str | Laid]:
    for one in marks:
        if begin < one.begin:
            yield text[begin : one.begin]
        inner = list(_parts(segment, text, one.inner, one.begin, one.end))
        left, right = _spaced(segment.text, text, one)
        if left:
            yield " "
        yield Laid(one.mark.what, inner)
        if right:
            yield " "
        begin = one.end
    if begin < end:
        yield text[begin:end]


def _spaced(source: str, text: str, one: _Moved) -> tuple[bool, bool]:
    """Whether a point lacks the white space on its left and right that it has in the source."""
    if one.begin != one.end or one.mark.begin != one.mark.end or not 0 < one.mark.begin < len(source):
        return False, False
    here = one.mark.begin
    left = source[here - 1].isspace() and one.begin > 0 and not text[one.begin - 1].isspace()
    right = source[here].isspace() and one.begin < len(text) and not text[one.begin].isspace()
    return left, right


def _moved(marks: Sequence[Mark], links: Links, room: _Room) -> list[_Moved]:
    """Neighbouring marks at their places in the translation, in the order of these places."""
    masses = [_mass(mark, links, room) for mark in marks]
    free = np.ones(room.last - room.first, bool)
    found: dict[int, _Moved] = {}
    with_words = [(number, mass) for number, mass in enumerate(masses) if mass is not None]
    for number, mass in sorted(with_words, key=lambda one: -float(np.maximum(one[1] - 0.5, 0).sum())):
        run = _best_run(np.where(free, mass - 0.5, -np.inf))
        if run is None:  # more marks than words
            found[number] = _at(marks[number], room.end)
            continue
        free[run[0] : run[1]] = False
        first, last = room.first + run[0], room.first + run[1]
        inside = _Room(first, last, links.target[first][0], links.target[last - 1][1])
        inner = _moved(marks[number].inner, links, inside)
        found[number] = _Moved(inside.begin, inside.end, marks[number], inner)
    taken = [(one.begin, one.end) for one in found.values() if one.begin < one.end]
    for number, mark in enumerate(marks):
        if number not in found:
            found[number] = _at(mark, _outside(_point(mark, links, room), taken))
    return [one for _, one in sorted(found.items(), key=lambda pair: (pair[1].begin, pair[1].end, pair[0]))]


def _mass(mark: Mark, links: Links, room: _Room) -> np.ndarray | None:
    """[words of the room] how much of each word's weight is in the mark; None for a mark without words."""
    first, last = (
        bisect_right(links.source, mark.begin, key=_end),
        bisect_left(links.source, mark.end, key=_begin),
    )
    if first >= last or room.first == room.last or mark.begin == mark.end:
        return None
    found: np.ndarray = links.weights[room.first : room.last, first:last].sum(1)
    return found


def _best_run(gains: np.ndarray) -> tuple[int, int] | None:
    """The neighbours with the largest sum: at least one, and none of -inf."""
    sums = np.concatenate([[0.0], np.where(gains == -np.inf, -_NEVER, gains).cumsum()])
    lowest = np.minimum.accumulate(sums[:-1])
    total = sums[1:] - lowest
    if not len(total) or total.max() < -_NEVER / 2:
        return None
    last = int(total.argmax())
    first = int((sums[: last + 1] == lowest[last]).nonzero()[0][-1])
    return first, last + 1


def _point(mark: Mark, links: Links, room: _Room) -> int:
    """The place of a mark without words.

    It is before the word that its next word became; if it touches only the word before it, after that.
    """
    before = bisect_right(links.source, mark.begin, key=_end) - 1
    after = bisect_left(links.source, mark.begin, key=_begin)
    if room.first == room.last or before < 0:
        return room.begin
    if after == len(links.source):
        return room.end
    touches = links.source[before][1] == mark.begin < links.source[after][0]
    weights = links.weights[room.first : room.last, before if touches else after]
    place = room.first + int(weights.argmax())
    return links.target[place][1] if touches else links.target[place][0]


def _at_end(one: _Moved, source: str, text: str) -> _Moved:
    """A point at an end of the translation; among white space there it is where it is in the source."""
    before, after = source[: one.mark.begin], source[one.mark.begin :]
    if one.begin == one.end == 0 and not before.strip() and text.startswith(before):
        return one._replace(begin=len(before), end=len(before))
    if one.begin == len(text) and not after.strip() and text.endswith(after):
        return one._replace(begin=len(text) - len(after), end=len(text) - len(after))
    return one


def _outside(place: int, taken: Sequence[tuple[int, int]]) -> int:
    """The place, or the nearer end of the mark that it is inside of."""
    for begin, end in taken:
        if begin < place < end:
            return begin if place - begin <= end - place else end
    return place


def _at(mark: Mark, place: int) -> _Moved:
    """The mark and those inside it as points."""
    return _Moved(place, place, mark, [_at(one, place) for one in mark.inner])
