"""Word vectors, words in context and filled gaps: from text to other programs, as a user types it."""

from pathlib import Path

import numpy as np
import pytest

import weft as package
from tests import toys
from tests.commands.shell import evaluated, refused, unanswered, weft
from tests.shared import run_fixture, shared_run
from weft.data.vectors import read_vectors

TASK = "embeddings"
elmo = run_fixture("elmo")


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
    picture = tmp_path / "map.png"
    answer, found = evaluated(run, "--plot", picture)
    assert "28 of 29 questions have vectors" in answer.out and "baseline: random vectors" in answer.out
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


def test_both_perplexities_are_printed_and_beat_word_frequencies(elmo: Path) -> None:
    answer, found = evaluated(elmo, "--split", "valid")
    assert "forward perplexity" in answer.out and "backward perplexity" in answer.out
    assert "softmax:full" in answer.out and "worse" not in answer.out
    # Of five predictions a line one is a coin: 2^(1/5) = 1.149; the short lines cost a little more.
    for one in found["scores"].values():
        assert 1.1 < one["value"] < 1.6 and one["baselines"]["word frequencies"] > 3


def test_an_evaluation_writes_the_log_probabilities_of_each_line(elmo: Path, tmp_path: Path) -> None:
    lines = ["go the bank now", "", "the bank " * 5, "bank"]  # seven words fit
    (tmp_path / "text.txt").write_text("\n".join(lines) + "\n")
    out = tmp_path / "out.tsv"
    _, found = evaluated(elmo, "--data", tmp_path / "text.txt", "--output", out)
    logp = np.array([line.split("\t") for line in out.read_text().splitlines()], np.float64)
    assert logp.shape == (4, 2) and (logp[1] == 0).all() and (logp[[0, 2, 3]] < 0).all()
    whole = [-np.log(one["value"]) * one["size"] for one in found["scores"].values()]
    assert logp.sum(0) == pytest.approx(whole, abs=1e-3)


def test_one_word_has_two_vectors_in_two_contexts(elmo: Path) -> None:
    answer = weft("predict", elmo, stdin=b"bank\tgo the bank now\tthe bank\n", code=0)
    word, *layers = answer.out.strip().split("\t")
    assert word == "bank" and float(layers[0]) == 1.0 and float(layers[2]) < 0.999
    comparer = package.load(elmo)
    assert comparer.vectors("go the bank now").layers.shape == (3, 4, 22)
    assert comparer.compare("bank", "the bank", "the bank") == pytest.approx([1, 1, 1], abs=1e-6)


def test_wrong_lines_are_named(elmo: Path) -> None:
    columns, word = unanswered(weft("predict", elmo, stdin=b"bank\tbank\nbank\ta\tthe bank\n"))
    assert "standard input:1: expected a sentence, or 3 columns" in columns
    assert "'bank' is no word of 'a'" in word


def test_gaps_are_filled_from_both_sides() -> None:
    run = shared_run("masked")
    said = weft("predict", run, stdin=b"the [MASK] can purr\na [MASK] can bark\n")
    assert said.out == "the cat can purr\na dog can bark\n"
    ranked = weft("predict", run, "--nbest", "2", "--scores", stdin=b"the [MASK] can [MASK]\n").out
    first, second = ranked.strip().split("\t")
    assert first.startswith("cat=0.") and second.startswith("purr=0.") and len(first.split()) == 2
    assert package.load(run).predict("the cat can [MASK]") == "the cat can purr"
    scored = weft("evaluate", run, "--split", "valid")
    assert scored.code == 0 and "80/10/10" in scored.out and "worse" not in scored.out
    (said,) = unanswered(weft("predict", run, stdin=b"a dog\n"))
    assert "standard input:1: expected [MASK]" in said


def test_an_evaluation_writes_its_answers_a_line_for_each_line(tmp_path: Path) -> None:
    lines = ["the dog can purr", "", " ".join(["a cat can bark"] * 4), "the cat can purr"]  # 11 tokens fit
    (tmp_path / "text.txt").write_text("\n".join(lines) + "\n")
    out = tmp_path / "out.txt"
    _, found = evaluated(shared_run("masked"), "--data", tmp_path / "text.txt", "--output", out)
    written = out.read_text().splitlines()
    assert len(written) == 4 and written[1] == ""
    pairs = zip(" ".join(lines).split(), " ".join(written).split(), strict=True)
    accuracy = found["scores"]["accuracy"]
    wrong = round((1 - accuracy["value"]) * accuracy["size"])
    assert sum(one != other for one, other in pairs) == wrong > 0
