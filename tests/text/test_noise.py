"""Mistakes in texts: each as often as it is said to be, and what always stays."""

import random
from collections import Counter

import pytest

from weft.errors import ConfigError
from weft.text.noise import Noise, space
from weft.text.vocabulary import UNK, Vocabulary

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
