"""Vectors in the text files of word2vec and GloVe."""

from pathlib import Path

import numpy as np
import pytest

from weft.data.vectors import read_vectors, write_vectors
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
        (LINES + "cow 1 2\n", r"v\.txt:3: .*3 numbers, got 2"),
        (LINES + "cow 1 2 x\n", r"v\.txt:3: .*finite numbers"),
        ("cow 1 nan 2\n", r"v\.txt:1: .*finite numbers"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "v.txt").write_text(text)
    with pytest.raises(DataError, match=sentence):
        read_vectors(tmp_path / "v.txt")


WORDS, MATRIX = ["cat", "straße", "</s>"], np.array([[0.1, -2e-7], [1e9, 3.0], [0.0, 1 / 3]], np.float32)


@pytest.mark.parametrize("name", ["v.txt", "v.bin", "v.glove", "v.vec"])
def test_what_is_written_is_read_to_the_last_bit(tmp_path: Path, name: str) -> None:
    write_vectors(tmp_path / name, WORDS, MATRIX)
    found, size = read_vectors(tmp_path / name)
    assert size == 2 and list(found) == WORDS
    assert np.array_equal(np.stack(list(found.values())), MATRIX)
    assert list(read_vectors(tmp_path / name, {"cat"})[0]) == ["cat"]
    assert [path.name for path in tmp_path.iterdir()] == [name]


# gensim does not close a file without a header
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", ["v.txt", "v.bin", "v.glove"])
def test_gensim_reads_what_is_written_and_its_files_are_read(tmp_path: Path, name: str) -> None:
    models = pytest.importorskip("gensim.models", reason="gensim is not installed")
    path, binary = tmp_path / name, name == "v.bin"
    write_vectors(path, WORDS, MATRIX)
    theirs = models.KeyedVectors.load_word2vec_format(path, binary=binary, no_header=name == "v.glove")
    assert theirs.index_to_key == WORDS and np.array_equal(theirs.vectors, MATRIX)
    theirs.save_word2vec_format(path, binary=binary)
    found, _ = read_vectors(path)
    assert list(found) == WORDS and np.allclose(np.stack(list(found.values())), MATRIX, rtol=1e-7)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"cat\n", "line with the number of words"),
        (b"2 3\ncat " + bytes(12) + b"\ndog " + bytes(4), "ends in word 2 of 2"),
        (b"1 1\ncat " + np.float32("nan").tobytes(), "word 1 .'cat'. has a number that is not finite"),
    ],
)
def test_a_damaged_binary_file_is_named(tmp_path: Path, data: bytes, sentence: str) -> None:
    (tmp_path / "v.bin").write_bytes(data)
    with pytest.raises(DataError, match=sentence):
        read_vectors(tmp_path / "v.bin")


def test_a_word_with_white_space_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="white space"):
        write_vectors(tmp_path / "v.txt", ["a b"], MATRIX[:1])
    assert list(tmp_path.iterdir()) == []
