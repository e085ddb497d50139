"""Sampled segmentations: their probabilities, enumerated by hand, and what always stays."""

import math
import random
from collections import Counter
from collections.abc import Mapping
from itertools import combinations

import pytest
from tokenizers import models

from tests.slow import leading
from weft.errors import ConfigError
from weft.text.pieces import SPECIALS
from weft.text.sampling import SampledPieces
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
