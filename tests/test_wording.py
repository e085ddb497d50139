"""Text from files cannot control a terminal; names that are close; words and units of scripts."""

import io
import sys

import pytest

from weft.errors import DataError
from weft.wording import beneath, close_name, shown, visible
from weft.words import spaced, unit_of, units, words, writing


class Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("a\tb\n", "a\tb\n"),
        ("žluťoučký 中文 \u200f", "žluťoučký 中文 \u200f"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\x9b2J\x7f", "\\x9b2J\\x7f"),
        ("over\rwritten", "over\\rwritten"),
        ("\u202etxt", "\\u202etxt"),
        ("half \ud800", "half \\ud800"),
    ],
)
def test_control_characters_are_escapes_and_letters_stay(text: str, seen: str) -> None:
    assert visible(text) == seen
    assert str(DataError(text)) == seen.replace("\n", "\\n")


def streams(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> tuple[io.BytesIO, io.BytesIO]:
    out, err = io.BytesIO(), io.BytesIO()
    kind = Terminal if terminal else io.TextIOWrapper
    monkeypatch.setattr(sys, "stdout", kind(out, encoding="utf-8"))
    monkeypatch.setattr(sys, "stderr", kind(err, encoding="utf-8"))
    return out, err


@pytest.mark.parametrize("terminal", [True, False])
def test_a_pipe_gets_data_and_a_terminal_what_can_be_seen(
    terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, err = streams(terminal, monkeypatch)
    before = sys.stdout, sys.stderr
    with shown():
        print("\x1b]0;x\x07")
        print("\x1b]0;x\x07", file=sys.stderr)
        print("\x1b[1mown colours", file=beneath(sys.stderr), flush=True)
    assert (sys.stdout, sys.stderr) == before
    sys.stdout.flush()
    seen = b"\\x1b]0;x\\x07\n"
    assert out.getvalue() == (seen if terminal else b"\x1b]0;x\x07\n")
    assert sorted([seen, b"\x1b[1mown colours\n"]) == sorted(err.getvalue().splitlines(keepends=True))


def test_streams_can_be_used_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    out, err = streams(True, monkeypatch)
    with shown():
        print("one")
    print("two", flush=True)
    print("three", file=sys.stderr, flush=True)
    assert (out.getvalue(), err.getvalue()) == (b"one\ntwo\n", b"three\n")


def test_only_a_name_that_is_close_or_begins_alike_is_suggested() -> None:
    assert close_name("temp", ["timestamp"]) == ""
    assert close_name("temp", ["time", "temperature"]) == "temperature"
    assert close_name("LSTN", ["gru", "lstm"]) == "lstm" and close_name("q", ["query"]) == ""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("I like tea.", "spaced"),
        ("Я люблю чай.", "spaced"),
        ("ខ្ញុំចូលចិត្តតែ", "unspaced"),
        ("ຂ້ອຍມັກຊາ", "unspaced"),
        ("ကျွန်တော်လက်ဖက်ရည်ကြိုက်တယ်", "unspaced"),
        ("ང་ཇ་འཐུང་རྒྱུར་དགའ་པོ་ཡོད།", "unspaced"),
        ("我喜歡喝茶", "chinese"),
        ("コーヒーを飲む", "japanese"),
        ("データベース", "japanese"),
        ("나는 차를 좋아한다", "korean"),
        ("打开 Word 设置", "chinese"),
        ("我说の吗？我们今天去公园看书喝茶，然后回家睡觉。", "chinese"),  # some kana are no Japanese
        ("2026-11-28 = 12 %", "spaced"),
        ("", "spaced"),
    ],
)
def test_the_script_shows_whether_words_have_spaces(text: str, found: str) -> None:
    assert writing([text]) == found
    assert spaced([text]) == (found in ("spaced", "korean"))
    assert unit_of([text]) == ("word" if spaced([text]) else "character")


def test_units_are_words_between_spaces_and_signs_of_scripts_without() -> None:
    for text in (
        "Grüße aus\u2028Köln\x1cund\xa0 Łódź\x85 b",
        "मैंने चाय पी।",
        "나는 차를",
        "а б\tв",
        " ",
        "a\u3000“b”",
    ):
        assert units(text) == text.split()
    assert units("我用iPhone 手机。") == ["我", "用", "iPhone", "手", "机", "。"]
    assert units("ที่นี่") == ["ที่", "นี่"]  # a sign with its marks
    assert units("ខ្ញុំ\u200bទៅ") == ["ខ្", "ញុំ\u200b", "ទៅ"]  # a zero-width space is no unit


def test_words_keep_katakana_and_tibetan_syllables_whole() -> None:
    assert words("カード番号") == ["カード", "番", "号"]
    assert words("བོད་སྐད") == ["བོད", "་", "སྐད"]
