"""Normalisation: as specified by Unicode and the docstring."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.slow import leading
from weft.errors import ConfigError
from weft.text.normalise import FORMS, normalise


@pytest.mark.parametrize(
    ("raw", "settings", "clean"),
    [
        ("  a \t b\u00a0c\r\n", {}, "a b c"),
        ("e\u0301", {}, "\u00e9"),
        ("e\u0301", {"form": "none"}, "e\u0301"),
        ("\ufb01n \uff21\u00b2", {}, "\ufb01n \uff21\u00b2"),
        ("\ufb01n \uff21\u00b2", {"form": "nfkc"}, "fin A2"),
        ("ÉTÉ Straße", {"lowercase": True}, "été straße"),
        (
            "\u0130\u0327",
            {"lowercase": True},
            "i\u0327\u0307",
        ),  # the lower case has its marks in another order
        ("line\u2028separator\x0cfeed\x85next", {}, "line separator feed next"),
        ("", {}, ""),
        (" \u3000 ", {}, ""),
    ],
)
def test_known_spellings(raw: str, settings: dict, clean: str) -> None:
    assert normalise(raw, **settings) == clean


@given(text=st.text(), form=st.sampled_from(FORMS), lowercase=st.booleans())
def test_twice_is_once(text: str, form: str, lowercase: bool) -> None:
    once = normalise(text, form=form, lowercase=lowercase)
    assert normalise(once, form=form, lowercase=lowercase) == once


@pytest.mark.parametrize("form", leading(FORMS))
def test_twice_is_once_for_every_symbol_of_unicode(form: str) -> None:
    marks = [
        chr(code)
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code)) not in ("Cs", "Cn", "Co")
    ]
    for lowercase in (False, True):
        once = [normalise(mark, form=form, lowercase=lowercase) for mark in marks]
        assert [normalise(mark, form=form, lowercase=lowercase) for mark in once] == once


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(ConfigError, match="normalisation 'nfx' is unknown; choose one of nfc, nfkc, none"):
        normalise("a", form="nfx")
