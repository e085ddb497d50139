r"""The words of a text, in every script, by Unicode's character properties.

Python's `\w` has no combining marks: for it a Hindi word ends at a vowel sign, a decomposed é at its accent.
Read next: text/pieces.py, how vocabularies cut texts.
"""

import re
import unicodedata

import regex

LETTERS = r"[\p{L}\p{M}\p{N}]"
"""A character of a word, for patterns of the package `regex`."""

# Scripts without spaces between words: each of their signs, with its marks, counts as a word.
_APART = r"[\p{Han}\p{Hiragana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
_INSIDE = r"[\p{L}\p{M}\p{N}_\p{Cf}--\u200b]"  # joiners and soft hyphens too, but no zero-width space
_WORD = regex.compile(
    rf"(?V1)[[\p{{L}}\p{{N}}_]--{_APART}][{_INSIDE}--{_APART}]*+|(?![\s\x1c-\x1f\p{{Cf}}])\X"
)
_PLAIN = re.compile(r"\w+|[^\w\s]")
_UNSEEN = regex.compile(r"\p{Cf}")
_QUOTES = str.maketrans("’‘‛", "'''")


def spans(text: str) -> list[tuple[int, int]]:
    """Where the words of a text are, and its other characters, such as punctuation, one by one.

    Example:
        >>> [("कला है, 👩‍🚒"[begin:end]) for begin, end in spans("कला है, 👩‍🚒")]
        ['कला', 'है', ',', '👩‍🚒']
    """
    return [found.span() for found in (_PLAIN if text.isascii() else _WORD).finditer(text)]


def words(text: str) -> list[str]:
    """The words of a text, and its other characters one by one.

    Example:
        >>> words("Don't go.")
        ['Don', "'", 't', 'go', '.']
    """
    found: list[str] = (_PLAIN if text.isascii() else _WORD).findall(text)
    return found


def folded(text: str) -> str:
    r"""A text to compare: case, Unicode form, kinds of quotes and invisible characters do not count.

    Example:
        >>> folded("ﬁle") == folded("FILE"), folded("e\u0301te\u0301") == folded("ÉTÉ")
        (True, True)
    """
    if text.isascii():
        return text.lower()
    shaped = unicodedata.normalize("NFKC", _UNSEEN.sub("", text.translate(_QUOTES)))
    return unicodedata.normalize("NFKC", shaped.casefold())
