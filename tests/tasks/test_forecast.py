"""The task forecast from the command line: trained, scored beside its baselines, used on a table."""

import csv
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import weft as package
from tests import toys
from tests.commands.shell import refused, weft
from weft.data.windows import PowerTransform, power_of
from weft.errors import ConfigError, DataError
from weft.nn.heads.head import Head, Normal, Point, Quantile
from weft.run import open_run
from weft.tasks.forecast.data import SeriesData, waves
from weft.tasks.forecast.model import ForecastModel
from weft.tasks.forecast.predictor import Horizon
from weft.tasks.forecast.task import ForecastTask


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("forecast")
    recipe = folder / "x.yaml"
    recipe.write_text(
        f"task: forecast\ndata:\n  file: {toys.table(folder / 'x.csv')}\n  lookback: 24\n  horizon: 12\n"
        "model:\n  forecaster: {use: segments, segment: 6, hidden: 24}\n  head: normal\n"
        "training:\n  optimiser: {use: adam, lr: 0.01}\n  max_epochs: 6\n  metric: mse\n"
    )
    weft("train", recipe, "--run", folder / "run", code=0)
    return folder / "run"


def test_it_beats_the_last_value_and_says_so(run: Path, tmp_path: Path) -> None:
    plot = tmp_path / "scores.svg"
    answer = weft("evaluate", run, "--json", tmp_path / "x.json", "--plot", plot)
    assert answer.code == 0 and plot.stat().st_size > 5000
    for shown in ("actual", "80 % band", "last value repeated"):
        assert shown in plot.read_text("utf-8")
    found = json.loads((tmp_path / "x.json").read_text("utf-8"))
    assert found["mse"] < found["baselines"]["last value repeated"]["mse"]
    assert set(found["baselines"]) >= {"last value repeated", "last season (24) repeated"}
    assert 0.3 < found["coverage"] <= 1 and len(found["by_step"]) == 12
    assert "none dropped" in answer.out


def test_metrics_of_numbers_score_it_in_units_beside_the_baselines(run: Path, tmp_path: Path) -> None:
    asked = [
        word for name in ("mae", "rmse", "mase", "smape", "pinball", "rmsse") for word in ("--metric", name)
    ]
    weft("evaluate", run, *asked, "--json", tmp_path / "x.json", code=0)
    scores = json.loads((tmp_path / "x.json").read_text("utf-8"))["scores"]
    for own, more in {
        "MAE in units": "MAE (mae)",
        "RMSE in units": "RMSE",
        "MASE": "MASE (mase)",
        "sMAPE": "sMAPE (smape)",
        "pinball in units": "pinball (pinball)",
    }.items():
        for key in ("value", "low", "high", "size"):
            assert scores[own][key] == pytest.approx(scores[more][key]), own
        assert scores[own]["baselines"] == pytest.approx(scores[more]["baselines"])
        assert "|none dropped|blocks of 12 origins|" in scores[more]["signature"]
    assert scores["RMSSE"]["baselines"].keys() == scores["MSE"]["baselines"].keys()
    said = refused(weft("evaluate", run, "--metric", "bleu"))
    assert said.endswith("reads texts, but the task forecast has numbers, forecasts; leave it out"), said


def test_a_metric_of_numbers_chooses_the_checkpoint(run: Path, tmp_path: Path) -> None:
    few = "training.max_updates=2", "training.validate_every=1", "training.metrics=[wape, mase]"
    weft("train", run / "recipe.yaml", "--run", tmp_path / "run", *few, "training.metric=mase", code=0)
    index = json.loads((tmp_path / "run" / "checkpoints.json").read_text("utf-8"))
    assert (index["metric"], index["better"]) == ("mase", "lower")
    assert index["validations"][0]["scores"].keys() == {"mse", "mae", "wape", "mase"}
    weft("evaluate", tmp_path / "run", "--split", "valid", "--json", tmp_path / "x.json", code=0)
    best = min(one["scores"]["mase"] for one in index["validations"])
    scores = json.loads((tmp_path / "x.json").read_text("utf-8"))["scores"]
    assert scores["MASE"]["value"] == pytest.approx(best, rel=1e-6) and "WAPE" in scores


def test_every_series_goes_on_where_its_table_ends(run: Path, tmp_path: Path) -> None:
    new = toys.table(tmp_path / "new.csv", 60)
    answer = weft(
        "predict", run, new, "--scores", "--pictures", tmp_path / "pictures", "--max-pictures", "1", code=0
    )
    rows = list(csv.DictReader(answer.lines))
    assert [row["unique_id"] for row in rows] == ["one"] * 12 + ["two"] * 12 + ["three"] * 12
    assert rows[0]["ds"] == "2024-01-03 12:00:00" and rows[11]["ds"] == "2024-01-03 23:00:00"
    assert all(float(row["q0.1"]) < float(row["y"]) < float(row["q0.9"]) for row in rows)
    assert [path.name for path in sorted((tmp_path / "pictures").iterdir())] == ["one.png", "one.svg"]
    values = waves(1, 60).series[0].values[:, 1].round(5)
    want = [float(row["y"]) for row in rows[12:24]]
    np.testing.assert_allclose(package.load(run).predict(list(values), "two"), want, rtol=1e-4, atol=1e-4)


def test_a_table_may_come_by_standard_input(run: Path, tmp_path: Path) -> None:
    new = toys.table(tmp_path / "new.csv", 60)
    assert weft("predict", run, stdin=new.read_bytes()).lines == weft("predict", run, new).lines
    answer = weft("predict", run, stdin=b"date,one,two,three\n2024-01-01,1,2,x\n")
    assert answer.code == 2 and "standard input:2: 'x' in column three" in answer.err.splitlines()[-1]


@pytest.mark.slow
def test_what_init_writes_beats_the_baselines_of_a_short_file(tmp_path: Path) -> None:
    """A season of a week over two years, as a user has it: few windows, quantiles, a calendar."""
    chance, days = np.random.default_rng(1), np.arange("2024-01-01", "2025-06-01", dtype="datetime64[D]")
    week = 20 + 6 * np.sin(2 * np.pi * np.arange(len(days)) / 7) + chance.normal(0, 0.5, len(days))
    lines = [f"{day},{value:.3f}" for day, value in zip(days, week, strict=True)]
    (tmp_path / "sales.csv").write_text("date,bread\n" + "\n".join(lines) + "\n")
    recipe, where = tmp_path / "x.yaml", tmp_path / "run"
    assert weft("init", "forecast", "--file", tmp_path / "sales.csv", "--horizon", 14, "-o", recipe).code == 0
    weft("train", recipe, "--run", where, "training.monitors=false", "training.tensorboard=false", code=0)
    assert weft("evaluate", where, "--json", tmp_path / "x.json").code == 0
    found = json.loads((tmp_path / "x.json").read_text("utf-8"))
    assert found["mse"] < found["baselines"]["last season (7) repeated"]["mse"]
    assert found["mse"] < 0.1 * found["baselines"]["last value repeated"]["mse"]
    assert found["coverage"] > 0.6


def test_a_past_that_is_too_short_is_refused(run: Path, tmp_path: Path) -> None:
    answer = weft("predict", run, toys.table(tmp_path / "new.csv", 20))
    assert answer.code == 2 and "at least 24 rows, got 20" in answer.err


@pytest.mark.parametrize("rows", [0, 1, 3, 12, 13])
def test_a_table_is_ready_if_init_and_train_take_it(tmp_path: Path, rows: int) -> None:
    days = np.datetime64("2024-01-01") + np.arange(rows)
    file, recipe = tmp_path / "x.csv", tmp_path / "x.yaml"
    file.write_text("\n".join(["date,v", *(f"{day},{n % 7}" for n, day in enumerate(days))]) + "\n")
    ready = rows >= 13
    answer = weft("data", "check", file, "--task", "forecast")
    assert answer.code == (not ready) and (ready or rows == 0 or "at least 13 rows to train on" in answer.out)
    made = weft("init", "forecast", "--file", file, "--horizon", 1, "-o", recipe)
    assert made.code == (0 if ready else 2)
    if ready:
        assert weft("train", recipe, "--run", tmp_path / "run", "training.max_updates=1").code == 0


def test_a_column_without_values_to_train_on_is_not_ready(tmp_path: Path) -> None:
    rows = [
        f"{day},{n},{n if n > 16 else ''}"
        for n, day in enumerate(np.datetime64("2024-01-01") + np.arange(20))
    ]
    (tmp_path / "x.csv").write_text("\n".join(["date,v,late", *rows]) + "\n")
    answer = weft("data", "check", tmp_path / "x.csv")
    assert answer.code == 1 and "column late: no value in the training rows" in answer.out
    asked = ("init", "forecast", "--file", tmp_path / "x.csv", "--horizon", 1, "-o", tmp_path / "x.yaml")
    assert weft(*asked).code == 2


def test_init_says_how_long_the_shortest_and_the_longest_series_are(tmp_path: Path) -> None:
    days = np.datetime64("2024-01-01") + np.arange(83)
    first, second = ([f"{name},{one},1" for one in days[:count]] for name, count in (("a", 83), ("b", 61)))
    file = tmp_path / "long.csv"
    for rows, said in (
        (first + second, "# 2 series of 61 to 83 rows in"),
        (first, "# 1 series of 83 rows in"),
    ):
        file.write_text("\n".join(["unique_id,ds,y", *rows]) + "\n")
        recipe = tmp_path / f"{len(rows)}.yaml"
        assert weft("init", "forecast", "--file", file, "--horizon", 7, "-o", recipe).code == 0
        assert recipe.read_text().startswith(said)


@pytest.mark.parametrize(
    ("head", "unit"),
    [
        (Point, "squared error"),
        (partial(Point, error="absolute"), "absolute error"),
        (Quantile, "pinball loss"),
        (Normal, "nats"),
    ],
)
def test_the_unit_of_the_loss_is_that_of_the_head(head: Callable[..., Head], unit: str) -> None:
    data = SeriesData(generated="waves")
    assert ForecastTask(data=data, model=ForecastModel(head=head), decoding=Horizon()).loss_unit == unit


def followed(path: Path, rows: int = 500) -> Path:
    """What `after` is, `before` was three rows ago; nothing else says so."""
    draw = np.random.default_rng(3).normal(size=rows + 3)
    lines = ["date,before,after"]
    start = np.datetime64("2024-01-01T00", "s")
    for row in range(rows):
        time = str(start + np.timedelta64(3600 * row, "s")).replace("T", " ")
        lines.append(f"{time},{draw[row + 3]:.5f},{draw[row]:.5f}")
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


@pytest.mark.parametrize(
    "forecaster",
    ["{use: linear}", "{use: recurrent, cell: gru, sizes: [24]}"],
)
@pytest.mark.slow
def test_other_columns_are_inputs_where_they_are_asked_for(forecaster: str, tmp_path: Path) -> None:
    recipe = tmp_path / "x.yaml"
    recipe.write_text(
        f"task: forecast\ndata:\n  file: {followed(tmp_path / 'x.csv')}\n  lookback: 6\n  horizon: 2\n"
        f"  targets: [after]\nmodel: {{forecaster: {forecaster}, head: point, normalise: none}}\n"
        "training:\n  optimiser: {use: adam, lr: 0.02}\n  max_epochs: 25\n  metric: mse\n"
    )
    errors = {}
    for inputs in ("own", "all"):
        run = tmp_path / inputs
        weft("train", recipe, "--run", run, f"data.inputs={inputs}", code=0)
        weft("evaluate", run, "--json", tmp_path / "x.json", code=0)
        errors[inputs] = json.loads((tmp_path / "x.json").read_text("utf-8"))["mse"]
    assert errors["own"] > 0.7 and errors["all"] < 0.2  # noise by itself, known from the other column
    new = followed(tmp_path / "new.csv", 40)
    answer = weft("predict", tmp_path / "all", new)
    rows = list(csv.DictReader(answer.lines))
    assert [row["unique_id"] for row in rows] == ["after"] * 2
    before = np.array([float(line.split(",")[1]) for line in new.read_text().splitlines()[1:]])
    got = [float(row["y"]) for row in rows]
    np.testing.assert_allclose(got, before[-3:-1], atol=0.8)
    with pytest.raises(ConfigError, match="other columns; give it a table"):
        package.load(tmp_path / "all").predict([0.0] * 6, "after")
    new.write_text(new.read_text().replace("date,before,after", "date,after,before"))
    for command in (("predict", tmp_path / "all", new), ("evaluate", tmp_path / "all", "--data", new)):
        answer = weft(*command)
        assert answer.code == 2 and "got after, before" in answer.err


def test_a_table_without_other_columns_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("date,y\n" + "".join(f"2024-01-{day},1\n" for day in range(10, 30)))
    data = SeriesData(file="x.csv", folder=tmp_path, lookback=6, horizon=2, inputs="all")
    with pytest.raises(ConfigError, match="has no other columns; give a wide table"):
        data.windows(data.table())


def growing(path: Path, rows: int = 140) -> np.ndarray:
    """1 % a row, and 10 % of noise."""
    values: np.ndarray = np.exp(0.01 * np.arange(rows) + np.random.default_rng(4).normal(0, 0.1, rows))
    path.write_text("y\n" + "".join(f"{one!r}\n" for one in values.tolist()))
    return values


@pytest.mark.parametrize("power", [0.0, 0.3, 0.5])
def test_the_power_of_box_cox_is_found_and_undone(power: float) -> None:
    stats = pytest.importorskip("scipy.stats")
    level = np.random.default_rng(3).normal(8, 1, size=(4_000, 1))
    values = np.exp(level) if not power else (power * level + 1) ** (1 / power)
    found = power_of("box-cox", [values])
    assert found.power == pytest.approx(stats.boxcox_normmax(values[:, 0], method="mle"), abs=0.05)
    np.testing.assert_allclose(found.of(values, "y"), stats.boxcox(values[:, 0], found.power)[:, None])
    np.testing.assert_allclose(found.back(found.of(values, "y")), values)


def test_what_has_no_logarithm_is_refused_with_the_way() -> None:
    counts = np.array([[3.0], [0.0], [7.0]])
    with pytest.raises(DataError, match=r"expected values above 0 in shop, got 0; .*log1p"):
        PowerTransform(0.0).of(counts, "shop")
    assert power_of("log1p", [counts]).of(counts, "shop")[1, 0] == 0
    with pytest.raises(DataError, match="expected values from 0 on in shop, got -2"):
        PowerTransform(0.0, 1.0).of(counts - 2, "shop")


def test_windows_are_scaled_after_the_transform_and_forecasts_are_in_units(tmp_path: Path) -> None:
    file, recipe, run = tmp_path / "x.csv", tmp_path / "x.yaml", tmp_path / "run"
    values = growing(file)
    data = SeriesData(file=str(file), lookback=8, horizon=4, transform="log")
    windows = data.windows(data.table())
    past, _, _ = windows.take(np.array([[0, 50]]))
    train = np.log(values[:98])
    np.testing.assert_allclose(past[0], (np.log(values[42:50]) - train.mean()) / train.std())
    asked = ("init", "forecast", file, "--horizon", 4, "--model", "ridge", "--transform", "log")
    weft(*asked, "-o", recipe, code=0)
    assert "transform: log" in recipe.read_text()
    weft("train", recipe, "--run", run, code=0)
    opened = open_run(run)
    report = opened.pipeline.evaluate(opened.model)
    scores = {one.score.name: one for one in report.scores}  # type: ignore[attr-defined]
    test = values[112:]
    origins = range(len(test) - 3)
    last = np.mean([np.abs(test[n : n + 4] - values[111 + n]).mean() for n in origins])
    error = scores["MAE in units"]
    assert error.baselines["last value repeated"] == pytest.approx(last)  # baselines are in units too
    assert error.value < 0.95 * last
    assert "transformed values" in error.score.signature
    best = opened.pipeline.predictor(opened.model).predict(values.tolist())
    assert np.isfinite(best).all() and min(best) > 3  # about exp(1.4)
    file.write_text("y\n" + "0\n" * 60)
    assert "expected values above 0 in y, got 0" in weft("predict", run, file, code=3).err
