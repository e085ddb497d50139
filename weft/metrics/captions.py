"""Tokenisation of captions close to COCO's evaluation, without its Java: lower case, no punctuation.

Read next: bleu.py, rouge_n.py, cider.py.
"""

from collections import Counter
from collections.abc import Sequence

import regex

from weft.words import LETTERS

_PART = rf"(?:{LETTERS}|_)+"
_WORD = regex.compile(rf"{_PART}(?:[-']{_PART})*")
SIGNATURE = "tok:words.lower.nosigns"


def words(caption: str) -> list[str]:
    """The words of a caption.

    Example:
        >>> words("A man's dog -- it's red.")
        ['a', "man's", 'dog', "it's", 'red']
    """
    found: list[str] = _WORD.findall(caption.lower())
    return found


def grams(caption: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    """How often each n-gram of words occurs in a caption."""
    return Counter(tuple(caption[at : at + n]) for at in range(len(caption) - n + 1))
