"""Words of captions as COCO's evaluation cuts them, near enough, without its Java: small letters, no signs.

Read next: bleu_n.py, rouge.py, cider.py.
"""

import re
from collections import Counter
from collections.abc import Sequence

_WORD = re.compile(r"\w+(?:[-']\w+)*")
SIGNATURE = "tok:words.lower.nosigns"


def words(caption: str) -> list[str]:
    """The words of a caption.

    Example:
        >>> words("A man's dog -- it's red.")
        ['a', "man's", 'dog', "it's", 'red']
    """
    return _WORD.findall(caption.lower())


def grams(caption: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    """How often each sequence of n words stands in it."""
    return Counter(tuple(caption[at : at + n]) for at in range(len(caption) - n + 1))
