"""Covariates: what is known ahead is given for the future, what is not is read from the past alone."""

import csv
from pathlib import Path

import numpy as np
import pandas as pd
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
    return np.array([float(row["y"]) for row in csv.DictReader(answer.lines)])


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
    for one, later in (
        (past, ahead),
        (pd.read_csv(past), pd.read_csv(ahead)),
        (str(past), pd.read_csv(ahead)),
    ):
        np.testing.assert_allclose(package.load(run).predict(one, future=later).y, want, rtol=1e-5)


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


def branches(path: Path, days: int = 120, last: str = "") -> Path:
    """Two shops that sell less on a holiday of kind a; values are missing at times."""
    rng = np.random.default_rng(9)
    kinds = [["0", "a", "b"][n] for n in rng.choice(3, size=days, p=[0.6, 0.25, 0.15])]
    lines = ["shop,day,sold,holiday,size"]
    for shop in ("N", "S"):
        for n, kind in enumerate(kinds):
            sold = 50 - 30 * (kind == "a") + rng.normal(0, 0.5)
            ahead = n >= days - HORIZON
            cell = "" if ahead or rng.random() < 0.1 else f"{sold:.2f}"
            kind = last if last and ahead else kind
            lines.append(
                f"{shop},{np.datetime64('2024-01-01') + n},{cell},{kind},{'small' if shop == 'S' else 'big'}"
            )
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("classes")
    file, recipe = branches(folder / "x.csv"), folder / "x.yaml"
    weft("init", "forecast", file, "--horizon", HORIZON, "--target", "sold", "--id", "shop", "--category",
         "holiday,size", "--static", "size", "--gaps", "--transform", "log", "--model", "network",
         "-o", recipe, code=0)  # fmt: skip
    assert (
        'known: ["holiday"]' in recipe.read_text() and 'categories: ["holiday", "size"]' in recipe.read_text()
    )
    weft("train", recipe, "--run", folder / "run", "model.base=none", "model.normalise=none",
         "training.max_epochs=30", "training.patience=30", "training.optimiser.lr=0.02", "data.lookback=8",
         "model.forecaster={use: linear}", "training.monitors=false", code=0)  # fmt: skip
    return folder / "run"


def test_classes_and_static_covariates_are_learnt(classes: Path, tmp_path: Path) -> None:
    found = {
        kind: forecast(weft("predict", classes, branches(tmp_path / "x.csv", last=kind))) for kind in "0a"
    }
    np.testing.assert_allclose(found["0"], 50, atol=4)
    np.testing.assert_allclose(found["a"], 20, atol=4)
    told = refused(weft("predict", classes, branches(tmp_path / "x.csv", last="c")))
    assert "expected one of 0, a, b in column holiday, as in training, got 'c'" in told


def test_a_future_of_classes_may_be_a_table_of_its_own(classes: Path, tmp_path: Path) -> None:
    whole, ahead = branches(tmp_path / "x.csv"), tmp_path / "ahead.csv"
    lines = whole.read_text().splitlines()
    days = {str(np.datetime64("2024-01-01") + n) for n in range(120 - HORIZON, 120)}
    later = [line for line in lines if line.split(",")[1] in days]
    ahead.write_text(
        "\n".join(["shop,day,holiday", *(",".join(np.array(one.split(","))[[0, 1, 3]]) for one in later)])
    )
    expected = forecast(weft("predict", classes, whole))
    whole.write_text("\n".join(line for line in lines if line not in later))
    np.testing.assert_allclose(
        forecast(weft("predict", classes, whole, "--future", ahead)), expected, rtol=1e-5
    )


def test_the_gaps_of_the_past_are_inputs_and_those_of_the_future_are_not(classes: Path) -> None:
    task = open_run(classes).task
    table = task.data.table()  # type: ignore[attr-defined]
    windows = task.data.windows(table)  # type: ignore[attr-defined]
    assert windows.known_size == 3 + 2 + 1  # classes of holidays and sizes, and gaps
    chosen = windows.of(0)
    _, future, known = windows.take(chosen)
    lookback = windows.lookback
    for (number, start), row in zip(chosen[:40], known, strict=False):
        holes = np.isnan(windows.values(number)[start - lookback : start])
        np.testing.assert_array_equal(row[:lookback, -1], holes)
    assert np.isnan(future).any() and not known[:, lookback:, -1].any()


def test_an_export_without_classes_is_refused(classes: Path, tmp_path: Path) -> None:
    told = refused(weft("export", classes, "--to", "onnx", "--output", tmp_path / "out"))
    assert "data: static: the exported program reads numbers as they are" in told


def test_plain_values_take_classes_by_name(classes: Path) -> None:
    model = package.load(classes)
    rows = model.forecaster.data.lookback  # type: ignore[attr-defined]
    known = {"holiday": ["0"] * rows + ["a"] * HORIZON, "size": ["small"] * (rows + HORIZON)}
    np.testing.assert_allclose(model.predict([50.0] * rows, name="S", known=known), 20, atol=4)  # type: ignore[call-arg]
    known["holiday"][-1] = "x"
    with pytest.raises(DataError, match=r"known: expected one of 0, a, b in column holiday, .* got 'x'"):
        model.predict([50.0] * rows, known=known)  # type: ignore[call-arg]
