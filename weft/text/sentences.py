"""Texts and segments as sentences and the white space between them, so that translations keep the spacing.

Where a sentence ends is decided by sentencex (Wikimedia), which knows the abbreviations of many languages.
Read next: segments.py.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from weft.errors import library
from weft.text.kept import unbroken
from weft.text.segments import Segment, Sentence, WrittenSentence, together
from weft.words import base

UNSPACED = {"zh", "zho", "cmn", "yue", "ja", "jpn", "th", "tha", "lo", "lao", "km", "khm", "my", "mya"}
"""Languages that are written without a space between sentences."""

WINDOW = 8000  # characters that are split together; a sentence of more may be cut there

QUOTE = 1000
"""Characters at the end of a window that are split again with the next: a quotation may continue there."""


class SplitText(NamedTuple):
    """The sentences of a text without the white space around them."""

    texts: list[str]
    between: list[str]  # white space before, between and after them: one more than sentences

    def joined(self, translations: Sequence[str], target: str) -> str:
        """The translations with the white space of the text.

        A language with spaces gets one where the source needs none, as between two Chinese sentences.
        """
        gaps = self.gaps(translations, target)
        parts = [gaps[0]]
        for translation, gap in zip(translations, gaps[1:], strict=True):
            parts += [translation, gap]
        return "".join(parts)

    def gaps(self, translations: Sequence[str], target: str) -> list[str]:
        """The white space before, between and after the translations; see `joined`."""
        spaced = base(target) not in UNSPACED
        last = len(self.texts)
        return [
            " "
            if spaced and not gap and 0 < place < last and all(translations[place - 1 : place + 1])
            else gap
            for place, gap in enumerate(self.between)
        ]


def split(text: str, language: str) -> SplitText:
    r"""The sentences of a text."""
    if not text.strip():
        return SplitText([], [text])
    texts: list[str] = []
    between = [""]
    for part in _parts(text, base(language)):
        bare = part.strip()
        if not bare:
            between[-1] += part
            continue
        begin = part.index(bare)
        between[-1] += part[:begin]
        between.append(part[begin + len(bare) :])
        texts.append(bare)
    return SplitText(texts, between)


def _parts(text: str, language: str) -> Iterator[str]:
    """What the library splits, in windows, as it looks back from each end of a sentence to the beginning."""
    rest, begin = "", 0
    while begin < len(text):
        found = splitter().segment(language, rest + text[begin : begin + WINDOW])
        begin += WINDOW
        sure, again = len(found), 0
        while begin < len(text) and sure and again < QUOTE:
            sure -= 1
            again += len(found[sure])
        if again > WINDOW:
            sure = len(found)
        yield from found[:sure]
        rest = "".join(found[sure:])
    if rest:
        yield rest


def splitter() -> Any:
    """The library that splits."""
    return library("sentencex", "documents", "splitting a text into sentences")


class DocumentPlan:
    r"""The sentences of segments."""

    def __init__(self, segments: Sequence[Segment], source: str, target: str) -> None:
        self._target = target
        self._segments = segments
        self._cut = [split(one.text, source) for one in segments]
        self.sentences = [
            Sentence(text, bool(segment.marks))
            for segment, cut in zip(segments, self._cut, strict=True)
            for text in cut.texts
        ]

    def joined(self, found: Sequence[WrittenSentence]) -> list[WrittenSentence]:
        """The translation of each segment."""
        rest = iter(found)
        return [self._one(segment, cut, rest) for segment, cut in zip(self._segments, self._cut, strict=True)]

    def _one(self, segment: Segment, cut: SplitText, rest: Iterator[WrittenSentence]) -> WrittenSentence:
        written = [next(rest) for _ in cut.texts]
        gaps = cut.gaps([one.text for one in written], self._target)
        text, parts, begin = gaps[0], [], len(cut.between[0])
        for number, one in enumerate(written):
            if one.links is not None:
                parts.append((one.links, begin, len(text)))
            text += one.text + gaps[number + 1]
            begin += len(cut.texts[number]) + len(cut.between[number + 1])
        return unbroken(WrittenSentence(text, together(parts) if segment.marks else None))
