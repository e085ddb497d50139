"""ARPA files: round trips, and files of other programs are read with the meaning these give them."""

import math
from pathlib import Path

import numpy as np
import pytest

from tests.ngram.test_kneser_ney import END, PAD, SIZE, START, flat, text
from weft.errors import DataError
from weft.ngram.arpa import arpa_lines, read_arpa
from weft.ngram.kneser_ney import kneser_ney

WORDS = ["<s>", "</s>", "", "a", "b", "c", "d", "e", "f", "g", "<unk>"]

# KenLM's interpretation: p(b | a) is present; "b a" is missing, so it backs off with the weight of "b".
BY_HAND = """\
some comment

\\data\\
ngram 1=5
ngram 2=3

\\1-grams:
-1.0\t<unk>\t0
0\t<s>\t-0.25
-0.7\t</s>\t0
-0.5\ta\t-0.125
-0.75\tb\t-0.375

\\2-grams:
-0.2\t<s> a
-0.3\ta b
-0.4\tb </s>

\\end\\
"""


@pytest.mark.parametrize("order", [1, 2, 4])
def test_a_round_trip_changes_no_probability(order: int) -> None:
    model = kneser_ney(flat(text()), size=SIZE, order=order, start=START, never=[PAD])
    back = read_arpa(arpa_lines(model, WORDS))
    assert back.words == tuple(word for word in WORDS if word)
    renamed = np.array([back.words.index(word) if word else -1 for word in WORDS])
    for tokens in (flat(text()), flat(text(13, seed=6)), flat([[10, 3, 10], []])):
        np.testing.assert_allclose(back.model.score(renamed[tokens]), model.score(tokens), atol=2e-7)
    assert list(arpa_lines(back.model, back.words))[:2] == list(arpa_lines(model, WORDS))[:2]


def test_back_off_is_what_the_format_says() -> None:
    model, words = read_arpa(BY_HAND.split("\n"))
    number = {word: place for place, word in enumerate(words)}
    tokens = np.array([number[word] for word in ["<s>", "a", "b", "a", "a", "<unk>", "b", "</s>"]])
    expected = [0.0, -0.2, -0.3, -0.375 - 0.5, -0.125 - 0.5, -0.125 - 1.0, 0.0 - 0.75, -0.4]
    np.testing.assert_allclose(model.score(tokens), np.array(expected) * math.log(10), atol=1e-12)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("-0.3\ta b", "-0.3\ta z"), "toy: 2-grams: the word 'z' is not among its 1-grams"),
        (("ngram 2=3", "ngram 2=4"), "toy: expected 4 2-grams"),
        (("-0.4\tb", "x\tb"), "toy:17: .* is not a line of an ARPA file .could not"),
        (("-0.4\tb </s>", "-0.4"), "toy:17: '-0.4' is not a line of an ARPA file .1 columns for a 2-gram"),
        (("\\end\\", ""), "toy: incomplete ARPA file"),
        (("<s>", "<begin>"), "repeat a word or lack <s>"),
    ],
)
def test_a_damaged_file_is_named(change: tuple[str, str], sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        read_arpa(BY_HAND.replace(*change).split("\n"), "toy")


def test_words_that_could_not_be_read_back_are_refused() -> None:
    model = kneser_ney(flat(text()), size=SIZE, order=2, start=START, never=[PAD])
    with pytest.raises(DataError, match="contains white space"):
        list(arpa_lines(model, [*WORDS[:-1], "new york"]))
    with pytest.raises(DataError, match="11 words"):
        list(arpa_lines(model, WORDS[:3]))
    assert END == 1


@pytest.mark.parametrize("order", [2, 4])
def test_kenlm_reads_what_is_written_and_gives_the_same_scores(order: int, tmp_path: Path) -> None:
    kenlm = pytest.importorskip("kenlm", reason="kenlm is not installed, so it cannot be asked")
    model = kneser_ney(flat(text()), size=SIZE, order=order, start=START, never=[PAD])
    path = tmp_path / "toy.arpa"
    path.write_text("".join(f"{line}\n" for line in arpa_lines(model, WORDS)))
    theirs = kenlm.Model(str(path))
    for sentence in (*text(13, seed=6), [10, 3, 10], []):
        tokens = np.array([START, *sentence, END])
        words = " ".join(WORDS[token] for token in sentence)
        want = [logp * math.log(10) for logp, _, _ in theirs.full_scores(words)]
        np.testing.assert_allclose(model.score(tokens)[1:], want, atol=1e-5)  # they have float32
