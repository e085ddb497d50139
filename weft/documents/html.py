"""HTML as segments: block elements separate them, inline elements are their marks.

Whatever is not translated (tags, comments, scripts) stays as it is in the source, character by character.
Python's html.parser finds the parts. Read next: ../text/segments.py; ../text/moving.py.
"""

import html
import re
from collections.abc import Sequence
from functools import partial
from html.parser import HTMLParser
from itertools import accumulate
from typing import NamedTuple

from weft.errors import DataError
from weft.text.moving import laid, with_tags
from weft.text.segments import InlineText, Segment, WrittenSentence


def names(text: str) -> frozenset[str]:
    """The names in a text, which spaces separate."""
    return frozenset(text.split())


INLINE = names(
    "a abbr acronym b bdi bdo big blink button cite data del dfn em font i ins label mark nobr output q s "
    "small span strike strong sub sup time tt u"
)
"""Elements inside a sentence."""

KEPT = names("audio canvas code embed iframe kbd math object picture samp select svg textarea var video")
"""Elements inside a sentence whose content is not translated."""

APART = names("a button label")
"""Inline elements that are different texts where one follows another without a space, as in a menu."""

RAISED = names("sub sup")
"""Inline elements that stay where they are, at the end of a word, if they have no letters: signs of notes."""

CLOSED = names("noscript script style template")
"""Elements between sentences whose content is not translated."""

VOID = names(
    "area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr"
)
"""Elements without content."""

ATTRIBUTES = names("alt aria-label placeholder title")
"""Attributes of any element that are read by people."""

DESCRIPTIONS = names("description og:description og:title twitter:description twitter:title")
"""Names of `meta` elements whose content is."""

_VALUE = re.compile(r"""(\s([\w:-]+)\s*=\s*)("[^"]*"|'[^']*')""")
_GAP = re.compile(r"\s+")
_TAG = re.compile("<[A-Za-z/!?]")
_LONG_NUMBER = re.compile("&#[0-9]{1000}")
"""Python turns no more than 4,300 digits into a number."""

_MARK = "\ud800"
"""Around the number of a segment in a tag: half a character, which no text contains."""

_SIGN = re.compile(f"{_MARK}(\\d+){_MARK}")
_NO = frozenset(("notranslate", "skiptranslate"))
_escaped = partial(html.escape, quote=False)


class Event(NamedTuple):
    """A part of a source."""

    kind: str  # text, open, close, or other (a comment or a declaration)
    raw: str
    name: str = ""  # the element's name in lower case
    no: bool = False  # whether the element says that it is not to be translated
    described: bool = False  # whether it is a `meta` element with a description


class Html:
    """A page or a part of one."""

    def __init__(self, text: str) -> None:
        self.segments: list[Segment] = []
        self._parts: list[str | int] = []  # the page: what stays as it is, and numbers of segments
        self._run = InlineText()
        self._preformatted = 0
        if _LONG_NUMBER.search(text):
            raise DataError("expected characters by number such as &#233;, got a number of 1,000 digits")
        events = read_html_events(text)
        self._after = _ends(events)
        letters = (event.kind == "text" and _has_letters(html.unescape(event.raw)) for event in events)
        self._letters = [0, *accumulate(letters)]  # texts with letters before each event
        place = 0
        while place < len(events):
            place = self._take(events, place)
        self._end()

    def written(self, found: Sequence[WrittenSentence]) -> str:
        """The page with the translations of its segments."""
        page = "".join(
            part if isinstance(part, str) else with_tags(laid(self.segments[part], found[part]), _escaped)
            for part in self._parts
        )
        return _SIGN.sub(lambda sign: html.escape(found[int(sign[1])].text), page)

    def _with_signs(self, event: Event) -> str:
        """A tag with the numbers of segments in place of its attributes that are texts."""

        def sign(found: re.Match[str]) -> str:
            name, value = found[2].lower(), html.unescape(found[3][1:-1])
            read = name == "content" if event.described else name in ATTRIBUTES
            if not read or not _has_letters(value):
                return found[0]
            quote = found[3][0]
            return f"{found[1]}{quote}{self._sign(value)}{quote}"

        return _VALUE.sub(sign, event.raw)

    def _option(self, event: Event) -> str:
        """A part of a list of choices, whose texts are segments."""
        text = html.unescape(event.raw)
        return self._sign(text.strip()) if event.kind == "text" and _has_letters(text) else event.raw

    def _sign(self, text: str) -> str:
        """The number of a new segment."""
        self.segments.append(Segment(text))
        return f"{_MARK}{len(self.segments) - 1}{_MARK}"

    def _take(self, events: Sequence[Event], place: int) -> int:
        """Take an event, or all those of an element that is not translated; the number of the next one."""
        event = events[place]
        if event.kind == "open" and not event.no:
            event = event._replace(raw=self._with_signs(event))
        closed = event.name in KEPT or event.name in CLOSED or self._is_sign(events, place)
        if event.kind == "open" and event.name not in VOID and (event.no or closed):
            after = self._after[place]
            chosen = event.name == "select" and not event.no
            inside = events[place + 1 : after]
            raw = event.raw + "".join(self._option(one) if chosen else one.raw for one in inside)
            if event.name in INLINE or event.name in KEPT:
                self._run.point(raw)
            else:
                self._end(raw)
            return after
        if event.kind == "text":
            self._text(event.raw)
        elif event.kind == "other" or (event.name in VOID and event.name not in ("br", "hr")):
            self._run.point(event.raw)
        elif event.name not in INLINE:
            self._preformatted += (event.name == "pre") * (1 if event.kind == "open" else -1)
            self._end(event.raw)
        elif event.kind == "open":
            before = events[place - 1] if place else event
            if before.kind == "close" and {before.name, event.name} <= APART:
                self._end()
            self._run.open(event.raw, event.name)
        else:
            self._run.close(event.raw, event.name)
        return place + 1

    def _is_sign(self, events: Sequence[Event], place: int) -> bool:
        """Whether an element begins here that is a sign without letters at the end of a word."""
        if events[place].name not in RAISED or events[place].kind != "open":
            return False
        before = events[place - 1].raw[-1:] if place else " "
        after = self._after[place]
        rest = events[after].raw if after < len(events) and events[after].kind == "text" else ""
        at_end = not (before.isspace() or rest[:1].isalnum())
        return at_end and self._letters[after] == self._letters[place]

    def _text(self, raw: str) -> None:
        """Text; inside <pre> each line is a segment."""
        if self._preformatted <= 0:
            self._run.text(raw, _GAP.sub(_one_line_end, html.unescape(raw)))
            return
        for number, line in enumerate(raw.split("\n")):
            if number:
                self._end("\n")
            self._run.text(line, html.unescape(line))

    def _end(self, raw: str = "") -> None:
        """End the segment; this part of the source follows."""
        text, marks = self._run.ended()
        if _has_letters(text):
            self._parts += [len(self.segments), raw]
            self.segments.append(Segment(text, marks))
        else:
            self._parts.append("".join(self._run.raw) + raw)
        self._run = InlineText()


def _one_line_end(gap: re.Match[str]) -> str:
    """White space without its empty lines, at which a text would be cut."""
    return "\n" if gap[0].count("\n") > 1 else gap[0]


def _has_letters(text: str) -> bool:
    return any(sign.isalpha() for sign in text)


def _ends(events: Sequence[Event]) -> list[int]:
    """For each event that opens an element, the number of the event after the element."""
    ends = [len(events)] * len(events)
    opened: dict[str, list[int]] = {}
    for number, event in enumerate(events):
        if event.kind == "open":
            opened.setdefault(event.name, []).append(number)
        elif event.kind == "close" and opened.get(event.name):
            ends[opened[event.name].pop()] = number + 1
    return ends


def read_html_events(text: str) -> list[Event]:
    """All parts of a source."""
    cut = _whole(text)
    reader = _Reader(text[:cut])
    ends = [*(begin for begin, _ in reader.found[1:]), cut]
    events: list[Event] = []
    for (begin, event), end in zip(reader.found, ends, strict=True):
        raw = text[begin : begin + len(event.raw)] if event.raw else text[begin:end]
        joins = event.kind == "text" and events and events[-1].kind == "text"
        if joins:
            events[-1] = events[-1]._replace(raw=events[-1].raw + raw)
        elif raw:
            events.append(event._replace(raw=raw))
        if begin + len(raw) < end:  # what the parser drops, such as </>
            events.append(Event("other", text[begin + len(raw) : end]))
    return [*events, Event("other", text[cut:])] if cut < len(text) else events


def _whole(text: str) -> int:
    """The length of a source without a last tag that does not end; the parser is slow on many of those."""
    found = _TAG.search(text, text.rfind(">") + 1)
    return found.start() if found else len(text)


class _Reader(HTMLParser):
    """Notes where each part begins; an event without `raw` reaches to the next one."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=False)
        self.found: list[tuple[int, Event]] = [(0, Event("other", ""))]
        self._lines = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
        self.feed(text)
        self.close()
        if len(self.found) > 1 and self.found[1][0] == 0:
            del self.found[0]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note("open", self.get_starttag_text() or "", tag, attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        raw = self.get_starttag_text() or ""
        if tag in VOID:
            self._note("open", raw, tag, attrs)
        else:  # an element of XML that is closed at once
            self._note("other", raw)

    def handle_endtag(self, tag: str) -> None:
        self._note("close", "", tag)

    def handle_data(self, data: str) -> None:
        self._note("text", data)

    def handle_entityref(self, name: str) -> None:
        self._note("text", "")

    def handle_comment(self, data: str) -> None:
        self._note("other", "")

    def handle_decl(self, decl: str) -> None:
        self._note("other", "")

    handle_charref = handle_entityref
    handle_pi = unknown_decl = handle_comment

    def _note(
        self, kind: str, raw: str, name: str = "", attrs: Sequence[tuple[str, str | None]] = ()
    ) -> None:
        line, column = self.getpos()
        given = {key: (value or "").lower() for key, value in attrs}
        no = given.get("translate") == "no" or bool(_NO & set(given.get("class", "").split()))
        described = name == "meta" and bool({given.get("name"), given.get("property")} & DESCRIPTIONS)
        self.found.append((self._lines[line - 1] + column, Event(kind, raw, name, no, described)))
