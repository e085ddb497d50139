"""One spelling for one text: Unicode form, letter case, white space.

What is normalised is what a vocabulary sees, and what `decode` gives back. Read next: vocabulary.py.
"""

import unicodedata

from weft.errors import ConfigError

FORMS = ("nfc", "nfkc", "none")


def normalise(text: str, *, form: str = "nfc", lowercase: bool = False) -> str:
    r"""The text in one Unicode form, every run of white space one space, none at the ends.

    Doing it twice changes nothing.

    Args:
        text: any text; line ends count as white space.
        form: "nfc" (letter and accent one symbol), "nfkc" (also one form for wide letters, ligatures
            and superscripts: shorter, but not always what was written) or "none".
        lowercase: small letters only.

    Raises:
        ConfigError: an unknown form.

    Source:
        Unicode Standard Annex 15.

    Example:
        >>> normalise(" e\u0301te\u0301,\u00a0oui ")
        'été, oui'
    """
    if form not in FORMS:
        raise ConfigError(f"normalisation {form!r} is unknown; choose one of {', '.join(FORMS)}")
    return " ".join(words_of(text, form=form, lowercase=lowercase))


def words_of(text: str, *, form: str, lowercase: bool) -> list[str]:
    """normalise(text).split(" "), of an empty text nothing; the form must be a known one."""
    text = _in_form(text, form)
    if lowercase:
        text = _in_form(text.lower(), form)  # İ with a cedilla: its small letters leave the form
    return text.split()


def _in_form(text: str, form: str) -> str:
    if form == "nfc":
        return unicodedata.normalize("NFC", text)
    return unicodedata.normalize("NFKC", text) if form == "nfkc" else text
