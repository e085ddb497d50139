"""The parts of an HTML source in order, which joined are the source. Python's html.parser finds them.

Read next: html.py.
"""

import re
from html.parser import HTMLParser
from itertools import accumulate
from typing import NamedTuple


def names(text: str) -> frozenset[str]:
    """The names in a text, which spaces separate."""
    return frozenset(text.split())


VOID = names(
    "area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr"
)
"""Elements without content."""

_TAG = re.compile("<[A-Za-z/!?]")
_NO = frozenset(("notranslate", "skiptranslate"))


class Event(NamedTuple):
    """A part of a source."""

    kind: str
    """text, open, close, or other (a comment or a declaration)."""

    raw: str
    name: str = ""
    """The element's name in lower case."""

    no: bool = False
    """Whether the element says that it is not to be translated."""


def read_html_events(text: str) -> list[Event]:
    """All parts of a source.

    Example:
        >>> [(one.kind, one.raw) for one in read_html_events("a &lt; <B id=x>b</B><!-- c -->")]
        [('text', 'a &lt; '), ('open', '<B id=x>'), ('text', 'b'), ('close', '</B>'), ('other', '<!-- c -->')]
    """
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
            self._note("other", raw, "", [])

    def handle_endtag(self, tag: str) -> None:
        self._note("close", "", tag, [])

    def handle_data(self, data: str) -> None:
        self._note("text", data, "", [])

    def handle_entityref(self, name: str) -> None:
        self._note("text", "", "", [])

    def handle_charref(self, name: str) -> None:
        self._note("text", "", "", [])

    def handle_comment(self, data: str) -> None:
        self._note("other", "", "", [])

    def handle_decl(self, decl: str) -> None:
        self._note("other", "", "", [])

    def handle_pi(self, data: str) -> None:
        self._note("other", "", "", [])

    def unknown_decl(self, data: str) -> None:
        self._note("other", "", "", [])

    def _note(self, kind: str, raw: str, name: str, attrs: list[tuple[str, str | None]]) -> None:
        line, column = self.getpos()
        given = {key: (value or "").lower() for key, value in attrs}
        no = given.get("translate") == "no" or bool(_NO & set(given.get("class", "").split()))
        self.found.append((self._lines[line - 1] + column, Event(kind, raw, name, no)))
