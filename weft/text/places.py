"""Where each piece of a text begins in it, although the vocabulary encodes the normalised text.

Read next: normalise.py; vocabulary.py.
"""

import re
import unicodedata
from collections.abc import Iterator

from weft.text.normalise import in_form


def begins(text: str, words: list[list[int]], *, form: str, lowercase: bool) -> list[int]:
    r"""The place of each piece's first character; spaces belong to the piece after them.

    Args:
        text: as it was given.
        words: for each word of the normalised text, the place in it where each piece begins; -1 for the space
            before the word.
        form, lowercase: see `normalise`.

    Example:
        >>> begins("e\u0301te\u0301,  oui", [[-1, 3], [-1, 1]], form="nfc", lowercase=False)
        [0, 5, 6, 9]
    """
    normal, origins = _origins(text, form=form, lowercase=lowercase)
    found: list[int] = []
    end = 0
    for word, places in zip(re.finditer(r"\S+", normal), words, strict=True):
        found += [end if place < 0 else origins[word.start() + place] for place in places]
        end = origins[word.end()]
    return [0, *found[1:]] if found else []


def _origins(text: str, *, form: str, lowercase: bool) -> tuple[str, list[int]]:
    """The normalised text, and for each of its characters, and its end, a place in the text."""
    parts: list[str] = []
    origins: list[int] = []
    for begin, end in _clusters(text, form):
        part = in_form(text[begin:end], form)
        part = in_form(part.lower(), form) if lowercase else part
        parts.append(part)
        origins += [begin] * len(part)
    return "".join(parts), [*origins, len(text)]


def _clusters(text: str, form: str) -> Iterator[tuple[int, int]]:
    """Parts of a text that are normalised without regard to each other."""
    begin = 0
    for place in range(1, len(text)):
        mark = text[place]
        if mark.isascii():
            apart = True
        elif unicodedata.combining(in_form(mark, form)[0]):  # an accent
            apart = False
        else:  # letters that unite, such as those of a Korean syllable
            so_far = text[begin:place]
            apart = in_form(so_far + mark, form) == in_form(so_far, form) + in_form(mark, form)
        if apart:
            yield begin, place
            begin = place
    if text:
        yield begin, len(text)
