"""The baseline of a tagger: each word's most frequent tag; for an unknown word, that of its ending.

Read next: naive_bayes.py, the baseline of a classifier.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from weft.errors import DataError

LONGEST = 5
"""Letters of an ending."""


class MostFrequentTag:
    """Tags by counts.

    A word that was seen has the tag it had most often. One that was not has that of the rare words
    (seen `rare` times at most) with the same ending of 5, 4, .. 1 letters and the same kind of first
    letter (capital or not); one with no such ending has the most frequent tag of all rare words. Of equals
    the tag that was seen first.

    Args:
        examples: sentences, words and tags.
        rare: how often a rare word stands at most.

    Raises:
        DataError: no word.

    Example:
        >>> lowest = MostFrequentTag([(["the", "walking"], ["DET", "VERB"])])
        >>> lowest.tag(["the", "talking"])
        ['DET', 'VERB']
    """

    def __init__(self, examples: Iterable[tuple[Sequence[str], Sequence[str]]], *, rare: int = 10) -> None:
        seen: dict[str, Counter[str]] = defaultdict(Counter)
        for words, tags in examples:
            for word, tag in zip(words, tags, strict=True):
                seen[word][tag] += 1
        if not seen:
            raise DataError("baseline: expected at least 1 tagged word, got 0")
        endings: dict[tuple[str, bool], Counter[str]] = defaultdict(Counter)
        for word, counts in seen.items():
            if counts.total() <= rare:
                for key in _endings(word):
                    endings[key].update(counts)
        self.words = {word: counts.most_common(1)[0][0] for word, counts in seen.items()}
        self.endings = {key: counts.most_common(1)[0][0] for key, counts in endings.items()}
        everything = sum((counts for counts in seen.values()), Counter())
        self.most = everything.most_common(1)[0][0]

    def tag(self, words: Sequence[str]) -> list[str]:
        """One tag for each word."""
        return [self.words.get(word) or self._unknown(word) for word in words]

    def _unknown(self, word: str) -> str:
        return next((self.endings[key] for key in _endings(word) if key in self.endings), self.most)


def _endings(word: str) -> list[tuple[str, bool]]:
    """Longest first; the last, empty one is every word's."""
    capital = word[:1].isupper()
    return [(word[len(word) - size :].lower(), capital) for size in range(min(LONGEST, len(word)), -1, -1)]
