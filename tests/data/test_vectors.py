"""Vectors in the text files of word2vec and GloVe, word pairs and analogies."""

from pathlib import Path

import numpy as np
import pytest

from weft.data.vectors import Analogy, WordPair, coverage, read_questions, read_vectors, write_vectors
from weft.errors import DataError, DataWarning

LINES = "cat 1 2.5 -3\ndog 0 0 1e-3\n"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (LINES + "cow 1 2\n", r"v\.txt:3: .*3 numbers, got 2"),
        (LINES + "cow 1 2 x\n", r"v\.txt:3: .*finite numbers"),
        (LINES + "cow 1 2 3 4\n", r"v\.txt:3: .*3 numbers, got 4"),
        ("cow\n", r"v\.txt:1: .*some numbers, got 0"),
        ("cow 1 nan 2\n", r"v\.txt:1: .*finite numbers"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "v.txt").write_text(text)
    with pytest.raises(DataError, match=sentence):
        read_vectors(tmp_path / "v.txt")


@pytest.mark.parametrize("head", ["", "5 3\n"], ids=["glove", "word2vec"])
def test_words_with_spaces_and_blank_lines_as_glove_has_them(tmp_path: Path, head: str) -> None:
    lines = ". . . 1 2 3\nat name@domain.com 4 5 6\n\ncat 7 8 9 \n\u3000 1 1 1\ndog\t7 8 9\n\n  \n"
    (tmp_path / "v.txt").write_text(head + lines)
    found, size = read_vectors(tmp_path / "v.txt")
    assert size == 3 and {word: vector.tolist() for word, vector in found.items()} == {
        ". . .": [1, 2, 3],
        "at name@domain.com": [4, 5, 6],
        "cat": [7, 8, 9],
        "\u3000": [1, 1, 1],
        "dog": [7, 8, 9],
    }


@pytest.mark.parametrize("name", ["v.bin", "v.txt", "v.vec"])
def test_the_bytes_of_a_file_tell_its_form(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("2 3\n" + LINES)
    assert read_vectors(tmp_path / name)[0]["cat"].tolist() == [1, 2.5, -3]
    numbers = np.array([[1, 2.5, -3], [0, 0, 1]], "<f4")
    (tmp_path / name).write_bytes(
        b"2 3\ncat " + numbers[0].tobytes() + b"\nd\xc3\xb6g " + numbers[1].tobytes()
    )
    found, _ = read_vectors(tmp_path / name)
    assert list(found) == ["cat", "d\u00f6g"] and found["cat"].tolist() == [1, 2.5, -3]


def test_a_model_of_fasttext_is_called_so(tmp_path: Path) -> None:
    (tmp_path / "cc.en.bin").write_bytes(b"\xba\x16\x4f\x2f\x0c\0\0\0" + bytes(99))
    with pytest.raises(
        DataError, match=r"cc\.en\.bin: expected word vectors, got a model of fastText; .*\.vec"
    ):
        read_vectors(tmp_path / "cc.en.bin")


def test_what_the_first_line_says_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "v.vec"
    path.write_text("2 4\n" + LINES)
    with pytest.raises(DataError, match=r"its first line says 4 numbers for each word, got 3"):
        read_vectors(path)
    path.write_text("3 3\n" + LINES)
    with pytest.warns(DataWarning, match=r"v\.vec: its first line says 3 words, got 2"):
        assert len(read_vectors(path)[0]) == 2


def test_of_a_word_that_comes_again_the_first_counts_as_in_gensim(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("a 1 2\na 3 4\n")
    assert read_vectors(tmp_path / "v.txt")[0]["a"].tolist() == [1, 2]


def test_the_coverage_of_a_text_and_why_it_is_little(tmp_path: Path) -> None:
    path, words = tmp_path / "v.txt", ["cat", "dog", "Paris"]

    def of(kind: str = "word", **counts: int) -> str:
        said = coverage(path, words, counts, lowercase="data.lowercase", kind=kind)
        return said.partition(f"{path} has ")[2]

    assert of(cat=6, dog=3, cow=3) == "2 of 3 words of the training text, 75.0% of its tokens"
    assert of(Cat=6, DOG=2, cow=2).endswith(
        "; warning: 80.0% without regard to case, so set data.lowercase=true"
    )
    assert of(paris=9, cow=1).endswith("; warning: 90.0% without regard to case, so set data.lowercase=false")
    assert "0 of 1 word of" in of(Katze=1) and "is it the right file, and of the text's language?" in of(
        Katze=1
    )
    assert "pieces of words, so set data.vocabulary.kind=word" in of(kind="bpe", ca=1, ts=1)


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
    models = pytest.importorskip(
        "gensim.models", reason="gensim is not installed: pip install --group vectors-tests"
    )
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
        (b"1 1\ncat " + np.float32("nan").tobytes(), "finite numbers after word 1 .'cat'"),
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


def test_pairs_with_tabs_or_spaces(tmp_path: Path) -> None:
    (tmp_path / "p").write_text("# a comment\ntiger\tbig cat\t7.35\n\nsun moon 5\n")
    found = read_questions(tmp_path / "p")
    assert (
        found.pairs == [WordPair("tiger", "big cat", 7.35), WordPair("sun", "moon", 5.0)]
        and not found.analogies
    )


def test_analogies_have_sections(tmp_path: Path) -> None:
    (tmp_path / "q").write_text("a b c d\n: capitals\nAthens Greece Oslo Norway\n")
    found = read_questions(tmp_path / "q")
    assert found.analogies == [
        Analogy(("a", "b", "c", "d"), "q"),
        Analogy(("Athens", "Greece", "Oslo", "Norway"), "capitals"),
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a b 1\na b\n", "q:2: .*2 columns"),
        ("a b nan\n", "q:1: .*3 columns"),
        ("a b c d\na b 1\n", "q:2: .*3 columns"),
        (": head\n", "q: .*analogies"),
    ],
)
def test_a_wrong_question_is_named(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "q").write_text(text)
    with pytest.raises(DataError, match=sentence):
        read_questions(tmp_path / "q")
