r"""The words of a text, in every script, by Unicode's character properties.

Python's `\w` has no combining marks: for it a Hindi word ends at a vowel sign, a decomposed é at its accent.
Read next: text/pieces.py, how vocabularies cut texts.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from typing import Literal

import regex

LETTERS = r"[\p{L}\p{M}\p{N}]"  # a character of a word, for patterns of the package `regex`

_NAMES = (
    "Han Hiragana Katakana Bopomofo Yi Thai Lao Khmer Myanmar Tibetan Tai_Le New_Tai_Lue Tai_Tham Tai_Viet "
    "Javanese Balinese"
)
_UNSPACED = "".join(["[ー", *(rf"\p{{{name}}}" for name in _NAMES.split()), "]"])
"""A sign of a script without spaces between words."""

_THAI = "\u0e01"  # no such script comes before it in Unicode
_UNITS = regex.compile(rf"(?V1){_UNSPACED}[\p{{M}}\p{{Cf}}]*+|[^\s\x1c-\x1f{_UNSPACED}]++")
_SCRIPTS = regex.compile(
    r"(?P<han>\p{Han})|(?P<kana>[\p{Hiragana}\p{Katakana}ー])|(?P<korean>\p{Hangul})|"
    rf"(?P<other>{_UNSPACED})"
)
# Katakana end where other signs begin, and Tibetan marks its syllables; other signs are words by themselves.
_APART = rf"[{_UNSPACED}--[\p{{Katakana}}ー\p{{Tibetan}}]]"
_INSIDE = r"[\p{L}\p{M}\p{N}_\p{Cf}--\u200b]"  # joiners and soft hyphens too, but no zero-width space
_WORD = regex.compile(
    rf"(?V1)[[\p{{L}}\p{{N}}_]--{_APART}][{_INSIDE}--{_APART}]*+|(?![\s\x1c-\x1f\p{{Cf}}])\X"
)
_PLAIN = re.compile(r"\w+|[^\w\s]")
_UNSEEN = regex.compile(r"\p{Cf}")
_QUOTES = str.maketrans("’‘‛", "'''")


def spans(text: str) -> list[tuple[int, int]]:
    """Where the words of a text are, and its other characters, such as punctuation, one by one."""
    return [found.span() for found in (_PLAIN if text.isascii() else _WORD).finditer(text)]


def words(text: str) -> list[str]:
    """The words of a text, and its other characters one by one."""
    found: list[str] = (_PLAIN if text.isascii() else _WORD).findall(text)
    return found


Writing = Literal["spaced", "korean", "chinese", "japanese", "unspaced"]


def writing(texts: Iterable[str]) -> Writing:
    """How texts show where a word ends, by the scripts of their letters.

    Scripts without spaces between words, such as Han, Thai and Khmer, decide from a fifth of all letters on:
    they need fewer letters, so that a text of as many Chinese as English words is a quarter Han. Among their
    letters a tenth of kana makes a text Japanese. A text is Korean from a fifth of all letters on.
    """
    characters: Counter[str] = Counter()
    for text in texts:
        characters.update(text)
    letters: Counter[str | None] = Counter()
    for character, count in characters.items():
        if character.isalpha():
            found = _SCRIPTS.match(character)
            letters[found and found.lastgroup] += count
    enough = letters.total() / 5
    east = letters["han"] + letters["kana"]
    if 0 < enough <= east + letters["other"]:
        if letters["other"] > east:
            return "unspaced"
        return "japanese" if 10 * letters["kana"] >= east else "chinese"
    return "korean" if 0 < enough <= letters["korean"] else "spaced"


def spaced(texts: Iterable[str]) -> bool:
    """Whether texts have spaces between words; see `writing`."""
    return writing(texts) in ("spaced", "korean")


def unit_of(texts: Iterable[str]) -> Literal["word", "character"]:
    """What `units` of these texts mostly are."""
    return "word" if spaced(texts) else "character"


def units(text: str) -> list[str]:
    """What the length of a text counts: words between spaces, and the signs of scripts without spaces."""
    if text.isascii() or max(text) < _THAI:
        return text.split()
    found: list[str] = _UNITS.findall(text)
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


def base(code: str) -> str:
    """A language code without script and region, in lower case: pt of pt-BR, zh of zh_Hans."""
    return code.replace("_", "-").partition("-")[0].lower()
