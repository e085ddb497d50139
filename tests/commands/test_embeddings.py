"""Word vectors from text to files of other programs, as a user types it."""

import json
from pathlib import Path

import numpy as np
import pytest

import weft as package
from tests import toys
from tests.commands.shell import refused, unanswered, weft
from tests.shared import run_fixture
from weft.data.vectors import read_vectors

run = run_fixture("embeddings")


def test_like_words_are_near(run: Path, tmp_path: Path) -> None:
    answer = weft(
        "predict", run, "--nbest", "3", "--pictures", tmp_path / "maps", stdin=b"apple\nSaw\n", code=0
    )
    rows = [line.split("\t") for line in answer.out.splitlines()]
    assert [row[0] for row in rows] == ["apple", "Saw"]
    assert set(rows[0][1].split()) & set(toys.FRUIT) and not set(rows[0][1].split()) & set(toys.TOOLS)
    assert (tmp_path / "maps" / "2.svg").exists()
    vectors = package.load(run)
    assert vectors.vector("apple").shape == (7,) and vectors.nearest("apple", 1)[0].word != "apple"
    assert vectors.similarity("apple", "pear") > vectors.similarity("apple", "drill")
    assert vectors.analogy("apple", "pear", "saw")[0].word not in {"apple", "pear", "saw"}


def test_evaluate_says_what_is_covered_and_the_baselines(run: Path, tmp_path: Path) -> None:
    picture, figures = tmp_path / "map.png", tmp_path / "all.json"
    answer = weft("evaluate", run, "--plot", picture, "--json", figures, code=0)
    assert "28 of 29 questions have vectors" in answer.out and "baseline: random vectors" in answer.out
    found = json.loads(figures.read_text())
    assert found["scores"]["Spearman x 100"]["value"] > 70 and found["covered"] == 28
    assert picture.read_bytes().startswith(b"\x89PNG")
    (tmp_path / "q.txt").write_text(": kinds\napple pear saw drill\napple zebra saw axe\n")
    told = weft("evaluate", run, "--data", tmp_path / "q.txt")
    assert "1 of 2 questions" in told.out and "baseline: the word nearest to the third" in told.out


# gensim leaves a file without a head open
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", ["v.txt", "v.bin", "v.glove"])
def test_gensim_opens_what_is_exported(run: Path, tmp_path: Path, name: str) -> None:
    answer = weft("export", run, "--vectors", tmp_path / name, code=0)
    assert f"add model.embedding.vectors={tmp_path / name} to its command" in answer.lines[-1]
    vectors = package.load(run)
    found, size = read_vectors(tmp_path / name)
    assert size == 7 and list(found) == vectors.words
    assert np.array_equal(np.stack(list(found.values())), vectors.matrix)
    models = pytest.importorskip(
        "gensim.models", reason="gensim is not installed: pip install --group vectors-tests"
    )
    theirs = models.KeyedVectors.load_word2vec_format(
        tmp_path / name, binary=name == "v.bin", no_header=name == "v.glove"
    )
    mine = vectors.nearest("plum", 3)
    assert [word for word, _ in theirs.most_similar("plum", topn=3)] == [one.word for one in mine]


def test_the_same_seed_gives_the_same_bits(run: Path, tmp_path: Path) -> None:
    weft("train", run.parent / "toy" / "toy.yaml", "--run", tmp_path / "again", code=0)
    assert np.array_equal(package.load(run).matrix, package.load(tmp_path / "again").matrix)


@pytest.mark.parametrize(
    "change", ["model.objective=cbow", "model.objective=glove", "model.subwords=true"], ids=str
)
def test_every_way_to_learn_tells_fruit_from_tools(tmp_path: Path, change: str) -> None:
    recipe = toys.words(tmp_path / "toy")
    weft("train", recipe, "--run", tmp_path / "run", change, "model.buckets=101", code=0)
    vectors = package.load(tmp_path / "run")
    assert vectors.similarity("apple", "pear") > vectors.similarity("apple", "drill")
    if "subwords" in change:
        assert vectors.vector("pears").any() and "zebra" not in vectors
        assert vectors.similarity("pears", "pear") > 0.2


def test_words_without_a_vector_and_wrong_lines_are_named(run: Path, tmp_path: Path) -> None:
    unknown, several = unanswered(weft("predict", run, stdin=b"apple\nzebra\napple pear\n"))
    assert "standard input:2: 'zebra' is not among the 14 words" in unknown
    assert "standard input:3: expected one word" in several
    assert "ends in .txt" in refused(weft("export", run, "--vectors", tmp_path / "v.csv"))
    (tmp_path / "q.tsv").write_text("zebra\tgnu\t3\n")
    assert "at least 2 pairs with vectors" in refused(weft("evaluate", run, "--data", tmp_path / "q.tsv"))
