"""Classifiers that decide together: each reads texts its own way, the mean of their probabilities counts."""

import gzip
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import weft as package
from tests.commands import labelled
from tests.commands.shell import refused, unanswered, weft
from weft.tasks.classify.data import LabelData
from weft.tasks.classify.predictor import TextClassifier
from weft.tasks.classify.reader import LabelDecision

SHORT = ("training.max_updates=6", "training.validate_every=6")


TASK = "classify"


@pytest.fixture(scope="module")
def second(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of the same texts that reads letters."""
    changes = ("data.vocabulary.kind=character", *SHORT)
    folder = tmp_path_factory.mktemp("ensemble")
    weft("train", labelled.make_texts(folder / "toy"), "--run", folder / "run", *changes, code=0)
    return folder / "run"


def probabilities(*arguments: object) -> list[dict[str, float]]:
    lines = weft("predict", *arguments, "--scores", stdin=b"it was awful\nso good\nodd\n").lines
    return [
        {name: float(prob) for name, _, prob in (cell.rpartition("=") for cell in line.split("\t")[1:])}
        for line in lines
    ]


def test_an_ensemble_is_the_mean_of_the_probabilities(run: Path, second: Path) -> None:
    first, other, both = probabilities(run), probabilities(second), probabilities(run, "--ensemble", second)
    for one, two, mean in zip(first, other, both, strict=True):
        assert mean == pytest.approx({name: (one[name] + two[name]) / 2 for name in one}, abs=2e-4)
        assert one != two
    answer = weft("evaluate", run, "--ensemble", second)
    assert answer.code == 0 and "29 texts" in answer.out and "2 runs together" in answer.out


def test_a_table_is_read_as_one_whatever_it_is_packed_in(run: Path, tmp_path: Path) -> None:
    table = tmp_path / "new.csv.gz"
    table.write_bytes(gzip.compress(b"text,label\nit was awful,bad\nso good,good\n"))
    shown = weft("predict", run, table)
    assert shown.lines[0] == "text,label,predicted" and len(shown.lines) == 3
    assert weft("predict", run, table, "--output", tmp_path / "out.txt").code == 0
    assert (tmp_path / "out.txt").read_text("utf-8") == shown.out


def test_what_cannot_join_an_ensemble_is_told(run: Path, second: Path, tmp_path: Path) -> None:
    folded = tmp_path / "folded"
    changes = ("data.hold_out=9", "data.valid=null", "data.test=null", "data.folds=3", "data.fold=1", *SHORT)
    assert weft("train", run.parent / "toy" / "toy.yaml", "--run", folded, *changes).code == 0
    assert "has a different split" in refused(weft("evaluate", run, "--ensemble", folded))
    test = run.parent / "toy" / "test.csv"  # which none of them has seen
    assert weft("evaluate", run, "--ensemble", folded, "--data", test).code == 0
    other = tmp_path / "other"
    toy = labelled.make_texts(tmp_path / "toy")
    for file in toy.parent.iterdir():
        if file != toy:
            file.write_text(file.read_text().replace("good", "yes").replace("bad", "no"))
    assert weft("train", toy, "--run", other, *SHORT).code == 0
    said = refused(weft("evaluate", run, "--ensemble", other))
    assert "its classes are no, yes, here they are bad, good" in said and str(other) in said
    drawn = weft("predict", run, "--ensemble", second, "--pictures", tmp_path / "plots", stdin=b"fine\n")
    assert "shows the attention of one model" in refused(drawn)


def test_no_run_counts_twice(run: Path, second: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(second)
    for others, word in (((run,), "is the model of"), ((second, tmp_path / "link"), "is named twice")):
        members = [word for other in others for word in ("--ensemble", other)]
        for command in ("evaluate", "predict"):
            assert word in refused(weft(command, run, *members, stdin=b"fine\n"))


def test_an_ensemble_pairs_classes_by_their_names(run: Path) -> None:
    own = package.load(run)
    names = list(reversed(own.reader.classes))
    sure = LabelDecision(names[0], np.array([1.0, 0.0]))
    other: Any = SimpleNamespace(
        reader=SimpleNamespace(classes=names), _window=lambda texts: [sure] * len(texts)
    )
    (alone,), (both,) = (
        own.classify(["odd"]),
        TextClassifier(own.model, own.reader, LabelData(corpus="x"), others=[other]).classify(["odd"]),
    )
    number = own.reader.classes.index(names[0])
    assert both.probs[number] == pytest.approx((alone.probs[number] + 1) / 2)


def test_a_row_that_cannot_be_read_leaves_its_cells_empty(run: Path, tmp_path: Path) -> None:
    csv, tsv, plain = (tmp_path / name for name in ("in.csv", "in.tsv", "plain.tsv"))
    csv.write_bytes(b'text,n\nit was great,1\n"caf\xe9\ngrim",2\nso dull,3,4\ngrim film,7\n')
    answer = weft("predict", run, csv, "--scores")
    assert [line.split(": ")[1] for line in unanswered(answer)] == [f"{csv}:3", f"{csv}:5"]
    rows = [line.split(",") for line in answer.lines]
    assert [row[:3] for row in rows] == [
        ["text", "n", "predicted"],
        ["it was great", "1", "good"],
        ["", "", ""],
        ["", "", ""],
        ["grim film", "7", "bad"],
    ]
    assert {len(row) for row in rows} == {5}
    tsv.write_bytes(b"text\tn\ncaf\xe9\t1\nit was great\t2\n")
    answer = weft("predict", run, tsv)
    assert len(unanswered(answer)) == 1 and answer.lines == [
        "text\tn\tpredicted",
        "\t\t",
        "it was great\t2\tgood",
    ]
    plain.write_bytes(b"bad\tgrim film\ngood\tcaf\xe9\ngood\tit was great\n")
    answer = weft("predict", run, plain)
    assert len(unanswered(answer)) == 1 and answer.lines == ["bad", "", "good"]


CYCLES = ("training.schedule={use: cosine_restarts, cycles: 3}", "training.validate_every=100")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cycles")
    weft("train", labelled.make_texts(folder / "toy"), "--run", folder / "run", *CYCLES, code=0)
    return folder / "run"


@pytest.mark.slow
def test_the_run_and_the_ends_of_its_cycles_are_averaged_each_once(run: Path) -> None:
    ends = sorted((run / "cycles").iterdir())
    assert [one.stem[-2:] for one in ends] == ["20", "40", "60"]
    alone = [probabilities(one) for one in ends]
    assert probabilities(run) in alone  # the best validation was at the end of a cycle
    for rows, both in zip(
        zip(*alone, strict=True), probabilities(run, "--ensemble", run / "cycles"), strict=True
    ):
        assert both == pytest.approx({name: sum(row[name] for row in rows) / 3 for name in both}, abs=2e-4)
    answer = weft("evaluate", ends[0], "--ensemble", ends[2])
    assert answer.code == 0 and "2 runs together" in answer.out
    assert "3 runs together" in weft("evaluate", run, "--ensemble", run / "cycles").out


def test_the_end_that_is_the_best_model_is_not_averaged_with_it(run: Path) -> None:
    own = probabilities(run)
    (best,) = (one for one in (run / "cycles").iterdir() if probabilities(one) == own)
    assert "is the model of" in refused(weft("predict", run, "--ensemble", best, stdin=b"fine\n"))


def test_what_has_no_cycles_is_refused(run: Path, tmp_path: Path) -> None:
    assert "has no cycles/step-00000021.safetensors" in refused(
        weft("predict", run / "cycles" / "step-00000021.safetensors", stdin=b"fine\n")
    )
    (tmp_path / "cycles").mkdir()
    said = refused(weft("predict", run, "--ensemble", tmp_path / "cycles", stdin=b"fine\n"))
    assert "expected weights of other cycles" in said
