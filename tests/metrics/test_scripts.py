"""Scores in ten languages, with and without spaces between words, beside sacrebleu's own figures."""

import warnings
from typing import NamedTuple

import numpy as np
import pytest
import sacrebleu

from weft.errors import ConfigError
from weft.metrics import (
    Bleu,
    Cer,
    Chrf,
    Meteor,
    Metric,
    Rouge,
    SentenceBleu,
    Ter,
    Wer,
    compare,
    confidence,
    rouge_l,
)
from weft.metrics.bleu import installed, tokenizer_of
from weft.metrics.bylength import by_length
from weft.metrics.captions import bleu_n, cider_d
from weft.metrics.scored import of_lines, report, scored
from weft.words import writing


class Language(NamedTuple):
    """Two references, outputs that differ from them in a word, and outputs about something else."""

    tokenizer: str
    references: list[str]
    near: list[str]
    other: list[str]


LANGUAGES = {
    "zh": Language(
        "zh",
        ["我今天早上在公园里喝了一杯红茶。", "他们明天要坐火车去北京看朋友。"],
        ["我今天早上在公园里喝了一杯绿茶。", "他们明天要坐飞机去北京看朋友。"],
        ["请点击保存按钮。", "密码必须包含八个字符。"],
    ),
    "ja": Language(
        "ja-mecab" if installed("ja-mecab") else "char",
        ["私は今朝公園で紅茶を一杯飲みました。", "彼らは明日電車で東京へ行きます。"],
        ["私は今朝公園で緑茶を一杯飲みました。", "彼らは明日飛行機で東京へ行きます。"],
        ["保存ボタンを押してください。", "パスワードが短すぎます。"],
    ),
    "th": Language(
        "char",
        ["เมื่อเช้านี้ฉันดื่มชาแดงในสวน", "พรุ่งนี้พวกเขาจะนั่งรถไฟไปกรุงเทพ"],
        ["เมื่อเช้านี้ฉันดื่มชาเขียวในสวน", "พรุ่งนี้พวกเขาจะนั่งเครื่องบินไปกรุงเทพ"],
        ["กดปุ่มบันทึก", "รหัสผ่านสั้นเกินไป"],
    ),
    "ko": Language(
        "ko-mecab" if installed("ko-mecab") else "char",
        ["나는 오늘 아침에 공원에서 홍차를 마셨다.", "그들은 내일 아침에 기차로 서울에 간다."],
        ["나는 오늘 아침에 공원에서 녹차를 마셨다.", "그들은 내일 아침에 비행기로 서울에 간다."],
        ["저장 단추를 누르십시오.", "비밀번호가 너무 짧습니다."],
    ),
    "km": Language(
        "char",
        ["ព្រឹកនេះខ្ញុំផឹកតែក្រហមនៅសួន", "ស្អែកពួកគេនឹងជិះរថភ្លើងទៅភ្នំពេញ"],
        ["ព្រឹកនេះខ្ញុំផឹកតែបៃតងនៅសួន", "ស្អែកពួកគេនឹងជិះយន្តហោះទៅភ្នំពេញ"],
        ["ចុចប៊ូតុងរក្សាទុក", "ពាក្យសម្ងាត់ខ្លីពេក"],
    ),
    "hi": Language(
        "13a",
        ["मैंने आज सुबह बगीचे में लाल चाय पी।", "वे कल सुबह रेलगाड़ी से दिल्ली जाएँगे।"],
        ["मैंने आज सुबह बगीचे में हरी चाय पी।", "वे कल सुबह हवाईजहाज़ से दिल्ली जाएँगे।"],
        ["सहेजें बटन दबाएँ।", "पासवर्ड बहुत छोटा है।"],
    ),
    "ta": Language(
        "13a",
        ["நான் இன்று காலை பூங்காவில் சிவப்பு தேநீர் குடித்தேன்.", "அவர்கள் நாளை காலை தொடர்வண்டியில் சென்னைக்கு செல்வார்கள்."],
        ["நான் இன்று காலை பூங்காவில் பச்சை தேநீர் குடித்தேன்.", "அவர்கள் நாளை காலை விமானத்தில் சென்னைக்கு செல்வார்கள்."],
        ["சேமி பொத்தானை அழுத்தவும்.", "கடவுச்சொல் மிகவும் சிறியது."],
    ),
    "ar": Language(
        "13a",
        ["شربت هذا الصباح في الحديقة كوبا من الشاي الأحمر.", "سوف يسافرون غدا بالقطار إلى القاهرة."],
        ["شربت هذا الصباح في الحديقة كوبا من الشاي الأخضر.", "سوف يسافرون غدا بالطائرة إلى القاهرة."],
        ["اضغط زر الحفظ.", "كلمة المرور قصيرة جدا."],
    ),
    "he": Language(
        "13a",
        ["הבוקר שתיתי בגן כוס אחת של תה אדום.", "מחר בבוקר הם ייסעו ברכבת לירושלים."],
        ["הבוקר שתיתי בגן כוס אחת של תה ירוק.", "מחר בבוקר הם ייסעו במטוס לירושלים."],
        ["לחצו על כפתור השמירה.", "הסיסמה קצרה מדי."],
    ),
    "am": Language(
        "13a",
        ["ዛሬ ጠዋት በአትክልቱ ውስጥ ቀይ ሻይ ጠጣሁ።", "ነገ ጠዋት እነሱ በባቡር ወደ አዲስ አበባ ይሄዳሉ።"],
        ["ዛሬ ጠዋት በአትክልቱ ውስጥ አረንጓዴ ሻይ ጠጣሁ።", "ነገ ጠዋት እነሱ በአውሮፕላን ወደ አዲስ አበባ ይሄዳሉ።"],
        ["አስቀምጥ የሚለውን ቁልፍ ተጫን።", "የይለፍ ቃሉ በጣም አጭር ነው።"],
    ),
}
each = pytest.mark.parametrize("language", LANGUAGES.values(), ids=LANGUAGES)
quietly = pytest.mark.filterwarnings(
    "ignore:the references are (Japanese|Korean)", "ignore:WER counts", "ignore:TER counts"
)


@quietly
@each
def test_bleu_and_chrf_are_sacrebleus_with_the_tokeniser_of_the_references(language: Language) -> None:
    assert tokenizer_of(language.references) == language.tokenizer
    theirs = sacrebleu.BLEU(tokenize=language.tokenizer, force=True)
    values = []
    for outputs in (language.references, language.near, language.other, ["", "no"]):
        found = Bleu().score(outputs, language.references)
        assert found.value == pytest.approx(
            theirs.corpus_score(outputs, [language.references]).score, abs=1e-10
        )
        assert found.signature == str(theirs.get_signature())
        values.append(found.value)
        wanted = sacrebleu.CHRF().corpus_score(outputs, [language.references]).score
        assert Chrf().score(outputs, language.references).value == pytest.approx(wanted, abs=1e-10)
    assert values[0] == pytest.approx(100) and 100 > values[1] > 20 > values[2] >= values[3] == 0


@quietly
@each
@pytest.mark.parametrize(
    "metric", [Meteor(), SentenceBleu(), Rouge(), Rouge(kind="2"), Rouge(kind="L"), Cer()]
)
def test_a_wrong_word_costs_less_than_a_wrong_sentence(metric: Metric, language: Language) -> None:
    equal, near, other = (
        metric.score(outputs, language.references).value * (1 if metric.higher_is_better else -1)
        for outputs in (language.references, language.near, language.other)
    )
    assert equal > near > other
    assert near - other > (equal - other) / 3


@each
def test_captions_are_cut_into_signs_where_words_have_no_spaces(language: Language) -> None:
    references = [[one] for one in language.references]
    assert bleu_n(language.references, references)[3].value == pytest.approx(100)
    assert 20 < bleu_n(language.near, references)[3].value < 100
    assert 50 < rouge_l(language.near, references).value < 100
    assert cider_d(language.near, references).value > 1
    spaced = writing(language.references) in ("spaced", "korean")
    assert ("tok:words" if spaced else "tok:characters") in rouge_l(language.near, references).score.signature


def test_every_way_to_a_score_takes_the_same_tokeniser() -> None:
    language = LANGUAGES["zh"]
    wanted = Bleu(tokenize="zh").score(language.near, language.references)
    lines = language.near, language.references
    assert "tok:zh" in wanted.signature
    beside = scored(Bleu(), *lines, baselines={"other": language.other})
    ways = [
        Bleu().score(*lines),
        confidence(Bleu(), *lines),
        compare(Bleu(), language.other, *lines).second,
        beside.score,
        by_length(Bleu(), *lines, ["x", "y"])[0].score,
    ]
    for found in ways:
        assert found is not None and found.value == wanted.value
        assert found.signature.startswith(wanted.signature)
    assert beside.baselines == {"other": Bleu(tokenize="zh").score(language.other, language.references).value}
    assert of_lines(*lines).value(Bleu()) == wanted.value
    statistics = Bleu().statistics(*lines)
    np.testing.assert_array_equal(statistics, Bleu(tokenize="zh").statistics(*lines))


def test_a_metric_that_chooses_can_be_used_for_one_language_after_another() -> None:
    for metric in (Bleu(), SentenceBleu(), Meteor(), Rouge()):
        assert "auto" in metric.signature()
        for name in ("zh", "hi", "th", "zh"):
            language = LANGUAGES[name]
            found = metric.score(language.near, language.references)
            assert found == type(metric)().score(language.near, language.references)
            assert metric.rows(language.near, language.references).sum() > 0


def test_the_references_decide_and_not_the_outputs() -> None:
    assert "tok:13a" in Bleu().score(["我喜欢喝茶。"], ["I like tea."]).signature
    assert "tok:zh" in Bleu().score(["I like tea."], ["我喜欢喝茶。"]).signature
    half = ["I like a cup of red tea in the park.", "我喜欢在公园里喝一杯红茶。"]
    # as many words of both, a quarter of letters is Han
    assert "tok:zh" in Bleu().score(half, half).signature
    few = ["We met Mr Wang (王) at the station."] * 9
    assert "tok:13a" in Bleu().score(few, few).signature


def test_signatures_of_latin_references_are_those_of_before() -> None:
    lines = ["the cat sat on the mat"]
    assert Bleu().score(lines, lines).signature == str(_signed(sacrebleu.BLEU(force=True), lines))
    assert "|tok:13a|" in Meteor().score(lines, lines).signature
    assert Rouge().score(lines, lines).signature == (
        "kind:1|F:beta1|mean:lines|case:lower|words:letters+digits|stem:no"
    )
    assert SentenceBleu().score(lines, lines).signature.startswith("case:mixed|tok:13a|")
    assert bleu_n(lines, [lines])[0].score.signature.startswith("tok:words.lower.nosigns|")
    assert Wer().score(lines, lines).signature == "percent|unit:word|case:mixed|punctuation:kept"


def _signed(metric: sacrebleu.BLEU, lines: list[str]) -> object:
    metric.corpus_score(lines, [lines])
    return metric.get_signature()


def test_japanese_without_mecab_counts_characters_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    language = LANGUAGES["ja"]
    monkeypatch.setattr("weft.metrics.bleu.find_spec", lambda name: None)
    with pytest.warns(UserWarning, match=r"MeCab is not installed.*sacrebleu\[ja\]"):
        assert "tok:char" in Bleu().score(language.near, language.references).signature
    found = [scored(metric, language.near, language.references) for metric in (Bleu(), Meteor(), Chrf())]
    lines = report(found)
    assert len([line for line in lines if "MeCab" in line]) == 1 and lines[-1].startswith("  note: ")
    ko = LANGUAGES["ko"]
    assert tokenizer_of(ko.references) == "char"
    said = scored(Bleu(), ko.near, ko.references).note
    assert "Korean and are counted in characters" in said and "sacrebleu[ko]" in said
    with pytest.raises(ConfigError, match=r"meteor: tokenize: ko-mecab needs MeCab.*sacrebleu\[ko\]"):
        Meteor(tokenize="ko-mecab")


def test_wer_warns_where_words_have_no_spaces_and_names_cer() -> None:
    for name, language in LANGUAGES.items():
        lines = language.near, language.references
        said = scored(Wer(), *lines).note
        if name in ("zh", "ja", "th", "km"):
            assert "no spaces between words" in said and "CER" in said
            assert scored(Wer(), *lines).json()["note"] == said
            with pytest.warns(UserWarning, match="CER"):
                assert Wer().score(*lines).value == 100
        else:
            assert said == "" and "note" not in scored(Wer(), *lines).json()
            with warnings.catch_warnings(action="error"):
                assert 0 < Wer().score(*lines).value < 40


def test_ter_splits_chinese_and_japanese_as_sacrebleu_can_and_warns_of_other_scripts() -> None:
    for name, language in LANGUAGES.items():
        lines = language.near, language.references
        asian = name in ("zh", "ja")
        theirs = sacrebleu.TER(normalized=asian, asian_support=asian)
        found = scored(Ter(), *lines)
        assert found.value == pytest.approx(theirs.corpus_score(lines[0], [lines[1]]).score, abs=1e-10)
        assert f"asian:{'yes' if asian else 'no'}" in found.score.signature
        assert ("TER counts what is between spaces" in found.note) == (name in ("th", "km"))
        assert found.value < 60 or name in ("th", "km")
    zh = LANGUAGES["zh"]
    with pytest.warns(UserWarning, match="TER counts"):
        assert Ter(asian_support=False).score(zh.near, zh.references).value == 100  # as it is told
