"""The sentences of segments, for a model, and the translations of the segments made of theirs.

Read next: sentences.py.
"""

from collections.abc import Iterator, Sequence

from weft.documents.links import together
from weft.documents.placeholders import unbroken
from weft.documents.segments import Segment, Sentence, WrittenSentence
from weft.documents.sentences import SplitText, split


class DocumentPlan:
    r"""The sentences of segments.

    Args:
        segments: of one document or several.
        source, target: language codes.

    Raises:
        ConfigError: no splitter is installed.

    Example:
        >>> plan = DocumentPlan([Segment(" It was. It is.\t"), Segment("")], "en", "es")
        >>> [one.text for one in plan.sentences]
        ['It was.', 'It is.']
        >>> [one.text for one in plan.joined([WrittenSentence("Fue."), WrittenSentence("Es.")])]
        [' Fue. Es.\t', '']
    """

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
        """The translation of each segment.

        Args:
            found: the translation of each sentence.
        """
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
