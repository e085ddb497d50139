"""Covariates: what is known ahead is given for the future, what is not is read from the past alone."""

import csv
import io
from pathlib import Path

import numpy as np
import pytest
import torch

import weft as package
from tests.commands.shell import Answer, refused, weft
from weft.errors import ConfigError, DataError
from weft.run import open_run
from weft.tasks.forecast.data import SeriesData
from weft.tasks.forecast.model import tensors

ROWS, LOOKBACK, HORIZON = 170, 6, 4


def shop(path: Path, rows: int = ROWS, empty: int = 0) -> Path:
    """A holiday takes 50 off, yesterday's weather comes on top; the last rows may have no sales."""
    rng = np.random.default_rng(5)
    holiday, weather = (rng.random(ROWS) < 0.2).astype(int), rng.normal(size=ROWS)
    sales = 100 - 50 * holiday + 5 * np.concatenate([[0], weather[:-1]])
    lines = ["date,sales,holiday,weather"]
    for row in range(rows + empty):
        day = np.datetime64("2024-01-01") + row
        cells = f"{sales[row]:.4f},{holiday[row]},{weather[row]:.4f}" if row < rows else f",{holiday[row]},"
        lines.append(f"{day},{cells}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop")
    recipe = folder / "x.yaml"
    recipe.write_text(
        f"task: forecast\ndata:\n  file: {shop(folder / 'x.csv')}\n  targets: [sales]\n  known: [holiday]\n"
        f"  past: [weather]\n  lookback: {LOOKBACK}\n  horizon: {HORIZON}\n  batch_rows: 16\n"
        "model:\n  forecaster: {use: linear}\n  head: point\n  normalise: mean\n"
        "training:\n  optimiser: {use: adam, lr: 0.02}\n  max_epochs: 25\n  metric: mse\n  monitors: false\n"
    )
    weft("train", recipe, "--run", folder / "run", code=0)
    return folder / "run"


def forecast(answer: Answer) -> np.ndarray:
    assert answer.code == 0, answer.err
    return np.array([float(row["y"]) for row in csv.DictReader(io.StringIO(answer.out))])


def future(path: Path, holidays: list[object], begin: int = 150) -> Path:
    lines = [f"{np.datetime64('2024-01-01') + begin + n},{holiday}" for n, holiday in enumerate(holidays)]
    path.write_text("date,holiday\n" + "\n".join(lines) + "\n")
    return path


def test_every_way_to_give_the_future_gives_the_same_forecast(run: Path, tmp_path: Path) -> None:
    past = shop(tmp_path / "past.csv", 150)
    rows = shop(tmp_path / "rows.csv", 150, HORIZON)
    table = list(csv.DictReader(rows.read_text().splitlines()))
    ahead = future(tmp_path / "future.csv", [row["holiday"] for row in table[150:]])
    want = forecast(weft("predict", run, rows))
    np.testing.assert_array_equal(forecast(weft("predict", run, past, "--future", ahead)), want)
    got = package.load(run).predict(
        [float(row["sales"]) for row in table[:150]],
        known={"holiday": [float(row["holiday"]) for row in table]},
        past={"weather": [float(row["weather"]) for row in table[:150]]},
    )
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_a_holiday_moves_its_own_day_and_no_other(run: Path, tmp_path: Path) -> None:
    past = shop(tmp_path / "past.csv", 150)
    without, with_one = (
        forecast(weft("predict", run, past, "--future", future(tmp_path / "f.csv", list(days))))
        for days in ((0, 0, 0, 0), (0, 0, 1, 0))
    )
    assert abs(with_one[2] - without[2] + 50) < 15
    np.testing.assert_allclose(with_one[[0, 1, 3]], without[[0, 1, 3]], atol=1e-3)


@pytest.mark.parametrize("days", [[], [0, 1, 0], [0, "", 1, 0]])
def test_a_missing_future_is_refused_with_what_to_supply(
    run: Path, tmp_path: Path, days: list[object]
) -> None:
    past, ahead = shop(tmp_path / "past.csv", 150), future(tmp_path / "future.csv", days)
    answer = weft("predict", run, past, *(["--future", ahead] if days else []))
    said = refused(answer)
    assert not answer.out
    missing = {0: "2024-05-30, 2024-05-31", 3: "2024-06-02)", 4: "(2024-05-31)"}[len(days)]
    assert missing in said and "expected holiday for the 4 rows" in said and "--future FILE" in said


def test_a_future_of_other_days_is_refused(run: Path, tmp_path: Path) -> None:
    past = shop(tmp_path / "past.csv", 150)
    said = refused(weft("predict", run, past, "--future", future(tmp_path / "future.csv", [0, 0], begin=160)))
    assert "from 2024-05-30 on" in said


def test_predict_and_evaluate_read_the_same(run: Path, tmp_path: Path) -> None:
    """A window of the test part, forecast as evaluate does it and from the table cut off before it."""
    opened = open_run(run)
    task = opened.task
    table = task.data.table()
    windows = task.data.windows(table)
    past, _ = tensors(windows, np.array([[0, 150]]), torch.device("cpu"))
    scale = windows.scale
    want = opened.model.best(past).detach().numpy()[0] * scale.std[0] + scale.mean[0]  # type: ignore[operator]
    got = forecast(weft("predict", run, shop(tmp_path / "rows.csv", 150, HORIZON)))
    np.testing.assert_allclose(got, want, rtol=1e-4)


def test_the_weather_of_the_past_is_read_and_none_is_asked_of_the_future(run: Path, tmp_path: Path) -> None:
    rows = shop(tmp_path / "rows.csv", 150, HORIZON)
    before = forecast(weft("predict", run, rows))
    lines = rows.read_text().splitlines()
    cells = lines[150].split(",")  # the last measured day
    lines[150] = ",".join([*cells[:3], str(float(cells[3]) + 2)])
    rows.write_text("\n".join(lines) + "\n")
    after = forecast(weft("predict", run, rows))
    assert 5 < after[0] - before[0] < 15  # 10 in truth


def test_wrong_covariates_are_told_in_python_and_in_a_recipe(run: Path, tmp_path: Path) -> None:
    loaded = package.load(run)
    with pytest.raises(DataError, match="known: expected holiday, got none"):
        loaded.predict([1.0] * 9)
    with pytest.raises(DataError, match="expected 13 values of holiday, got 9"):
        loaded.predict([1.0] * 9, known={"holiday": [0.0] * 9}, past={"weather": [0.0] * 9})
    said = refused(weft("train", run / "recipe.yaml", "--run", tmp_path / "x", "data.past=[holiday]"))
    assert "'holiday' is named twice" in said


def test_times_at_another_frequency_than_the_trainings_are_refused(run: Path, tmp_path: Path) -> None:
    path = shop(tmp_path / "x.csv", 100, HORIZON)
    lines = path.read_text().splitlines()
    path.write_text(
        "\n".join([line.replace(",", " 07:00,", 1) if n == 9 else line for n, line in enumerate(lines)])
    )
    said = refused(weft("predict", run, path))
    assert "frequency D, got 2024-01-09 07:00" in said
    with pytest.raises(ConfigError, match="resample"):
        SeriesData(file="x.csv", resample="mean")
