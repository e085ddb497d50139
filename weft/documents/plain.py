"""Plain text as segments: one for each line. Read next: ../text/segments.py."""

import re
from collections.abc import Sequence

from weft.text.segments import Segment, WrittenSentence

_END = re.compile(r"(\r\n|\n|\r)")


class Plain:
    r"""A text; line ends are kept.

    Example:
        >>> text = Plain("one\r\n\ntwo")
        >>> [one.text for one in text.segments]
        ['one', '', 'two']
        >>> text.written([WrittenSentence("uno"), WrittenSentence(""), WrittenSentence("dos")])
        'uno\r\n\ndos'
    """

    def __init__(self, text: str) -> None:
        self._parts = _END.split(text)
        self.segments = [Segment(line) for line in self._parts[::2]]

    def written(self, found: Sequence[WrittenSentence]) -> str:
        """The text with the translations of its lines."""
        parts = list(self._parts)
        parts[::2] = [one.text for one in found]
        return "".join(parts)
