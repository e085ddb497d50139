"""Text normalisation: Unicode form, letter case, white space.

A vocabulary encodes normalised text, and `decode` returns it. Read next: vocabulary.py.
"""

import unicodedata

from weft.errors import ConfigError

FORMS = ("nfc", "nfkc", "none")


def normalise(text: str, *, form: str = "nfc", lowercase: bool = False) -> str:
    r"""The text in one Unicode form, with runs of white space replaced by one space and stripped at the ends.

    Normalising twice changes nothing.

    Source:
        Unicode Standard Annex 15.
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
