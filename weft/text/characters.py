"""Characters of a text: their Unicode form, case and white space, and which a vocabulary can read.

A vocabulary encodes normalised text, and `decode` returns it. Read next: vocabulary.py.
"""

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import regex

from weft.errors import ConfigError

FORMS = ("nfc", "nfkc", "none")


def normalise(text: str, *, form: str = "nfc", lowercase: bool = False) -> str:
    """The text in one Unicode form, with runs of white space replaced by one space and stripped at the ends.

    Normalising twice changes nothing. Source: Unicode Standard Annex 15.
    """
    if form not in FORMS:
        raise ConfigError(f"normalisation {form!r} is unknown; choose one of {', '.join(FORMS)}")
    return " ".join(words_of(text, form=form, lowercase=lowercase))


def words_of(text: str, *, form: str, lowercase: bool) -> list[str]:
    """normalise(text).split(" "), or [] for an empty text; the form must be valid."""
    text = in_form(text, form)
    if lowercase:
        text = in_form(text.lower(), form)  # lower-casing İ with a cedilla breaks the form
    return text.split()


def in_form(text: str, form: str) -> str:
    """The text in the Unicode form "nfc" or "nfkc"; unchanged for any other name."""
    if form == "nfc":
        return unicodedata.normalize("NFC", text)
    return unicodedata.normalize("NFKC", text) if form == "nfkc" else text


_CLUSTER = regex.compile(r"\X")
_INVISIBLE = regex.compile(r"\p{Cf}|\p{Variation_Selector}")  # soft hyphens, joiners, marks of direction
_PLAIN = str.maketrans("’‘‚‛′“”„‟″‐‑‒–—―−", "'''''\"\"\"\"\"-------")
_FORMS: tuple[Literal["NFC", "NFD", "NFKC"], ...] = ("NFC", "NFD", "NFKC")
SHOWN = 10  # characters that a message names


def no_symbol(text: str) -> str:
    """The symbol that a text begins with, of a vocabulary without symbols: none."""
    return ""


class Alphabet:
    """The characters that a vocabulary can read; `has_letters` is false of a vocabulary of numbers.

    `shaped` normalises a text as the vocabulary does. `reads` tells whether it reads a character that is not
    known. `symbol` returns the start of a text that is one symbol, such as >>spa<<, or "".
    """

    def __init__(
        self,
        known: Iterable[str],
        *,
        shaped: Callable[[str], str] | None = None,
        reads: Callable[[str], bool] | None = None,
        symbol: Callable[[str], str] | None = None,
    ) -> None:
        self._known = {*known, " "}
        self.has_letters = reads is not None or any(map(str.isalpha, self._known))
        self._unknown: set[str] = set()
        self._shaped = shaped or str
        self._reads = reads
        self._symbol = symbol or no_symbol

    def lacking(self, text: str) -> list[tuple[int, int]]:
        """Where the characters are that it cannot read, in no form, each with its combining marks."""
        if self._known.issuperset(text):
            return []
        found = _CLUSTER.finditer(text, len(self._symbol(text)))
        return [one.span() for one in found if self._form(one.group()) is None]

    def unknown(self, text: str) -> list[str]:
        """The characters that it cannot read as they are."""
        if self._known.issuperset(text):
            return []
        return [one for one in _CLUSTER.findall(text, len(self._symbol(text))) if not self._has(one)]

    def readable(self, text: str) -> str:
        """The text with other forms of what it cannot read, such as plain quotes, dashes and lower case.

        Invisible characters that it cannot read are left out.
        """
        if self._known.issuperset(text):
            return text
        symbol = self._symbol(text)
        found = ((self._form(cluster), cluster) for cluster in _CLUSTER.findall(text, len(symbol)))
        return symbol + "".join(cluster if form is None else form for form, cluster in found)

    def _form(self, cluster: str) -> str | None:
        """A form of a character that it can read: itself if possible."""
        if self._has(cluster):
            return cluster
        seen, plain = _INVISIBLE.sub("", cluster), cluster.translate(_PLAIN)
        for other in (seen, plain, cluster.lower(), cluster.upper()):
            for form in _FORMS if _decorated(cluster) else _FORMS[:2]:
                found = unicodedata.normalize(form, other)
                if found != cluster and self._has(found):
                    return found
        return None

    def _has(self, cluster: str) -> bool:
        if self._known.issuperset(cluster):
            return True
        found = all(map(self._has_character, self._shaped(cluster)))
        if found and len(cluster) == 1:
            self._known.add(cluster)
        return found

    def _has_character(self, character: str) -> bool:
        if character in self._known or character.isspace():
            return True
        if self._reads is None or character in self._unknown or "\ud800" <= character <= "\udfff":
            return False
        (self._known if self._reads(character) else self._unknown).add(character)
        return character in self._known


def _decorated(cluster: str) -> bool:
    """Whether it is another character in a ligature or of another width; ½ and ² are not."""
    kind = unicodedata.decomposition(cluster[0]).partition(">")[0]
    return kind[1:] not in ("fraction", "super", "sub", "circle", "square", "vertical")


def named(characters: Sequence[str]) -> str:
    """Characters for a message, each once: at most SHOWN, those that cannot be seen by number."""
    each = list(dict.fromkeys(characters))
    shown = " ".join(
        one if one.isprintable() else " ".join(f"U+{ord(mark):04X}" for mark in one) for one in each[:SHOWN]
    )
    return shown if len(each) <= SHOWN else f"{shown} and {len(each) - SHOWN:,} more"
