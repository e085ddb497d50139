"""Forecasters together: the mean of their forecasts, each reading as far back as it does."""

import csv
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.commands.shell import refused, weft

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


def trained(run: Path, *changes: str) -> Path:
    weft("train", "waves-segments", "--run", run, *SMALL, "model.forecaster=linear", *changes, code=0)
    return run


@pytest.fixture(scope="module")
def run(folder: Path) -> Path:
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


def test_an_ensemble_is_the_mean_of_forecasts_and_of_quantiles(run: Path, short: Path, past: Path) -> None:
    first, other = numbers(past, run), numbers(past, short)
    both = numbers(past, run, "--ensemble", short)
    assert both.shape == (18, 4)  # three series of six rows; y and three quantiles
    assert not np.allclose(first, other, atol=1e-2)
    np.testing.assert_allclose(both, (first + other) / 2, atol=1e-4)
    answer = weft("evaluate", run, "--ensemble", short, code=0)
    assert "2 runs together, lookback 30, horizon 6" in answer.out and "pinball" in answer.out


def test_a_member_without_quantiles_leaves_none(run: Path, folder: Path, past: Path) -> None:
    point = trained(folder / "point", "data.lookback=30", "model.head.use=point")
    answer = weft("evaluate", run, "--ensemble", point, code=0)
    assert "MSE" in answer.out and "pinball" not in answer.out
    scored = weft("predict", run, past, "--scores", "--ensemble", point)
    assert f"--ensemble {point}: a point forecast has no quantiles" in refused(scored) and not scored.out
    alone = weft("predict", point, past, "--scores")
    assert "a point forecast has no quantiles" in refused(alone) and not alone.out


def test_what_cannot_join_is_told(run: Path, short: Path, folder: Path) -> None:
    said = refused(weft("evaluate", short, "--ensemble", run))
    assert f"--ensemble {run}: it reads 30 rows, here 12; name the run with most rows first" in said
    far = trained(folder / "far", "data.lookback=12", "data.horizon=7")
    assert "expected a horizon of 6 steps" in refused(weft("evaluate", run, "--ensemble", far))
    more = trained(folder / "more", "data.lookback=30", "data.split=[0.9, 0.05, 0.05]")
    assert "it has other training rows" in refused(weft("evaluate", run, "--ensemble", more))
    calendar = trained(folder / "calendar", "data.lookback=30", "data.calendar=true")
    assert "it has another data.calendar" in refused(weft("evaluate", run, "--ensemble", calendar))


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


def test_forecasts_become_a_csv_or_parquet_file(run: Path, past: Path, tmp_path: Path) -> None:
    shown = weft("predict", run, past, "--scores")
    assert weft("predict", run, past, "--scores", "--output", tmp_path / "out.csv").code == 0
    assert (tmp_path / "out.csv").read_text("utf-8") == shown.out
    parquet = pytest.importorskip("pyarrow.parquet", reason="NO PYARROW: pip install weft-seq[parquet]")
    assert weft("predict", run, past, "--scores", "--output", tmp_path / "out.parquet").code == 0
    table = parquet.read_table(tmp_path / "out.parquet").to_pydict()
    rows = list(csv.DictReader(shown.lines))
    assert list(table) == list(rows[0]) and len(table["y"]) == 18
    assert table["y"] == pytest.approx([float(row["y"]) for row in rows], abs=1e-5)
    assert any(len(repr(value)) > 12 for value in table["y"])  # all digits
    assert [f"{time}" for time in table["ds"]] == [row["ds"] for row in rows]
    assert {len(row["ds"]) for row in rows} == {len("2024-05-02 16:00:00")}  # over midnight too
    assert table["unique_id"] == [row["unique_id"] for row in rows]


def test_without_pyarrow_a_parquet_file_is_refused_in_a_sentence(
    run: Path, past: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    said = refused(weft("predict", run, past, "--output", tmp_path / "out.parquet"))
    assert "pip install 'weft-seq[parquet]'" in said and not (tmp_path / "out.parquet").exists()


def test_a_model_without_covariates_takes_no_future(run: Path, past: Path) -> None:
    assert "--future: this model reads no covariates" in refused(weft("predict", run, past, "--future", past))
