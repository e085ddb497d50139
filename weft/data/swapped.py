"""Find pairs with swapped sides: the source is in the target's language and vice versa.

A naive Bayes model learns each side's words from the first pairs, and each pair is judged without its own
words. Word lists of languages are needed only to detect that a whole text is swapped.
Read next: check.py; language_guess.py.
"""

from collections import Counter
from collections.abc import Iterator
from math import log

from weft.data.language_guess import code_of, share

LEARNT = 5_000
"""Number of pairs used to count words."""

SURE = 4.0
"""Evidence in nats for the other side's language that each side must show."""

FEW = 30
"""Fewer words than this are too few to tell a side's language."""


class SwappedPairs:
    """Word statistics of two sides, and the pairs that seem swapped.

    Args:
        source, target: names of the sides.
    """

    def __init__(self, source: str, target: str) -> None:
        self.source, self.target = source, target
        self._counts: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
        self._pending: list[tuple[int, set[str], set[str]]] = []
        self._learnt = False
        self._sizes = [1.0, 1.0]
        self._found: list[int] = []
        self._judged = 0

    def see(self, number: int, source: str, target: str) -> None:
        """Add one pair by its line number."""
        pair = set(source.lower().split()), set(target.lower().split())
        if self._learnt:
            self._judge(number, *pair, own=0)
            return
        self._pending.append((number, *pair))
        for counts, words in zip(self._counts, pair, strict=True):
            counts.update(words)
        if len(self._pending) >= LEARNT:
            self._settle()

    def end(self) -> tuple[list[int], int]:
        """End a text: the lines that seem swapped, and the number of pairs judged."""
        if not self._learnt:
            self._settle()
        found, judged = self._found, self._judged
        self._found, self._judged = [], 0
        return found, judged

    def names_swapped(self) -> bool:
        """Whether the sides of the first text are in each other's language, judging by their names."""
        codes = code_of(self.source), code_of(self.target)
        if codes[0] is None or codes[1] is None or codes[0] == codes[1]:
            return False
        if min(counts.total() for counts in self._counts) < FEW:
            return False
        first, second = self._counts
        named = share(first, codes[0]) + share(second, codes[1])
        other = share(first, codes[1]) + share(second, codes[0])
        return other > 0.2 and other > 2 * named

    def _settle(self) -> None:
        self._learnt = True
        self._sizes = [counts.total() + len(counts) / 2 + 1 for counts in self._counts]
        for number, source, target in self._pending:
            self._judge(number, source, target, own=1)
        self._pending.clear()

    def _judge(self, number: int, source: set[str], target: set[str], *, own: int) -> None:
        self._judged += 1
        left, right = source - target, target - source  # shared words are no evidence
        if sum(self._evidence(left, own, 0)) > SURE and sum(self._evidence(right, 0, own)) < -SURE:
            self._found.append(number)

    def _evidence(self, words: set[str], first: int, second: int) -> Iterator[float]:
        """Each word's evidence for the target side in nats; `first`, `second` are the pair's own counts."""
        for word in words:
            left, right = self._counts[0][word] - first, self._counts[1][word] - second
            if left or right:
                yield log((right + 0.5) / self._sizes[1]) - log((left + 0.5) / self._sizes[0])
