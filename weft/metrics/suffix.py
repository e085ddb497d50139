"""The baseline for tagging: each word's most frequent tag, or that of its suffix if the word is unknown.

Read next: naive_bayes.py, the baseline for classification.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from weft.errors import DataError

LONGEST = 5
"""Length of the longest suffix, in letters."""


class MostFrequentTag:
    """Tag by counts from the training data.

    A known word gets its most frequent tag. An unknown word gets the most frequent tag of the rare words
    (seen at most `rare` times) that share its longest known suffix of 5, 4, .. 1 letters and begin with the
    same kind of letter (capital or not), or that of all rare words of that kind. Ties go to the tag seen
    first.
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
        """One tag per word."""
        return [self.words.get(word) or self._unknown(word) for word in words]

    def _unknown(self, word: str) -> str:
        return next((self.endings[key] for key in _endings(word) if key in self.endings), self.most)


def _endings(word: str) -> list[tuple[str, bool]]:
    """Suffixes of a word, longest first, ending with the empty one."""
    capital = word[:1].isupper()
    return [(word[len(word) - size :].lower(), capital) for size in range(min(LONGEST, len(word)), -1, -1)]
