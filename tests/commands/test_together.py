"""Classifiers, ends of cycles and forecasters that answer together: the mean of what each says."""

import csv
import gzip
import sys
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
def cycled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cycles")
    weft("train", labelled.make_texts(folder / "toy"), "--run", folder / "run", *CYCLES, code=0)
    return folder / "run"


@pytest.mark.slow
def test_the_run_and_the_ends_of_its_cycles_are_averaged_each_once(cycled: Path) -> None:
    ends = sorted((cycled / "cycles").iterdir())
    assert [one.stem[-2:] for one in ends] == ["20", "40", "60"]
    alone = [probabilities(one) for one in ends]
    assert probabilities(cycled) in alone  # the best validation was at the end of a cycle
    for rows, both in zip(
        zip(*alone, strict=True), probabilities(cycled, "--ensemble", cycled / "cycles"), strict=True
    ):
        assert both == pytest.approx({name: sum(row[name] for row in rows) / 3 for name in both}, abs=2e-4)
    answer = weft("evaluate", ends[0], "--ensemble", ends[2])
    assert answer.code == 0 and "2 runs together" in answer.out
    assert "3 runs together" in weft("evaluate", cycled, "--ensemble", cycled / "cycles").out


def test_the_end_that_is_the_best_model_is_not_averaged_with_it(cycled: Path) -> None:
    own = probabilities(cycled)
    (best,) = (one for one in (cycled / "cycles").iterdir() if probabilities(one) == own)
    assert "is the model of" in refused(weft("predict", cycled, "--ensemble", best, stdin=b"fine\n"))


def test_what_has_no_cycles_is_refused(cycled: Path, tmp_path: Path) -> None:
    assert "has no cycles/step-00000021.safetensors" in refused(
        weft("predict", cycled / "cycles" / "step-00000021.safetensors", stdin=b"fine\n")
    )
    (tmp_path / "cycles").mkdir()
    said = refused(weft("predict", cycled, "--ensemble", tmp_path / "cycles", stdin=b"fine\n"))
    assert "expected weights of other cycles" in said


SMALL = (
    "data.horizon=6",
    "model.head.use=quantile",
    "training.max_updates=4",
    "training.validate_every=4",
    "training.monitors=false",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("together")


def trained(forecaster: Path, *changes: str) -> Path:
    weft("train", "waves-segments", "--run", forecaster, *SMALL, "model.forecaster=linear", *changes, code=0)
    return forecaster


@pytest.fixture(scope="module")
def forecaster(folder: Path) -> Path:
    """Reads 30 rows."""
    return trained(folder / "run", "data.lookback=30")


@pytest.fixture(scope="module")
def short(folder: Path) -> Path:
    """Reads 12 rows, of the same series."""
    return trained(folder / "short", "data.lookback=12", "training.seed=5")


@pytest.fixture(scope="module")
def past(folder: Path) -> Path:
    rng = np.random.default_rng(3)
    lines = ["ds,wave1,wave2,wave3"]
    for hour in range(45):
        numbers = ",".join(f"{value:.3f}" for value in rng.normal(size=3))
        lines.append(f"2024-05-{1 + hour // 24:02d} {hour % 24:02d}:00:00,{numbers}")
    (folder / "past.csv").write_text("\n".join(lines) + "\n")
    return folder / "past.csv"


def numbers(past: Path, *arguments: object) -> np.ndarray:
    answer = weft("predict", *arguments, past, "--scores", code=0)
    rows = list(csv.DictReader(answer.lines))
    return np.array([[float(row[name]) for name in row if name not in ("unique_id", "ds")] for row in rows])


def test_an_ensemble_is_the_mean_of_forecasts_and_of_quantiles(
    forecaster: Path, short: Path, past: Path
) -> None:
    first, other = numbers(past, forecaster), numbers(past, short)
    both = numbers(past, forecaster, "--ensemble", short)
    assert both.shape == (18, 4)  # three series of six rows; y and three quantiles
    assert not np.allclose(first, other, atol=1e-2)
    np.testing.assert_allclose(both, (first + other) / 2, atol=1e-4)
    answer = weft("evaluate", forecaster, "--ensemble", short, code=0)
    assert "2 runs together, lookback 30, horizon 6" in answer.out and "pinball" in answer.out


def test_a_member_without_quantiles_leaves_none(forecaster: Path, folder: Path, past: Path) -> None:
    point = trained(folder / "point", "data.lookback=30", "model.head.use=point")
    answer = weft("evaluate", forecaster, "--ensemble", point, code=0)
    assert "MSE" in answer.out and "pinball" not in answer.out
    scored = weft("predict", forecaster, past, "--scores", "--ensemble", point)
    assert f"--ensemble {point}: a point forecast has no quantiles" in refused(scored) and not scored.out
    alone = weft("predict", point, past, "--scores")
    assert "a point forecast has no quantiles" in refused(alone) and not alone.out


def test_what_cannot_join_is_told(forecaster: Path, short: Path, folder: Path) -> None:
    said = refused(weft("evaluate", short, "--ensemble", forecaster))
    assert f"--ensemble {forecaster}: it reads 30 rows, here 12; name the run with most rows first" in said
    far = trained(folder / "far", "data.lookback=12", "data.horizon=7")
    assert "expected a horizon of 6 steps" in refused(weft("evaluate", forecaster, "--ensemble", far))
    more = trained(folder / "more", "data.lookback=30", "data.split=[0.9, 0.05, 0.05]")
    assert "it has other training rows" in refused(weft("evaluate", forecaster, "--ensemble", more))
    calendar = trained(folder / "calendar", "data.lookback=30", "data.calendar=true")
    assert "it has another data.calendar" in refused(weft("evaluate", forecaster, "--ensemble", calendar))


def test_covariates_and_parts_of_members_are_the_same(folder: Path) -> None:
    table = folder / "known.csv"
    rows = [f"2024-01-{1 + n // 24:02d} {n % 24:02d}:00:00,{n % 7},{n % 5},{n % 3}" for n in range(400)]
    table.write_text("ds,y,one,two\n" + "\n".join(rows) + "\n")
    data = (f"data.file={table}", "data.generated=null", "data.targets=[y]", "data.lookback=12")
    first = trained(folder / "known-one", *data, "data.known=[one]")
    other = trained(folder / "known-two", *data, "data.known=[two]")
    assert "it has another data.known" in refused(weft("evaluate", first, "--ensemble", other))
    parts = trained(folder / "parts", *data, "data.known=[one]", "data.split=[0.7, 0.2, 0.1]")
    said = refused(weft("evaluate", first, "--ensemble", parts))
    assert "its data.split is [0.7, 0.2, 0.1], here [0.7, 0.1, 0.2]" in said and str(parts) in said
    assert weft("evaluate", first, "--ensemble", parts, "--data", table).code == 0


def test_forecasts_become_a_csv_or_parquet_file(forecaster: Path, past: Path, tmp_path: Path) -> None:
    shown = weft("predict", forecaster, past, "--scores")
    assert weft("predict", forecaster, past, "--scores", "--output", tmp_path / "out.csv").code == 0
    assert (tmp_path / "out.csv").read_text("utf-8") == shown.out
    parquet = pytest.importorskip("pyarrow.parquet", reason="NO PYARROW: pip install weft-seq[parquet]")
    assert weft("predict", forecaster, past, "--scores", "--output", tmp_path / "out.parquet").code == 0
    table = parquet.read_table(tmp_path / "out.parquet").to_pydict()
    rows = list(csv.DictReader(shown.lines))
    assert list(table) == list(rows[0]) and len(table["y"]) == 18
    assert table["y"] == pytest.approx([float(row["y"]) for row in rows], abs=1e-5)
    assert any(len(repr(value)) > 12 for value in table["y"])  # all digits
    assert [f"{time}" for time in table["ds"]] == [row["ds"] for row in rows]
    assert {len(row["ds"]) for row in rows} == {len("2024-05-02 16:00:00")}  # over midnight too
    assert table["unique_id"] == [row["unique_id"] for row in rows]


def test_without_pyarrow_a_parquet_file_is_refused_in_a_sentence(
    forecaster: Path, past: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    said = refused(weft("predict", forecaster, past, "--output", tmp_path / "out.parquet"))
    assert "pip install 'weft-seq[parquet]'" in said and not (tmp_path / "out.parquet").exists()


def test_a_model_without_covariates_takes_no_future(forecaster: Path, past: Path) -> None:
    assert "--future: this model reads no covariates" in refused(
        weft("predict", forecaster, past, "--future", past)
    )
