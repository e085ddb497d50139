"""Tokenisation of captions close to COCO's evaluation, without its Java: lower case, no punctuation.

In scripts without spaces between words each sign counts as a word.

Read next: bleu.py, rouge_n.py, cider.py.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import regex

from weft.errors import DataError
from weft.metrics.metric import check_each, check_items
from weft.wording import kind_of
from weft.words import LETTERS, spaced, units

_PART = rf"(?:{LETTERS}|_)+"
_WORD = regex.compile(rf"{_PART}(?:[-']{_PART})*")


class CaptionWords(NamedTuple):
    """How captions are cut."""

    spaced: bool  # whether there are spaces between words; if not, each sign counts as a word

    def cut(self, caption: str) -> list[str]:
        """The words of a caption."""
        found: list[str] = _WORD.findall(caption.lower())
        return found if self.spaced else [unit for word in found for unit in units(word)]

    @property
    def signature(self) -> str:
        """The part of a signature that names the tokenisation."""
        return f"tok:{'words' if self.spaced else 'characters'}.lower.nosigns"


def words_of(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> CaptionWords:
    """How captions with these references are cut; checks both."""
    check_items(hypotheses, references, reads=("labels",))
    check_each("hypotheses", hypotheses)
    for place, several in enumerate(references):
        if isinstance(several, str) or not several:
            raise DataError(
                "references: expected a list of one or more texts for each caption, "
                f"got {kind_of(several)} at {place}"
            )
    return CaptionWords(spaced(chain.from_iterable(references)))


def grams(caption: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    """How often each n-gram of words occurs in a caption."""
    return Counter(tuple(caption[at : at + n]) for at in range(len(caption) - n + 1))
