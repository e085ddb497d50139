"""Sampled segmentations and mistakes: their probabilities, enumerated by hand, and what always stays."""

import math
import random
from collections import Counter
from collections.abc import Mapping
from itertools import combinations

import pytest
from tokenizers import models

from tests.slow import leading
from weft.errors import ConfigError
from weft.text.augmentation import Noise, SampledPieces, space
from weft.text.pieces import SPECIALS
from weft.text.vocabulary import UNK, Vocabulary

DRAWS = 20_000


def bpe(merges: list[tuple[str, str]], letters: str) -> Vocabulary:
    pieces = [*SPECIALS, *letters, *(left + right for left, right in merges)]
    model = models.BPE({piece: n for n, piece in enumerate(pieces)}, merges, unk_token="<unk>")
    return Vocabulary(model, kind="bpe", form="nfc", lowercase=False)


def frequencies(sampled: SampledPieces, words: Vocabulary, ids: list[int]) -> Counter[str]:
    chance = random.Random(5)
    return Counter(" ".join(words.pieces(sampled.draw(ids, chance))) for _ in range(DRAWS))


def agree(found: Counter[str], expected: Mapping[str, float]) -> None:
    assert found.keys() == {cut for cut, prob in expected.items() if prob}
    for cut, prob in expected.items():
        assert abs(found[cut] / DRAWS - prob) < 4 * math.sqrt(prob * (1 - prob) / DRAWS), cut


def test_each_merge_is_skipped_with_the_dropout_at_each_step_anew() -> None:
    words = bpe([("b", "c"), ("a", "b"), ("a", "bc")], "abc")
    p = 0.3
    ids = words.encode("abc")[1:]  # without the space, which the vocabulary lacks
    assert words.pieces(ids) == ["abc"]
    # First a+b and b+c are possible: both skipped, only b+c left (it has the lower rank), or only a+b.
    expected = {"a b c": p * p, "ab c": p * (1 - p), "a bc": (1 - p) * p, "abc": (1 - p) * (1 - p)}
    agree(frequencies(SampledPieces(words, dropout=p), words, ids), expected)


@pytest.mark.parametrize("alpha", leading([0.5, 0.0, 1.0]))
def test_a_segmentation_is_drawn_by_its_probability_to_the_power_alpha(alpha: float) -> None:
    scores = {"a": -1.0, "b": -2.5, "ab": -3.0, "ba": -1.7, "aba": -4.4}
    table = [*((name, 0.0) for name in SPECIALS), *scores.items()]
    words = Vocabulary(models.Unigram(table, UNK, False), kind="unigram", form="nfc", lowercase=False)
    text, weights = "abab", dict[str, float]()
    for count in range(len(text)):
        for cuts in combinations(range(1, len(text)), count):
            parts = [text[i:j] for i, j in zip((0, *cuts), (*cuts, len(text)), strict=True)]
            if all(part in scores for part in parts):
                weights[" ".join(parts)] = math.exp(alpha * sum(scores[part] for part in parts))
    total = sum(weights.values())
    ids = [words.as_json()["model"]["vocab"].index([letter, scores[letter]]) for letter in text]
    found = frequencies(SampledPieces(words, alpha=alpha), words, ids)
    agree(found, {cut: weight / total for cut, weight in weights.items()})


@pytest.mark.parametrize("how", [{"dropout": 0.5}, {"alpha": 0.1}])
def test_the_text_special_tokens_and_numbers_of_copied_words_stay(how: dict[str, float]) -> None:
    lines = ["lower the lowest, slowly", "12 slow tests in the north", "it's slower than the others"] * 5
    kind = "bpe" if "dropout" in how else "unigram"
    words = Vocabulary.train(lines, kind=kind, size=50)
    ids = words.encode("the slowest ツ tests, 12")
    assert UNK in ids
    ids = [len(words) + 3, 0, *ids, 2, len(words), 3]
    sampled, chance, different = SampledPieces(words, **how), random.Random(7), 0
    for _ in range(50):
        drawn = sampled.draw(ids, chance)
        assert words.decode(n for n in drawn if n < len(words)) == words.decode(
            n for n in ids if n < len(words)
        )
        fixed = [n for n in ids if n <= 3 or n >= len(words)]
        assert [n for n in drawn if n <= 3 or n >= len(words)] == fixed
        different += drawn != ids
    assert different > 15


def test_without_dropout_the_usual_segmentation_is_drawn() -> None:
    lines = ["lower the lowest, slowly", "12 slow tests in the north"] * 5
    words = Vocabulary.train(lines, kind="bpe", size=40)
    ids = words.encode("the slowest tests, in the north")
    assert SampledPieces(words, dropout=0).draw(ids, random.Random(1)) == ids


@pytest.mark.parametrize(
    ("kind", "how", "says"),
    [
        ("unigram", {"dropout": 0.1}, "needs a vocabulary of kind bpe, got unigram"),
        ("bpe", {"alpha": 0.1}, "needs a vocabulary of kind unigram, got bpe"),
        ("word", {"dropout": 0.1}, "kind bpe, got word"),
        ("bpe", {"dropout": 1.0}, "dropout: expected a probability of at least 0 and below 1, got 1"),
        ("unigram", {"alpha": -0.1}, "alpha: expected a number of at least 0, got -0.1"),
    ],
)
def test_a_setting_of_another_kind_or_out_of_range_is_refused(
    kind: str, how: dict[str, float], says: str
) -> None:
    words = Vocabulary.train(["lower the lowest, slowly"] * 5, kind=kind, size=None if kind == "word" else 25)
    with pytest.raises(ConfigError, match=says):
        SampledPieces(words, **how)


LINES = ["the slow cat sat on the mat, slowly", "a cat ran to the north", "It's 12 o'clock <bt> now"] * 5
TEXT = "the cat sat on a mat, slowly"
NONE = {"drop": 0.0, "swap": 0.0, "typos": 0.0}
KINDS = {"bpe": 45, "unigram": 45, "word": None, "space": None, "character": None}


def noisy(kind: str = "word", **how: float) -> tuple[Vocabulary, Noise]:
    words = Vocabulary.train(LINES, kind=kind, size=KINDS[kind])
    return words, Noise(words, **{**NONE, **how})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", [{"drop": 0.3}, {"swap": 0.3}])
def test_words_are_left_out_or_exchanged_as_a_whole(kind: str, how: dict[str, float]) -> None:
    words, noise = noisy(kind, **how)
    ids, chance, different = words.encode(TEXT), random.Random(3), 0
    for _ in range(99):
        drawn = noise.draw(ids, chance)
        text = words.decode(drawn)
        assert drawn == words.encode(text), "tokens are those of the text"
        left, whole = Counter(text.split()), Counter(TEXT.split())
        assert left == whole if "swap" in how else left <= whole
        different += text != TEXT
    assert different > 40


@pytest.mark.parametrize("kind", KINDS)
def test_without_mistakes_a_text_stays(kind: str) -> None:
    words, noise = noisy(kind)
    for text in (TEXT, "a", ""):
        assert noise.draw(words.encode(text), random.Random(1)) == words.encode(text)


def test_each_word_is_left_out_with_its_probability() -> None:
    words, noise = noisy(drop=0.3)
    ids, chance = words.encode("the cat sat"), random.Random(7)
    found = Counter(words.decode(noise.draw(ids, chance)) for _ in range(9000))
    p = 0.3
    assert abs(found["the cat sat"] / 9000 - (1 - p) ** 3) < 0.02
    assert abs(found["the sat"] / 9000 - p * (1 - p) ** 2) < 0.02
    # One word: alone left with p²(1 - p), or the one of three that stays where all were left out.
    assert abs(found["cat"] / 9000 - (p**2 * (1 - p) + p**3 / 3)) < 0.02
    assert "" not in found


def test_each_word_is_exchanged_with_the_next_with_its_probability() -> None:
    words, noise = noisy(swap=0.3)
    ids, chance = words.encode("the cat sat"), random.Random(7)
    found = Counter(words.decode(noise.draw(ids, chance)) for _ in range(9000))
    assert found.keys() == {"the cat sat", "cat the sat", "the sat cat"}  # a word moves by one place
    assert abs(found["cat the sat"] / 9000 - 0.3) < 0.02
    assert abs(found["the sat cat"] / 9000 - 0.7 * 0.3) < 0.02


@pytest.mark.parametrize("kind", ["bpe", "unigram", "character"])
def test_a_typing_error_changes_one_place_of_a_word(kind: str) -> None:
    words, noise = noisy(kind, typos=0.5)
    ids, chance, wrong = words.encode("the cat slowly 12 a"), random.Random(5), Counter[bool]()
    lengths = set()
    for _ in range(300):
        *drawn, number, one = words.decode(noise.draw(ids, chance)).split()
        assert (number, one) == ("12", "a")  # a number and a single letter stay
        for before, after in zip(["the", "cat", "slowly"], drawn, strict=True):
            wrong[before != after] += 1
            lengths.add(len(after) - len(before))
            pairs = sum(a != b for a, b in zip(before, after, strict=False))
            assert abs(len(after) - len(before)) == 1 or pairs <= 2
    assert lengths == {-1, 0, 1}
    assert 0.42 < wrong[True] / 900 < 0.54  # half the words, some of which get their own letter back


def test_tags_unknown_words_and_numbers_beyond_the_vocabulary_stay() -> None:
    words, noise = noisy("bpe", drop=0.9, swap=0.9, typos=0.9)
    ids = [len(words) + 2, *words.encode("<bt> the cat ツ sat")]
    assert UNK in ids
    chance = random.Random(2)
    for _ in range(50):
        drawn = noise.draw(ids, chance)
        assert drawn[0] == len(words) + 2 and words.decode(drawn[1:]).startswith("<bt>")
    typed = noisy("bpe", typos=0.9)[1]
    assert all(UNK in typed.draw(ids, chance) for _ in range(50))


def test_characters_are_joined_by_a_space() -> None:
    words = noisy("character")[0]
    assert [*words.encode("a cat"), *space(words), *words.encode("sat")] == words.encode("a cat sat")
    other = noisy("bpe")[0]
    assert [*other.encode("a cat"), *space(other), *other.encode("sat")] == other.encode("a cat sat")


def test_an_imported_vocabulary_is_refused() -> None:
    class Foreign(Vocabulary):
        def begin(self) -> list[int]:
            return [7]

    words = noisy("bpe")[0]
    words.__class__ = Foreign
    with pytest.raises(ConfigError, match=r"data\.augment: expected a vocabulary trained by Weft"):
        Noise(words, **{**NONE, "drop": 0.1})
