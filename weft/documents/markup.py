"""The texts of elements of an XML tree as segments, and their translations in the same elements.

Read next: office.py and memories.py, which say what their elements are.
"""

from collections.abc import Callable, Iterable, Sequence
from io import StringIO
from itertools import accumulate
from typing import Any, Literal

from weft.text.kept import spans
from weft.text.moving import Laid, laid
from weft.text.segments import Mark, Segment, WrittenSentence

Role = Literal["inline", "point", "break"]
"""An element inside a text: surrounds words, is between words, or separates texts. The content of the last
two is not part of the text."""


class MarkupTexts:
    """The texts of some elements."""

    def __init__(self, elements: Iterable[Any], role: Callable[[Any], Role]) -> None:
        self._role = role
        self._rows: list[tuple[Any, list[Any]]] = []  # each element, and its parts: texts, elements, numbers
        self.segments: list[Segment] = []
        for element in elements:
            self._take(element)

    def fill(self, found: Sequence[WrittenSentence]) -> None:
        """Put the translations of the segments in their place."""
        for element, parts in self._rows:
            whole: list[Any] = []
            for part in parts:
                whole += _nodes(laid(self.segments[part], found[part])) if isinstance(part, int) else [part]
            fill_element(element, whole)

    def _take(self, element: Any) -> None:
        parts: list[Any] = []
        run: list[Any] = []
        for node in _content(element):
            if isinstance(node, str):
                run.append(node)
                continue
            role = self._role_of(node)
            if role == "break" or (role == "inline" and self._broken(node)):
                self._end(run, parts)
                run = []
                parts.append(node)
                if role == "inline":
                    self._take(node)
            else:
                run.append(node)
        self._end(run, parts)
        self._rows.append((element, parts))

    def _end(self, run: list[Any], parts: list[Any]) -> None:
        """Add a run of texts and inline elements, as a segment if it has letters."""
        texts, run = StringIO(), _whole_messages(run)
        marks = self._marks(run, texts)
        text = texts.getvalue()
        if any(sign.isalpha() for sign in text):
            parts.append(len(self.segments))
            self.segments.append(Segment(text, marks))
        else:
            parts += [one for node in run for one in (node if isinstance(node, list) else [node])]

    def _marks(self, nodes: Iterable[Any], texts: StringIO) -> tuple[Mark, ...]:
        """The marks of nodes; their texts are added."""
        marks = []
        for node in nodes:
            if isinstance(node, str):
                texts.write(node)
                continue
            if isinstance(node, list):
                marks.append(Mark(texts.tell(), texts.tell(), (node, False)))
                continue
            begin, inline = texts.tell(), self._role_of(node) == "inline"
            inner = self._marks(_content(node), texts) if inline else ()
            marks.append(Mark(begin, texts.tell(), (node, inline), inner))
        return tuple(marks)

    def _role_of(self, node: Any) -> Role:
        return self._role(node) if isinstance(node.tag, str) else "point"  # comments and the like

    def _broken(self, node: Any) -> bool:
        roles = [(child, self._role_of(child)) for child in node]
        return any(role == "break" or (role == "inline" and self._broken(child)) for child, role in roles)


def _content(element: Any) -> list[Any]:
    """Texts and elements in order."""
    found: list[Any] = [element.text or ""]
    for child in element:
        found += [child, child.tail or ""]
    return [one for one in found if not isinstance(one, str) or one]


def _whole_messages(run: list[Any]) -> list[Any]:
    """A run in which a placeholder with elements inside, such as an ICU message, is a list of nodes."""
    ends = [0, *accumulate(len(node if isinstance(node, str) else "".join(node.itertext())) for node in run)]
    whole = "".join(node if isinstance(node, str) else "".join(node.itertext()) for node in run)
    found, place = list[Any](), 0
    for begin, end in spans(whole):
        first = next(number for number, at in enumerate(ends[1:]) if begin < at)
        last = next(number for number, at in enumerate(ends[1:]) if end <= at)
        if first == last or not (isinstance(run[first], str) and isinstance(run[last], str)):
            continue
        before, after = run[first][: begin - ends[first]], run[last][end - ends[last] :]
        found += [*run[place:first], before, [run[first][begin - ends[first] :], *run[first + 1 : last]]]
        found[-1].append(run[last][: end - ends[last]])
        run[last], ends[last], place = after, end, last
    return [one for one in [*found, *run[place:]] if one != ""]


def _nodes(parts: Sequence[str | Laid]) -> list[Any]:
    """A translation as texts and elements."""
    found: list[Any] = []
    for part in parts:
        if isinstance(part, Laid):
            node, inline = part.what
            if inline:
                fill_element(node, _nodes(part.inner))
            found += node if isinstance(node, list) else [node]
        else:
            found.append(part)
    return found


def fill_element(element: Any, parts: Sequence[Any]) -> None:
    """Make texts and elements the content of an element."""
    for child in list(element):
        element.remove(child)
    element.text = None
    last = None
    for part in parts:
        if not isinstance(part, str):
            part.tail = None
            element.append(part)
            last = part
        elif last is None:
            element.text = (element.text or "") + part
        else:
            last.tail = (last.tail or "") + part
