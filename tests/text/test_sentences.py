"""Sentences and the white space between them: nothing is lost, whatever the text."""

import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.slow import leading
from weft.documents.plain import Plain
from weft.errors import ConfigError
from weft.text.segments import WrittenSentence
from weft.text.sentences import DocumentPlan, split

pytest.importorskip("sentencex", reason="sentencex is not installed: pip install -e .[documents]")

TEXT = st.text(st.sampled_from("ab .!?\n\r\t\u3002\u00a0\u2028é") | st.characters(codec="utf-8"), max_size=40)


@given(TEXT, st.sampled_from(["en", "de", "zh", "xx", ""]))
def test_the_sentences_and_what_is_between_them_are_the_text(text: str, language: str) -> None:
    found = split(text, language)
    assert len(found.between) == len(found.texts) + 1
    parts = [found.between[0]]
    for sentence, gap in zip(found.texts, found.between[1:], strict=True):
        parts += [sentence, gap]
    assert "".join(parts) == text
    assert all(one == one.strip() != "" for one in found.texts)
    assert not "".join(found.between).strip()


@given(st.lists(TEXT, max_size=3))
def test_a_plan_joined_with_its_own_sentences_is_the_texts(texts: list[str]) -> None:
    for text in texts:
        document = Plain(text)
        plan = DocumentPlan(document.segments, "zh", "zh")  # no space is added between sentences without one
        assert document.written(plan.joined([WrittenSentence(one.text) for one in plan.sentences])) == text


def test_abbreviations_of_the_language_end_no_sentence() -> None:
    german = "Am 3. Mai kam Hr. Dr. Müller. Er ging."
    assert split(german, "de").texts == ["Am 3. Mai kam Hr. Dr. Müller.", "Er ging."]
    assert split("Dr. Smith left. He ran.", "EN").texts == ["Dr. Smith left.", "He ran."]


def test_a_space_comes_between_sentences_where_the_target_has_one() -> None:
    found = split("你好。再见。", "zh")
    assert found.texts == ["你好。", "再见。"]
    assert found.joined(["Hello.", "Bye."], "en") == "Hello. Bye."
    assert found.joined(["Hello.", ""], "en") == "Hello."
    assert found.joined(["こんにちは。", "さようなら。"], "ja") == "こんにちは。さようなら。"


def test_a_missing_splitter_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentencex", None)
    with pytest.raises(ConfigError, match=r"sentencex is not installed; pip install 'weft-seq\[documents\]'"):
        split("A. B.", "en")


@pytest.mark.parametrize("end", leading(["«a. ", '?"', "“a. ", "!»", "「a。"], 2))
def test_the_time_to_split_a_text_grows_with_it(end: str) -> None:
    def seconds(size: int) -> float:
        begun = time.process_time()
        split(end * (size // len(end)), "en")
        return time.process_time() - begun

    assert seconds(80_000) < 12 * seconds(16_000) + 0.05  # 25 times, if it were quadratic


def test_a_long_text_is_split_like_its_parts() -> None:
    part = "Dr. Li met her. “Three. Four,” he said. (Five. Six.) Why? It was 3.5, e.g. here. "
    few, many = split(part * 3, "en").texts, split(part * 300, "en").texts
    assert many == few[: len(few) // 3] * 300
    long = split("word " * 5000, "en")
    assert long.joined(long.texts, "en") == "word " * 5000
