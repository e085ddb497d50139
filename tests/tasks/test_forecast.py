"""The task forecast from the command line: trained, scored beside its floors, used on a table."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

import weft as package
from tests.commands.shell import weft
from weft.tasks.series.data import waves


def table(path: Path, rows: int = 700) -> Path:
    series = waves(1, rows).series[0]
    lines = ["date,one,two,three"]
    lines += [
        f"{str(t).replace('T', ' ')},{a:.5f},{b:.5f},{c:.5f}"
        for t, (a, b, c) in zip(series.times, series.values, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("forecast")
    recipe = folder / "x.yaml"
    recipe.write_text(
        f"task: forecast\ndata:\n  file: {table(folder / 'x.csv')}\n  lookback: 24\n  horizon: 12\n"
        "model:\n  forecaster: {use: segments, segment: 6, hidden: 24}\n  head: normal\n"
        "training:\n  optimiser: {use: adam, lr: 0.01}\n  max_epochs: 6\n  metric: mse\n"
    )
    answer = weft("train", recipe, "--run", folder / "run")
    assert answer.code == 0, answer.err
    return folder / "run"


def test_it_beats_the_last_value_and_says_so(run: Path, tmp_path: Path) -> None:
    plot = tmp_path / "scores.png"
    answer = weft("evaluate", run, "--json", tmp_path / "x.json", "--plot", plot)
    assert answer.code == 0 and plot.stat().st_size > 5000
    found = json.loads((tmp_path / "x.json").read_text("utf-8"))
    assert found["mse"] < found["floors"]["last value repeated"]["mse"]
    assert set(found["floors"]) >= {"last value repeated", "last season (24) repeated"}
    assert 0.3 < found["coverage"] <= 1 and len(found["by_step"]) == 12
    assert "none dropped" in answer.out


def test_every_series_goes_on_where_its_table_ends(run: Path, tmp_path: Path) -> None:
    new = table(tmp_path / "new.csv", 60)
    answer = weft("predict", run, new, "--scores", "--plot", tmp_path / "pictures", "--plot-limit", "1")
    assert answer.code == 0, answer.err
    rows = list(csv.DictReader(io.StringIO(answer.out)))
    assert [row["unique_id"] for row in rows] == ["one"] * 12 + ["two"] * 12 + ["three"] * 12
    assert rows[0]["ds"] == "2024-01-03 12:00:00" and rows[11]["ds"] == "2024-01-03 23:00:00"
    assert all(float(row["q0.1"]) < float(row["y"]) < float(row["q0.9"]) for row in rows)
    assert (tmp_path / "pictures" / "1.svg").exists() and not (tmp_path / "pictures" / "2.svg").exists()
    values = waves(1, 60).series[0].values[:, 1].round(5)
    want = [float(row["y"]) for row in rows[12:24]]
    np.testing.assert_allclose(package.load(run).predict(list(values), "two"), want, rtol=1e-4, atol=1e-4)


def test_a_past_that_is_too_short_is_refused(run: Path, tmp_path: Path) -> None:
    answer = weft("predict", run, table(tmp_path / "new.csv", 20))
    assert answer.code == 2 and "20 rows came, the model reads 24; give a longer past" in answer.err


def test_init_looks_at_the_file_and_data_check_names_holes(tmp_path: Path) -> None:
    file = table(tmp_path / "mine.csv", 400)
    answer = weft("init", "forecast", "--file", file, "--horizon", "24", "-o", tmp_path / "mine.yaml")
    assert answer.code == 0, answer.err
    answer = weft("train", tmp_path / "mine.yaml", "--run", tmp_path / "run", "training.max_updates=2")
    assert answer.code == 0, answer.err
    lines = file.read_text("utf-8").splitlines()
    lines[7] = lines[7].rpartition(",")[0] + ","
    file.write_text("\n".join(lines) + "\n", "utf-8")
    answer = weft("data", "check", file)
    assert answer.code == 1 and "column three: 1 of 400 values are missing" in answer.out
