"""Summaries from texts, as a user types it; a pointer finds words that the vocabulary lacks in the text."""

import csv
import json
from pathlib import Path

import pytest

from tests import toys
from tests.commands.shell import evaluated, refused, weft
from tests.shared import run_fixture
from weft.tasks.summarise.init import guessed

TASK = "summarise without copying"
pointer = run_fixture("summarise")


def test_it_beats_the_lead_and_says_so(run: Path) -> None:
    answer, found = evaluated(run, "--full")
    lead = {name: one["baselines"]["the lead sentence"] for name, one in found["scores"].items()}
    assert set(lead) == set(found["scores"]) == {"ROUGE-1", "ROUGE-2", "ROUGE-L"}
    assert found["scores"]["ROUGE-1"]["value"] > 2 * lead["ROUGE-1"]
    assert "kind:L|F:beta1" in answer.unfolded and "better than the best baseline" in answer.unfolded
    assert 0 < found["copied"] <= 1


def test_predict_writes_a_summary_a_line_with_pictures(run: Path, tmp_path: Path) -> None:
    lines = b"alpha beta. It is omega here.\n\n"
    answer = weft("predict", run, "--pictures", tmp_path / "p", stdin=lines)
    assert answer.code == 0 and answer.lines == ["omega", ""]
    assert (tmp_path / "p" / "1.png").read_bytes().startswith(b"\x89PNG")


def test_check_does_not_judge_lengths_and_init_names_a_bad_line(run: Path, tmp_path: Path) -> None:
    train = run.parent / "toy" / "train.tsv"
    assert "proportion" not in weft("data", "check", "--task", "summarise", train).out
    (tmp_path / "bad.tsv").write_text("text\tsummary\nonly one column\n")
    bad = ("init", "summarise", "--train", tmp_path / "bad.tsv", "--valid", train)
    said = refused(weft(*bad, "-o", tmp_path / "o.yaml"))
    assert "bad.tsv:2" in said and not (tmp_path / "o.yaml").exists()


def test_check_init_and_train_agree_on_the_columns_of_a_table(tmp_path: Path) -> None:
    rows = [f"the old dog number {n} sees a green house;dog {n}" for n in range(9)]
    (tmp_path / "news.csv").write_text("\n".join(["\ufeffarticle;highlights", *rows]) + "\n")
    checked = weft("data", "check", tmp_path / "news.csv", "--task", "summarise")
    assert checked.code == 0 and "columns 'article' and 'highlights' are read" in checked.lines[0]
    began = weft("init", "summarise", tmp_path / "news.csv", "-o", tmp_path / "x.yaml")
    said = "columns 'article' and 'highlights' are read as text and summary"
    assert began.code == 0 and said in began.lines[0]
    assert "source: article" in (tmp_path / "x.yaml").read_text() and "--source article" in began.out
    weft("train", tmp_path / "x.yaml", "--run", tmp_path / "run", "training.max_updates=1", code=0)


def test_names_of_columns_decide_before_lengths(tmp_path: Path) -> None:
    rows = [{"id": n, "Summary": f"{n} " + "a long text " * 9, "Dialogue": f"it is {n}"} for n in range(5)]
    (tmp_path / "a.json").write_text(json.dumps(rows))
    given = {"train": tmp_path / "a.json", "text": "text", "summary": "summary"}
    found = guessed(given, lambda note: None)
    assert (found["text"], found["summary"]) == ("Dialogue", "Summary")


def test_unseen_names_are_copied_greedily_and_by_a_beam(pointer: Path, tmp_path: Path) -> None:
    text = b"beta gamma . It is kokomila alpha beta .\n\ndelta alpha . It is Ibsen omega gamma beta .\n"
    for how in (("--beam", "1"), ("--beam", "3"), ("--sample", "--temperature", "0.2")):
        answer = weft("predict", pointer, *how, stdin=text)
        assert answer.code == 0 and answer.lines == ["kokomila", "", "Ibsen"], answer
    best = weft("predict", pointer, "--nbest", "2", "--scores", stdin=text.splitlines()[0] + b"\n").lines
    assert len(best) == 2 and best[0].split("\t")[1] == "kokomila"
    out = tmp_path / "alignments"
    weft("predict", pointer, "--alignments", out, "--pictures", tmp_path / "p", stdin=text, code=0)
    assert "5-0" in out.read_text().split("\n")[0].split()
    assert (tmp_path / "p" / "1.png").read_bytes().startswith(b"\x89PNG")


def test_evaluate_scores_copied_words_and_beats_the_lead(pointer: Path, tmp_path: Path) -> None:
    _, found = evaluated(pointer, "--output", tmp_path / "y")
    assert found["scores"]["ROUGE-1"]["value"] > 80
    assert found["copied"] > 0.9
    assert len((tmp_path / "y").read_text().split("\n")) == 24


def test_a_model_of_one_text_is_drawn_with_its_own_words(pointer: Path, tmp_path: Path) -> None:
    page, text = tmp_path / "page.html", "beta gamma . It is kokomila alpha ."
    views = ("--views", tmp_path / "views", "--format", "csv")
    answer = weft("inspect", pointer, text, "--output", page, *views, code=0)
    assert "Alignment, Copied words, " in answer.out
    rows = list(csv.reader((tmp_path / "views" / "copied-words.csv").read_text("utf-8").splitlines()))[1:]
    assert [word for _, word, _ in rows] == ["▁kokomila", "<eos>"]
    assert float(rows[0][2]) > 0.99 and float(rows[1][2]) < 0.01  # it has no other way to say the name
    looked = list(csv.DictReader((tmp_path / "views" / "alignment.csv").read_text("utf-8").splitlines()))
    first = [one for one in looked if one["hypothesis"] == "1" and one["target"] == "▁kokomila"]
    assert [one["source"] for one in first] == [f"▁{word}" for word in text.split()]
    assert max(first, key=lambda one: float(one["weight"]))["source"] == "▁kokomila"
    assert sum(float(one["weight"]) for one in first) == pytest.approx(1, abs=1e-4)


def test_translate_scores_given_lines_with_copied_words(pointer: Path, tmp_path: Path) -> None:
    recipe = toys.names(tmp_path / "t", "translate")
    answer = weft("train", recipe, "--run", tmp_path / "run", "training.max_updates=2", code=0)
    assert "300 sources cut after 9 tokens" in answer.err + answer.out
    references = [line.split("\t")[1] for line in (tmp_path / "t" / "test.tsv").read_text().splitlines()[1:]]
    given = tmp_path / "given"
    given.write_text("\n".join(references) + "\n")
    weft("evaluate", tmp_path / "run", "--score", given, "--output", tmp_path / "scores", code=0)
    logp = [float(line.split("\t")[0]) for line in (tmp_path / "scores").read_text().splitlines()]
    assert len(logp) == 23 and all(-50 < one < 0 for one in logp)
