"""Characters: normal forms as specified by Unicode, and which ones a vocabulary can read, in which form."""

import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.slow import leading
from weft.errors import ConfigError
from weft.importing.kits.vocabularies import TokenList, special_of
from weft.tasks.seq2seq.translator import kept_parts
from weft.text.characters import FORMS, Alphabet, named, normalise
from weft.text.vocabulary import UNK, Vocabulary


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


LETTERS = "abcdefghijklmnopqrstuvwxyzé'\"-,.0123456789"
SHAPES = {
    "a curly apostrophe": ("don’t", "don't"),
    "curly quotes and a dash": ("“a” – b", '"a" - b'),
    "a ligature": ("ﬁle", "file"),
    "wide letters": ("ａｂ１", "ab1"),
    "a soft hyphen": ("but\u00adton", "button"),
    "a byte order mark and marks of direction": ("\ufeffa\u200e b\u200f", "a b"),
    "a zero-width space": ("a\u200bb", "ab"),
    "a decomposed letter": ("cafe\u0301", "café"),
    "a capital": ("Café", "café"),
    "spaces": ("a\u00a0b\u2009c\u202fd", "a\u00a0b\u2009c\u202fd"),
    "three dots": ("a…", "a..."),
}
KEPT = {
    "an emoji": ("a 🙂", ["🙂"]),
    "an emoji of several, as one": ("👩‍👩‍👧 a", ["👩‍👩‍👧"]),
    "a flag and a keycap": ("🇩🇪 1️⃣", ["🇩🇪", "1️⃣"]),
    "a variation": ("❤️", ["❤️"]),
    "other scripts": ("北京 a", ["北", "京"]),
    "a fraction is not its figures": ("½ a²", ["½", "²"]),
    "a letter with a foreign accent": ("ač", ["č"]),
    "half a surrogate pair": ("a\ud83d", ["\ud83d"]),
    "a control character": ("a\x07", ["\x07"]),
    "a dotless i": ("ı", ["ı"]),
}


@pytest.mark.parametrize(("text", "form"), SHAPES.values(), ids=SHAPES)
def test_what_is_lacking_is_read_in_another_form(text: str, form: str) -> None:
    alphabet = Alphabet(LETTERS)
    assert alphabet.readable(text) == form
    assert alphabet.lacking(text) == []
    assert alphabet.readable(form) == form


@pytest.mark.parametrize(("text", "lacking"), KEPT.values(), ids=KEPT)
def test_what_has_no_other_form_is_named_with_its_marks(text: str, lacking: list[str]) -> None:
    alphabet = Alphabet(LETTERS)
    assert [text[begin:end] for begin, end in alphabet.lacking(text)] == lacking
    assert alphabet.unknown(text) == lacking


@pytest.mark.parametrize("kind", ["word", "character", "bpe", "unigram"])
def test_a_vocabulary_lacks_the_characters_that_become_unknown(kind: str) -> None:
    lines = ["the cat sat, the été"] * 3
    size = len(set("".join(lines))) + 5 if kind in ("bpe", "unigram") else None
    vocabulary = Vocabulary.train(lines, kind=kind, size=size)
    assert vocabulary.alphabet.unknown("the 🙂 cat é e\u0301") == ["🙂"]
    assert (UNK in vocabulary.encode("the 🙂")) and UNK not in vocabulary.encode("the cat e\u0301t\u00e9")
    lower = Vocabulary.train(lines, kind=kind, size=size, lowercase=True)
    assert lower.alphabet.unknown("THE CAT É") == []
    assert vocabulary.alphabet.has_letters
    assert not Vocabulary.train(["3 1 4"], kind="word", size=None).alphabet.has_letters


def test_an_imported_list_of_words_reads_the_letters_of_its_words() -> None:
    tokens = ["<s>", "<pad>", "</s>", "<unk>", "the", "cat"]
    numbers = special_of(tokens, ["<pad>", "<unk>", "<s>", "</s>"])
    words = TokenList(tokens, numbers, True, {"type": "Lowercase"}).words().vocabulary
    assert words.encode("the cat teeth").count(UNK) == 1
    assert words.alphabet.unknown("The cat TEETH 🙂 <") == ["🙂", "<"]


def test_an_imported_vocabulary_reads_letters_that_it_has_only_inside_words(tmp_path: Path) -> None:
    (tmp_path / "codes").write_text("#version: 0.2\na x\nt e</w>\n")
    tokens = ["<s>", "<pad>", "</s>", "<unk>", "ax@@", "x@@", "te", "a@@", "t@@", "e"]
    numbers = special_of(tokens, ["<pad>", "<unk>", "<s>", "</s>"])
    pieces = TokenList(tokens, numbers, True).codes(tmp_path / "codes").vocabulary
    assert UNK not in pieces.encode("axxte") and UNK in pieces.encode("x")
    assert pieces.alphabet.lacking("axxte") == [] and pieces.alphabet.lacking("te z") == [(3, 4)]


def test_a_number_with_a_point_is_kept_whole() -> None:
    line = "pi is 3.14, or 3 14."
    assert [line[slice(*one)] for one in kept_parts(line, Alphabet("pisor.,")).unknown] == ["3.14", "3", "14"]


def test_a_message_names_a_few_characters() -> None:
    assert named(["🙂", "🙂", "\x07"]) == "🙂 U+0007"
    assert named([chr(0x4E00 + n) for n in range(13)]).endswith("and 3 more")
