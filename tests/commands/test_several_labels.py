"""A classifier that gives a text several labels, or none, as a user types it."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

import weft as package
from tests.commands.labelled import SEVERAL as CHANGES
from tests.commands.labelled import TOPICS
from tests.commands.labelled import make_several as make
from tests.commands.shell import refused, weft
from tests.shared import copied
from weft.errors import ConfigError
from weft.run import open_run
from weft.tasks.classify.data import LabelData, names_of
from weft.tasks.predictor import Place
from weft.tasks.task import InspectionSettings

TASK = "several labels"


def test_each_label_is_given_by_itself(run: Path) -> None:
    found = weft("predict", run, stdin=b"a song today\nthis film\ngoal it was song today\n")
    assert found.out == "music|news\n\nmusic|news|sport\n"
    served = package.load(run)
    (one,) = served.answers([served.parse("the goal today", Place("input"))])
    said = one.json()
    assert said["labels"] == ["news", "sport"] and set(said["probs"]) == set(TOPICS)
    assert min(said["probs"]["news"], said["probs"]["sport"]) > 0.5 > said["probs"]["music"]
    first, *probs = weft("predict", run, "--scores", stdin=b"a song\n").out.strip().split("\t")
    assert first == "music" and probs[0].startswith("music=") and len(probs) == 3


def test_it_is_served(run: Path) -> None:
    pytest.importorskip("starlette", reason="pip install -e .[serve]")
    from weft.serve.limits import ServerLimits
    from weft.serve.predicting import inputs_of, predicting
    from weft.serve.served import ServedRun

    made, limits = ServedRun(run, "several", "cpu", ()), ServerLimits()
    found = list(
        predicting(made, limits)(inputs_of(made, ["a song today", "this film"], limits), lambda: False)
    )
    assert [one["labels"] for one in found] == [["music", "news"], []]


def test_a_table_keeps_its_columns(run: Path, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text('id,text,note\n7,"a song, today",x\n8,a film,\n')
    rows = list(csv.reader(io.StringIO(weft("predict", run, tmp_path / "new.csv").out)))
    assert rows == [
        ["id", "text", "note", "predicted"],
        ["7", "a song, today", "x", "music|news"],
        ["8", "a film", "", ""],
    ]


def test_scores_and_thresholds_are_fitted_to_the_validation_part(run: Path, tmp_path: Path) -> None:
    run = copied(run, tmp_path)
    plain = weft("evaluate", run, code=0)
    for words in ("micro F1 1.0", "macro F1 1.0", "all labels right 1.0", "baseline: most frequent labels ("):
        assert words in plain.out, plain.out
    assert not (run / "calibration.json").exists()
    assert weft("evaluate", run, "--calibrate", "--json", run / "scores.json").code == 0
    limits = json.loads((run / "scores.json").read_text())["thresholds"]
    assert set(limits) == set(TOPICS) and set(limits.values()) != {0.5}
    opened = open_run(run, device="cpu")
    classifier = opened.pipeline.predictor(opened.model)
    valid = list(opened.task.data.texts("valid"))
    probs = np.stack([one.probs for one in classifier.classify([one.text for one in valid])])
    for number, name in enumerate(opened.pipeline.reader.classes):
        assert limits[name] == opened.pipeline.reader.thresholds[number]
        there = np.array([name in one.label.split("|") for one in valid])
        given = probs[:, number] >= limits[name] - 1e-6
        assert (given == there).all()  # as the toy is learnt


@pytest.mark.slow
def test_it_is_inspected_and_has_a_page(run: Path, tmp_path: Path) -> None:
    opened = open_run(run, device="cpu")
    seen = opened.pipeline.inspection(opened.model, InspectionSettings(text="a song today"))
    assert seen.answer.startswith("music|news (")
    pytest.importorskip("onnxscript", reason="pip install -e .[export]")
    weft("export", run, "--to", "web", "--output", tmp_path / "page.html", code=0)
    assert "thresholds" in (tmp_path / "page.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("model.smoothing=0.1", "model: smoothing: requires one class per text"),
        ("model.class_weights=balanced", "model: class_weights: requires one class per text"),
        ("model.bag={naive_bayes: true}", "model: bag.naive_bayes: requires one class per text"),
        ("data.separator=''", "data.separator='': expected a character"),
    ],
)
def test_settings_for_one_class_are_refused(tmp_path: Path, change: str, words: str) -> None:
    recipe = make(tmp_path / "toy")
    changes = [*CHANGES, f"data.folder={tmp_path / 'toy'}", change]
    assert words in refused(weft("train", recipe, "--run", tmp_path / "run", *changes))


def test_without_a_separator_an_empty_label_is_refused(tmp_path: Path) -> None:
    recipe = make(tmp_path / "toy")
    changes = [*CHANGES[:3], *CHANGES[4:], f"data.folder={tmp_path / 'toy'}", "training.max_updates=1"]
    said = refused(weft("train", recipe, "--run", tmp_path / "run", *changes))
    assert "the label is empty" in said and "train.csv:2" in said


def test_a_bag_learns_several_labels_too(tmp_path: Path) -> None:
    recipe = make(tmp_path / "toy")
    changes = [*CHANGES, f"data.folder={tmp_path / 'toy'}", "model.bag={ngrams: 1}"]
    assert weft("train", recipe, "--run", tmp_path / "run", *changes).code == 0
    assert weft("predict", tmp_path / "run", stdin=b"a song today\n").out == "music|news\n"


def test_labels_in_a_cell_are_sorted_and_each_once() -> None:
    assert names_of(" b |a||b", "|") == ["a", "b"]
    assert names_of("", "|") == [] and names_of("a|b", None) == ["a|b"]
    with pytest.raises(ConfigError):
        LabelData(train="x", separator="\t")


def test_data_check_counts_each_of_several_labels(tmp_path: Path) -> None:
    train, valid = tmp_path / "train.tsv", tmp_path / "valid.tsv"
    rows = ["sun\tweather|good", "rain\tweather", "nothing\t", "snow\tgood|weather"]
    train.write_text("text\tlabel\n" + "\n".join(rows) + "\n")
    valid.write_text("text\tlabel\nfrost\tweather|cold\n")
    made = weft("data", "check", train, valid, "--label", "label", "--separator", "|", code=0)
    assert "the class 'good' has 2 texts" in made.out and "the class 'weather' has" not in made.out
    assert f"{valid}:2: the label 'cold' does not occur in {train}" in made.out
    other = weft("data", "check", train, valid, "--label", "label", "--separator", ";")
    assert other.code == 0 and f"{train}: no text has several labels; if some should, ';' is not" in other.out
    assert "no text has several" not in made.out
    plain = weft("data", "check", train, "--label", "label")
    assert plain.code == 1 and f"{train}:4: the label is empty" in plain.out


def test_init_writes_a_recipe_for_several_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cycle = ("", "weather", "weather|good")
    rows = ["sun,weather|good", "nothing,", *(f"rain {n},{cycle[n % 3]}" for n in range(40))]
    Path("news.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
    made = weft("init", "classify", "--train", "news.csv", "--label", "label", "--separator", "|", code=0)
    assert "weft data check news.csv --task classify --separator '|'" in made.out
    recipe = Path("classify.yaml").read_text()
    assert recipe.startswith("# 2 classes, 42 training texts") and '  separator: "|"\n' in recipe
    assert all(line.count("(") == line.count(")") for line in recipe.splitlines()[:3])
    said = refused(weft("init", "classify", "--train", "news.csv", "--label", "label", "-o", "other.yaml"))
    assert "news.csv:3: the label is empty" in said
    assert weft("train", "classify.yaml", "training.max_updates=2", "--run", "run").code == 0
