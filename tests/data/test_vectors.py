"""Vectors in the text files of word2vec and GloVe."""

from pathlib import Path

import pytest

from weft.data.vectors import read_vectors
from weft.errors import DataError

LINES = "cat 1 2.5 -3\ndog 0 0 1e-3\n"


@pytest.mark.parametrize("head", ["", "2 3\n"], ids=["glove", "word2vec"])
def test_both_forms_give_the_same(tmp_path: Path, head: str) -> None:
    (tmp_path / "v.txt").write_text(head + LINES)
    found, size = read_vectors(tmp_path / "v.txt")
    assert size == 3
    assert {word: vector.tolist() for word, vector in found.items()} == {
        "cat": [1.0, 2.5, -3.0],
        "dog": [0.0, 0.0, pytest.approx(1e-3)],
    }
    assert list(read_vectors(tmp_path / "v.txt", {"dog"})[0]) == ["dog"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (LINES + "cow 1 2\n", "v.txt:3: a word and 2 numbers came, 3 are needed"),
        (LINES + "cow 1 2 x\n", "v.txt:3: a vector needs finite numbers"),
        ("cow 1 nan 2\n", "v.txt:1: a vector needs finite numbers"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "v.txt").write_text(text)
    with pytest.raises(DataError, match=sentence):
        read_vectors(tmp_path / "v.txt")
