"""A pointer as a user trains it: words that the vocabulary lacks are found in the text and written."""

import csv
import json
from pathlib import Path

import pytest

from tests import toys
from tests.commands.shell import refused, weft
from tests.shared import run_fixture

run = run_fixture("summarise")


def test_unseen_names_are_copied_greedily_and_by_a_beam(run: Path, tmp_path: Path) -> None:
    text = b"beta gamma . It is kokomila alpha beta .\n\ndelta alpha . It is Ibsen omega gamma beta .\n"
    for how in (("--beam", "1"), ("--beam", "3"), ("--sample", "--temperature", "0.2")):
        answer = weft("predict", run, *how, stdin=text)
        assert answer.code == 0 and answer.lines == ["kokomila", "", "Ibsen"], answer
    best = weft("predict", run, "--nbest", "2", "--scores", stdin=text.splitlines()[0] + b"\n").lines
    assert len(best) == 2 and best[0].split("\t")[1] == "kokomila"
    out = tmp_path / "alignments"
    weft("predict", run, "--alignments", out, "--pictures", tmp_path / "p", stdin=text, code=0)
    assert "5-0" in out.read_text().split("\n")[0].split()
    assert (tmp_path / "p" / "1.png").read_bytes().startswith(b"\x89PNG")


def test_evaluate_scores_copied_words_and_beats_the_lead(run: Path, tmp_path: Path) -> None:
    weft("evaluate", run, "--json", tmp_path / "x.json", "--output", tmp_path / "y", code=0)
    found = json.loads((tmp_path / "x.json").read_text())
    assert found["scores"]["ROUGE-1"]["value"] > 80
    assert found["copied"] > 0.9
    assert len((tmp_path / "y").read_text().split("\n")) == 24


def test_a_model_of_one_text_is_drawn_with_its_own_words(run: Path, tmp_path: Path) -> None:
    page, text = tmp_path / "page.html", "beta gamma . It is kokomila alpha ."
    views = ("--views", tmp_path / "views", "--format", "csv")
    answer = weft("inspect", run, text, "--output", page, *views, code=0)
    assert "Alignment, Copied words, " in answer.out
    rows = list(csv.reader((tmp_path / "views" / "copied-words.csv").read_text("utf-8").splitlines()))[1:]
    assert [word for _, word, _ in rows] == ["▁kokomila", "<eos>"]
    assert float(rows[0][2]) > 0.99 and float(rows[1][2]) < 0.01  # it has no other way to say the name
    looked = list(csv.DictReader((tmp_path / "views" / "alignment.csv").read_text("utf-8").splitlines()))
    first = [one for one in looked if one["hypothesis"] == "1" and one["target"] == "▁kokomila"]
    assert [one["source"] for one in first] == [f"▁{word}" for word in text.split()]
    assert max(first, key=lambda one: float(one["weight"]))["source"] == "▁kokomila"
    assert sum(float(one["weight"]) for one in first) == pytest.approx(1, abs=1e-4)


def test_translate_scores_given_lines_with_copied_words(run: Path, tmp_path: Path) -> None:
    recipe = toys.names(tmp_path / "t", "translate")
    answer = weft("train", recipe, "--run", tmp_path / "run", "training.max_updates=2", code=0)
    assert "300 sources cut after 9 tokens" in answer.err + answer.out
    references = [line.split("\t")[1] for line in (tmp_path / "t" / "test.tsv").read_text().splitlines()[1:]]
    given = tmp_path / "given"
    given.write_text("\n".join(references) + "\n")
    weft("evaluate", tmp_path / "run", "--score", given, "--output", tmp_path / "scores", code=0)
    logp = [float(line.split("\t")[0]) for line in (tmp_path / "scores").read_text().splitlines()]
    assert len(logp) == 23 and all(-50 < one < 0 for one in logp)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("data.vocabulary.shared=false", "both sides need one vocabulary"),
        ("data.cut_source=200", "cut_source=200: expected a number from 1 to max_length"),
        ("model.encoder=null", "the model needs an encoder"),
        ("model.decoder.coverage=-1", "coverage: "),
        ("model.encoder={use: pyramid, sizes: [8, 8]}", "merges 2 positions into one"),
        ("model.decoder.decoder={use: pointer}", "the inner decoder copies too"),
    ],
)
def test_what_cannot_copy_is_refused_before_work_begins(tmp_path: Path, change: str, said: str) -> None:
    recipe = toys.names(tmp_path / "toy")
    assert said in refused(weft("train", recipe, "--run", tmp_path / "run", change))
    assert not (tmp_path / "run").exists()
