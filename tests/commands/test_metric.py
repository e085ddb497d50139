"""A metric is one file: a recipe and `weft evaluate --metric` name it, also one of a plugin."""

import json
import re
from pathlib import Path

import pytest

from tests.commands.shell import refused, weft
from tests.plugins import package
from tests.shared import TOYS, copied, shared_run

METRIC = '''
import numpy as np

from weft.metrics.metric import Metric


class Begins(Metric):
    """Share of lines that begin with the first letters of their reference."""

    name = "Begins"

    def __init__(self, *, letters: int = 1) -> None:
        self.letters = letters

    def statistics(self, hypotheses, references, sources):
        right = [one[: self.letters] == other[: self.letters] for one, other in zip(hypotheses, references)]
        return np.array([[one, 1.0] for one in right])

    def value(self, totals):
        return totals[..., 0] / totals[..., 1]

    def signature(self) -> str:
        return f"letters:{self.letters}|unit:line"
'''
PLUGIN = "--plugin", "my_metrics_of_weft"
NAME = "my_metrics_of_weft.begins.Begins"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a package in it."""
    return package(tmp_path / "home", "my_metrics_of_weft", {"begins.py": METRIC}, monkeypatch)


def begins(outputs: list[str], references: list[str], letters: int) -> float:
    """The same metric, by hand."""
    pairs = list(zip(outputs, references, strict=True))
    return sum(one[:letters] == other[:letters] for one, other in pairs) / len(pairs)


def test_a_metric_of_a_plugin_scores_a_run_beside_its_own(trained: Path, home: Path) -> None:
    asked = ("--metric", f"{NAME}:letters=2", "--metric", "wer", "--metric", "chrf:word_order=2")
    found = weft("evaluate", trained, *asked, *PLUGIN, "--json", "all.json", "--output", "out.txt", code=0)
    scores = json.loads(Path("all.json").read_text("utf-8"))["scores"]
    test = trained.parent / "toy" / "test.yy"
    outputs, references = (path.read_text("utf-8").splitlines() for path in (Path("out.txt"), test))
    assert scores["Begins"]["value"] == pytest.approx(begins(outputs, references, 2), abs=1e-12)
    assert scores["Begins"]["signature"] == "letters:2|unit:line|ci:wilson"
    assert scores["Begins"]["low"] <= scores["Begins"]["value"] <= scores["Begins"]["high"]
    assert set(scores["Begins"]["baselines"]) == set(scores["BLEU"]["baselines"])
    assert scores["WER"]["higher_is_better"] is False
    assert scores["chrF2 (chrf:word_order=2)"]["value"] != scores["chrF2"]["value"]
    assert "Begins 0." in found.out or "Begins 1.00" in found.out
    assert weft("evaluate", trained, "--json", "plain.json").code == 0
    plain = json.loads(Path("plain.json").read_text("utf-8"))["scores"]
    assert {name: scores[name] for name in plain} == plain


def test_the_tokenisation_of_bleu_can_be_set(trained: Path, toy: Path, tmp_path: Path) -> None:
    asked = "--metric", "bleu:tokenize=char", "--metric", "meteor:tokenize=zh"
    assert weft("evaluate", trained, *asked, "--json", tmp_path / "all.json").code == 0
    scores = json.loads((tmp_path / "all.json").read_text("utf-8"))["scores"]
    assert "|tok:13a|" in scores["BLEU"]["signature"]
    assert "|tok:char|" in scores["BLEU (bleu:tokenize=char)"]["signature"]
    assert "|tok:zh|" in scores["METEOR (meteor:tokenize=zh)"]["signature"]
    changes = (
        "training.metrics=[{use: bleu, tokenize: char}]",
        "training.max_updates=2",
        "data.validate_rows=0",
    )
    assert weft("train", toy, "--run", tmp_path / "run", *changes).code == 0
    assert "tokenize: char" in (tmp_path / "run" / "recipe.yaml").read_text("utf-8")
    validated = json.loads((tmp_path / "run" / "checkpoints.json").read_text("utf-8"))["validations"][0]
    again = weft(
        "evaluate", tmp_path / "run", "--split", "valid", "--beam", "1", "--json", tmp_path / "own.json"
    )
    own = json.loads((tmp_path / "own.json").read_text("utf-8"))["scores"]["BLEU (bleu)"]
    assert again.code == 0 and validated["scores"]["bleu"] == pytest.approx(own["value"])


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("bleu:tokenize=zn", "tokenize: expected one of auto, 13a"),
        ("blue", "did you mean 'bleu'"),
        ("chrf:words=2", "word_order"),
        ("chrf:word_order", "NAME:key=value"),
        ("chrf:word_order=many", "whole number"),
        (NAME, "--plugin my_metrics_of_weft"),
    ],
)
def test_a_wrong_metric_is_one_sentence(trained: Path, asked: str, said: str) -> None:
    told = refused(weft("evaluate", trained, "--metric", asked))
    assert said in told and "--metric" in told


@pytest.mark.parametrize(
    ("name", "metric", "has"),
    [
        ("memory", "accuracy", "reads labels or texts, but a validation of the task memory has numbers"),
        ("elmo", "bits", "reads nats, but a validation of the task elmo has no outputs with references"),
        ("masked", "bleu", "reads texts, but a validation of the task masked has nats, labels"),
    ],
)
def test_a_metric_that_validations_cannot_score_is_refused(
    tmp_path: Path, name: str, metric: str, has: str
) -> None:
    toy = TOYS[name]
    recipe = toy.make(tmp_path / "toy")
    changes = (*toy.changes, f"training.metrics=[{metric}]", "training.max_updates=1")
    answer = weft("train", recipe, "--run", tmp_path / "run", *changes)
    assert f"{metric}: {has}; leave it out" in refused(answer) and not (tmp_path / "run").exists()


def test_a_recipe_cannot_name_a_metric_twice(toy: Path) -> None:
    assert "chrf" in refused(weft("train", toy, "training.metrics=[chrf, chrf]"))


def test_given_answers_have_no_metric(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "given.txt").write_text("uno\n")
    said = refused(weft("evaluate", trained, "--score", tmp_path / "given.txt", "--metric", "wer"))
    assert "--metric" in said


def test_a_metric_of_the_recipe_that_reads_nothing_of_the_task_is_named(tmp_path: Path) -> None:
    run = copied(shared_run("memory"), tmp_path)
    recipe = (run / "recipe.yaml").read_text("utf-8")
    (run / "recipe.yaml").write_text(re.sub(r"(?m)^  metrics: .*$", "  metrics: [wer]", recipe), "utf-8")
    found = weft("evaluate", run)
    assert "note: wer: reads texts" in found.err


def test_a_split_is_of_the_recipes_own_data(tmp_path: Path) -> None:
    data = tmp_path / "x.csv"
    data.write_text("a\n1\n")
    for split in ("valid", "test"):
        assert "--split: is of" in refused(weft("evaluate", tmp_path, "--data", data, "--split", split))
