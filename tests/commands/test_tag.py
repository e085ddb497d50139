"""Tagging from CoNLL-U to CoNLL-U, as a user types it."""

import shutil
from pathlib import Path

import pytest

import weft as package
from tests.commands import labelled
from tests.commands.shell import evaluated, refused, weft
from weft.errors import DataWarning

TASK = "tag"


def test_conllu_comes_out_as_it_was_but_for_the_tags(run: Path) -> None:
    test = run.parent / "toy" / "test.conllu"
    whole = test.read_text()
    blank = whole.replace("\tVERB\t", "\t_\t").replace("\tNOUN\t", "\t_\t").replace("\tPUNCT\t", "\t_\t")
    assert blank != whole
    assert weft("predict", run, stdin=blank.encode()).out == whole
    assert weft("predict", run, test).out == whole


def test_words_on_lines_and_sentences_on_lines(run: Path) -> None:
    wanted = "telo\tNOUN\nbeding\tVERB\n.\tPUNCT\n\n"
    words = weft("predict", run, stdin=b"telo\nbeding\n.\n")
    assert words.out == wanted and "standard input: read as a word on each line" in words.err
    assert weft("predict", run, stdin=b"telo beding .\n").out == wanted
    with pytest.warns(DataWarning, match="the vocabulary lacks e"):
        found = package.load(run).predict("telo beding .")
    assert found == [("telo", "NOUN"), ("beding", "VERB"), (".", "PUNCT")]


def test_scores_stand_in_the_last_column(run: Path) -> None:
    out = weft("predict", run, "--scores", stdin=b"telo\nbeding\n").out.split("\n")
    for line in out[:2]:
        assert 0 < float(line.split("\t")[2]) <= 1
    conllu = labelled.sentences(1, 3)
    lines = weft("predict", run, "--scores", stdin=conllu.encode()).out.split("\n")
    assert [line.split("\t")[-1][:5] for line in lines if line[:1].isdigit()][:2] == ["Space", "Prob="]


def test_evaluate_prints_unknown_words_baselines_and_mistakes(run: Path, tmp_path: Path) -> None:
    picture, out = tmp_path / "confusion.png", tmp_path / "out.conllu"
    answer, found = evaluated(run, "--full", "--plot", picture, "--output", out)
    wanted = "29 sentences", "unknown words", "baseline: most frequent tag and ending", "words/s"
    assert [shown for shown in wanted if shown not in answer.out] == []
    assert found["scores"]["tag accuracy"]["value"] == 1.0
    assert "mistakes" not in answer.out  # there are none
    assert picture.read_bytes().startswith(b"\x89PNG")
    text = (run.parent / "toy" / "test.conllu").read_text()
    assert out.read_text() == text
    (tmp_path / "odd.conllu").write_text(text.replace("\tVERB\t", "\tNOUN\t", 1))
    said = weft("evaluate", run, "--full", "--data", tmp_path / "odd.conllu").lines
    (mistakes,) = [number for number, line in enumerate(said) if "mistakes" in line]
    assert said[mistakes + 1] == "  NOUN VERB 1"
    (tmp_path / "spaced.conllu").write_text(text.replace("\tVERB\t", "\tVERB A\t"))
    _, found = evaluated(run, "--data", tmp_path / "spaced.conllu")
    share = text.count("\tVERB\t") / sum(line.split("\t")[0].isdigit() for line in text.split("\n"))
    assert 0 < share < 1 and found["scores"]["tag accuracy"]["value"] == pytest.approx(
        1 - share
    )  # a tag with a space is one tag


def test_vectors_are_taken_and_must_fit(tmp_path: Path) -> None:
    recipe = labelled.make_sentences(tmp_path / "toy")
    vectors = tmp_path / "v.txt"
    vectors.write_text("1 7\n. 1 2 3 4 5 6 7\n")
    change = f"model.embedding.vectors={vectors}", "training.max_updates=2"
    answer = weft("train", recipe, "--run", tmp_path / "run", *change, code=0)
    (said,) = [line for line in answer.err.splitlines() if "word vectors: " in line]
    assert f"{vectors} has 1 of " in said and "warning: too little to help" in said
    vectors.write_text(". 1 2\n")
    again = refused(weft("train", recipe, "--run", tmp_path / "other", *change))
    assert "have 2 numbers; set embedding.size: 2" in again


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("1\ta\tb\n", "train.conllu:1: expected 10 columns"),
        ("a\tX\nb\n", "train.conllu:2: expected word TAB tag"),
        ("a\nb\n", "train.conllu:1: expected word TAB tag"),
        ("# only a comment\n", "train.conllu: expected at least one sentence"),
    ],
)
def test_bad_files_are_named_and_no_model_is_written(tmp_path: Path, text: str, sentence: str) -> None:
    recipe = labelled.make_sentences(tmp_path / "toy")
    (tmp_path / "toy" / "train.conllu").write_text(text)
    said = refused(weft("train", recipe, "--run", tmp_path / "run"))
    assert sentence in said
    assert not (tmp_path / "run" / "model.safetensors").exists()


def test_data_check_knows_conllu_and_finds_everything_at_once(tmp_path: Path) -> None:
    (tmp_path / "train.conllu").write_text(labelled.sentences(5, 1) + labelled.sentences(5, 1))
    bad = labelled.sentences(2, 3).replace("\tPUNCT\t", "\tSTOP\t", 1).replace("1\t", "7\t", 1) + "1\tx\n\n"
    (tmp_path / "dev.conllu").write_text(bad)
    answer = weft("data", "check", tmp_path / "train.conllu", tmp_path / "dev.conllu")
    assert answer.code == 1
    shown = answer.out.replace(f"{tmp_path}/", "")
    stopped = "the upos 'STOP' does not occur in train.conllu"
    for sentence in ("expected 10", stopped, "expected word 1, got word 7"):
        assert sentence in shown
    (tmp_path / "train.tsv").write_text("a\tX\nb\n\nc\tY\n")
    told = weft("data", "check", tmp_path / "train.tsv", "--task", "tag")
    assert told.code == 1 and "train.tsv:2: expected word TAB tag" in told.out


@pytest.mark.slow
def test_names_are_counted_whole_and_choose_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "Ann\tB-PER\nLee\tI-PER\nin\tO\nNew\tB-LOC\nYork\tI-LOC\n.\tO\n\n"
    (tmp_path / "train.txt").write_text(text * 60)
    (tmp_path / "test.txt").write_text(text + text.replace("York\tI-LOC", "York\tO"))
    monkeypatch.chdir(tmp_path)
    assert weft("init", "tag", "--train", "train.txt").code == 0
    assert "metric: span_f1" in Path("tag.yaml").read_text()
    small = ["training.max_updates=25", "model.encoder.sizes=[8]", "training.tensorboard=false"]
    trained = weft("train", "tag.yaml", *small)
    assert trained.code == 0 and "span_f1 1.000" in trained.err + trained.out, trained.err
    shown, found = evaluated("runs/tag", "--full")
    score = found["scores"]["span F1"]
    assert score["value"] == pytest.approx(3 / 4)  # four names predicted, four true, three of them right
    assert "counted:conlleval" in score["signature"] and "scheme:IOB2" in score["signature"]
    assert [(row["label"], row["f1"]) for row in found["names"]] == [
        ("all names", 0.75), ("LOC", 0.5), ("PER", 1.0),
    ]  # fmt: skip
    assert "whole names  precision" in shown.out and "baseline: most frequent tag" in shown.out
    shutil.copytree("runs/tag", "runs/again")
    assert "span F1" in weft("compare", "runs/tag", "runs/again").out


def test_names_are_not_counted_where_tags_mark_none(run: Path) -> None:
    assert "span F1" not in weft("evaluate", run).out
