"""Whether a text has spaces between words, by its script, and what its length counts."""

import pytest

from weft.words import spaced, unit_of, units, words, writing


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
