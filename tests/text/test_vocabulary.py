"""All vocabularies: round trips, reproducibility, separate punctuation, exact sizes."""

import subprocess
import sys
import time
from collections import Counter

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.slow import leading
from weft.errors import ConfigError, DataError
from weft.text import learn
from weft.text.characters import FORMS, normalise
from weft.text.vocabulary import EOS, PAD, SOS, UNK, Vocabulary

KINDS = ["word", "space", "character", "bpe", "unigram"]
SCRIPTS = [
    "Click the button, then choose File - Open (Ctrl+O)... 1,234.50 % don't “quote” «that» ¿qué?",
    "Zażółć gęślą jaźń; český háček: Straße, l'été à Noël, İstanbul, Ελλάς, ϓ",
    "Щёлкните кнопку мыши, чтобы открыть окно. Съешь ещё этих булок!",
    "يمكنك فتح الملف من هنا، شكرًا. می‌خواهم بروم",
    "नमस्ते दुनिया, यह एक परीक्षण है। हिन्दी",
    "你好,世界。我们在学习中文。日本語のテキストを読みます。カタカナ 한국어 문장입니다.",
    "สวัสดีชาวโลก ภาษาไทย ខ្មែរ မြန်မာ",
    "👩‍🚒 emoji 🙂 ▁marker▁ _under_ <pad> <eos> <unk> a\u0301\u0323 ½ Ⅳ x² \ufeff",
]
ALPHABET = sorted(set("".join(SCRIPTS)) | set(" \t\u00a0\u2028\u3000\x0c"))


def smallest(kind: str, lines: list[str], **how: object) -> Vocabulary:
    """A vocabulary with every symbol of the lines."""
    marks = {mark for line in lines for mark in normalise(line, **how)} | {" "}
    return Vocabulary.train(
        lines, kind=kind, size=len(marks) + 4 if kind in ("bpe", "unigram") else None, **how
    )


@pytest.fixture(scope="module", params=KINDS)
def trained(request: pytest.FixtureRequest) -> Vocabulary:
    lines = SCRIPTS * 3
    marks = {mark for line in lines for mark in normalise(line)} | {" "}
    size = len(marks) + 4 + 60 if request.param in ("bpe", "unigram") else None
    return Vocabulary.train(lines, kind=request.param, size=size)


@given(text=st.text(st.sampled_from(ALPHABET), max_size=60))
def test_decoding_gives_the_text_back_in_every_script(trained: Vocabulary, text: str) -> None:
    ids = trained.encode(text)
    if trained.kind not in (
        "word",
        "space",
    ):  # random letters are rarely a known word; the next test covers those
        assume(UNK not in ids)
    if UNK not in ids:
        assert trained.decode(ids) == normalise(text)
    assert not {PAD, SOS, EOS} & set(ids)
    assert max(ids, default=0) < len(trained)


@pytest.mark.parametrize("kind", KINDS)
@given(text=st.text(), form=st.sampled_from(FORMS), lowercase=st.booleans())
@settings(max_examples=60)
def test_decoding_gives_any_text_back_when_trained_on_it(
    kind: str, text: str, form: str, lowercase: bool
) -> None:
    plain = normalise(text, form=form, lowercase=lowercase)
    assume(plain)
    vocabulary = smallest(kind, [text], form=form, lowercase=lowercase)
    ids = vocabulary.encode(text)
    assert UNK not in ids
    assert vocabulary.decode(ids) == plain
    assert vocabulary.decode([SOS, *ids, EOS, PAD, PAD]) == plain
    grouped = vocabulary.words(ids)
    assert [word.text for word in grouped] == plain.split(" ")
    assert [place for word in grouped for place in word.positions] == list(range(len(ids)))


def test_training_text_comes_back(trained: Vocabulary) -> None:
    for line in SCRIPTS:
        known = line.replace("<unk>", "") if trained.kind == "space" else line
        assert trained.decode(trained.encode(line)) == normalise(known)


def test_a_batch_is_its_texts_one_by_one(trained: Vocabulary) -> None:
    texts = [*SCRIPTS, "", " ", "Click", *SCRIPTS]
    assert trained.encode_batch(texts) == [trained.encode(text) for text in texts]
    assert trained.encode("") == trained.encode(" \t") == []
    assert trained.encode_batch([]) == []


def test_a_special_symbol_in_the_text_is_plain_text(trained: Vocabulary) -> None:
    ids = trained.encode("<eos> <pad>")
    assert not {PAD, SOS, EOS, UNK} & set(ids)
    assert trained.decode(ids) == "<eos> <pad>"


def test_text_that_is_tokenised_already_is_cut_at_white_space_alone() -> None:
    vocabulary = Vocabulary.train(["mr. <unk> is n't N years", "a.b <unk>"], kind="space", size=None)
    assert vocabulary.pieces(vocabulary.encode("n't <unk> mr. dr.")) == ["▁n't", "<unk>", "▁mr.", "<unk>"]
    assert len(vocabulary) == 4 + 6  # the unknown symbol does not count as a word


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_no_piece_glues_punctuation_or_digits_to_anything(kind: str) -> None:
    lines = ["end. end. end. (a) (a) (a) 2024 2024 2024 don't don't x_1 x_1 ... ..."] * 5
    vocabulary = Vocabulary.train(lines, kind=kind, size=30)
    for piece in vocabulary.pieces(range(4, len(vocabulary))):
        bare = piece.removeprefix("▁")
        assert bare.isalpha() or len(bare) <= 1, piece
    assert vocabulary.pieces(vocabulary.encode("end."))[-1] == "."


def test_a_word_vocabulary_holds_words_by_frequency_and_scripts_without_spaces_by_character() -> None:
    vocabulary = Vocabulary.train(["b a, b a b. 中文字"], kind="word", size=None)
    assert vocabulary.pieces(range(len(vocabulary))) == [
        "<pad>", "<unk>", "<sos>", "<eos>", "▁b", "▁a", "▁中", ",", ".", "字", "文",
    ]  # fmt: skip


def test_a_character_vocabulary_counts_the_space_between_words_only() -> None:
    vocabulary = Vocabulary.train(["ab ba", "a"], kind="character", size=None)
    assert vocabulary.pieces(range(4, len(vocabulary))) == ["a", "b", "▁"]
    assert vocabulary.pieces(vocabulary.encode("ab a")) == ["a", "b", "▁", "a"]


def test_rare_words_and_characters_are_left_out_by_min_count() -> None:
    lines = ["aa aa aa ab", "aa aa ab z"]
    assert Vocabulary.train(lines, kind="word", size=None, min_count=2).pieces([4, 5]) == ["▁aa", "▁ab"]
    assert len(Vocabulary.train(lines, kind="character", size=None, min_count=2)) == 4 + 3  # a, b, space
    for kind in ("bpe", "unigram"):
        vocabulary = Vocabulary.train(lines, kind=kind, size=4 + 3, min_count=2)
        assert vocabulary.encode("z")[-1] == UNK
        assert vocabulary.decode(vocabulary.encode("a z b")) == "a b"


def test_bpe_learns_the_most_frequent_pair_first() -> None:
    # " ab" 3 times, " a" once: the pair (space, a) 4 times, then (" a", b) 3 times.
    vocabulary = Vocabulary.train(["ab ab ab a"], kind="bpe", size=4 + 3 + 2)
    assert vocabulary.pieces(range(4, 9)) == ["▁", "a", "b", "▁a", "▁ab"]


def test_unigram_needs_fewer_pieces_than_characters_and_no_more_than_bpe_by_much() -> None:
    words = ["open", "opening", "opened", "close", "closing", "closed", "window", "windows", "the", "button"]
    lines = [" ".join(words[(7 * i + j * j) % 10] for j in range(9)) for i in range(50)]
    counts = {}
    for kind in ("bpe", "unigram"):
        vocabulary = Vocabulary.train(lines, kind=kind, size=40)
        assert len(vocabulary) == 40
        counts[kind] = sum(map(len, vocabulary.encode_batch(lines)))
    assert counts["unigram"] <= 1.1 * counts["bpe"] < sum(map(len, lines)) / 2


@pytest.mark.parametrize("kind", leading(KINDS, 2))
def test_training_again_in_another_process_and_order_gives_the_same_file(kind: str, tmp_path) -> None:
    code = (
        "import sys; from weft.text.vocabulary import Vocabulary\n"
        "lines = open(sys.argv[1], encoding='utf-8').read().split('\\n')[:: int(sys.argv[4])]\n"
        "size = 330 if sys.argv[2] in ('bpe', 'unigram') else None\n"
        "Vocabulary.train(lines, kind=sys.argv[2], size=size).save(sys.argv[3])\n"
    )
    (tmp_path / "text").write_text("\n".join(SCRIPTS * 3), encoding="utf-8")
    for number, step in enumerate(["1", "-1"]):
        arguments = [str(tmp_path / "text"), kind, str(tmp_path / str(number)), step]
        subprocess.run([sys.executable, "-c", code, *arguments], check=True)
    assert (tmp_path / "0").read_bytes() == (tmp_path / "1").read_bytes()


@pytest.mark.parametrize("kind", ["word", "space", "character"])
def test_the_size_of_words_and_characters_is_a_limit(kind: str) -> None:
    lines = ["a b a", "b c a"]
    whole = Vocabulary.train(lines, kind=kind, size=None)
    pieces = whole.pieces(range(len(whole)))
    for size in (len(whole), len(whole) + 1, 4000):
        found = Vocabulary.train(lines, kind=kind, size=size)
        assert found.pieces(range(len(found))) == pieces
    assert Vocabulary.train(lines, kind=kind, size=6).pieces(range(6)) == pieces[:6]


@pytest.mark.parametrize(
    ("kind", "size", "message"),
    [
        (
            "bpe",
            5000,
            r"size 5000 is more than the data can give: 9 characters, and merges.*vocabulary.size to 9",
        ),
        ("unigram", 5000, r"size 5000 is more than the data can give: \d+ pieces seen twice"),
        (
            "bpe",
            6,
            r"size 6 is too small for bpe: the data has 3 .* 7; set data.vocabulary.size to 7 or more",
        ),
        ("unigram", 6, r"size 6 is too small for unigram: .* set data.vocabulary.size to 7 or more"),
        ("bpe", None, "a bpe vocabulary needs a size"),
        ("word", 4, "size 4 has no room beside the 4 special symbols"),
        ("bpr", 100, "kind 'bpr' is unknown; choose one of word, space, character, bpe, unigram"),
    ],
)
def test_a_size_that_the_data_cannot_give_is_refused(kind: str, size: int | None, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Vocabulary.train(["ab ab ab a", "b"], kind=kind, size=size)


def test_training_on_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="no text to learn a vocabulary from"):
        Vocabulary.train(["", "  "], kind="bpe", size=100)


@pytest.mark.parametrize("kind", KINDS)
def test_half_a_surrogate_pair_is_refused(kind: str) -> None:
    with pytest.raises(DataError, match=r"'a\\ud800' contains half a surrogate pair"):
        smallest(kind, ["a b"]).encode("b a\ud800")


def test_words_are_grouped_as_written_when_the_text_is_known() -> None:
    vocabulary = Vocabulary.train(["the cat, (the) dog."], kind="word", size=None)
    text = "the (zebra), dog."
    ids = [*vocabulary.encode(text), EOS, PAD]
    assert vocabulary.pieces(ids)[2] == "<unk>"
    assert vocabulary.words(ids, text) == [("the", [0]), ("(zebra),", [1, 2, 3, 4]), ("dog.", [5, 6])]
    assert [word.text for word in vocabulary.words(ids)] == ["the", "(", "<unk>),", "dog."]


@pytest.mark.parametrize("kind", KINDS)
def test_words_of_known_text_cover_every_piece_once(kind: str) -> None:
    vocabulary = smallest(kind, SCRIPTS)
    for text in SCRIPTS:
        ids = vocabulary.encode(text)
        assert vocabulary.words(ids, text) == vocabulary.words(ids)


def test_remembered_words_do_not_grow_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.text.vocabulary._CACHE", 10)
    vocabulary = smallest("character", ["abc"])
    for number in range(100):
        vocabulary.encode("a" * (number + 1))
    assert len(vocabulary._known) <= 11


def test_counting_words_forgets_the_rarest_before_memory_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    from weft.text import pieces

    monkeypatch.setattr(pieces, "MOST_TYPES", 10)
    lines = [f"often w{number}" for number in range(100)]
    words, texts = pieces.count_words(lines)
    assert texts == 100
    assert words[" often"] == 100
    assert len(words) <= 11


def test_byte_pair_counts_of_a_large_corpus_are_divided_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learn, "MOST_WORDS", 10)
    repeated = Counter("".join(learn._repeated(Counter({" a": 60, " b": 30, " c": 1}))))
    assert repeated["a"] == 6
    assert repeated["b"] == 3
    assert repeated["c"] == 0


@pytest.mark.parametrize("kind", leading(["bpe", "word", "character", "unigram"]))
def test_a_word_of_a_million_letters_is_learnt_and_read(kind: str) -> None:
    begun = time.process_time()
    lines = ["the cat sat on a mat", "a cat", "the mat", "ab" * 500_000] * 2
    vocabulary = Vocabulary.train(lines, kind=kind, size=None if kind in ("word", "character") else 20)
    rows = vocabulary.encode_batch(lines)
    assert vocabulary.decode(rows[0]) == lines[0]
    assert time.process_time() - begun < 30  # took more than 400 s before


def test_pieces_of_ordinary_words_do_not_depend_on_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    words = Counter({" low": 5, " lower": 2, " newest": 6, " widest": 3})
    sizes = {"kind": "bpe", "size": 19, "min_count": 1, "progress": False}
    usual = learn.learn(words, 4, **sizes)
    monkeypatch.setattr(learn, "LONGEST_WORD", 7)  # " newest" and " widest" have seven letters
    assert learn.learn(words, 4, **sizes).token_to_id("est") == usual.token_to_id("est") is not None
