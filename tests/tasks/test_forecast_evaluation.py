"""Scores of forecasts are those of the forecasts that prediction writes, whatever a file begins with."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.commands.shell import refused, weft
from weft.run import LoadedRun, open_run
from weft.tasks.forecast import evaluation
from weft.tasks.forecast.predictor import ForecastPredictor

LOOKBACK, HORIZON = 7, 3


def table(path: Path, *names: str, rows: int = 60, seed: int = 1, level: float = 0.0) -> Path:
    """Random walks with a few gaps, and an offer that is known ahead."""
    chance, days = np.random.default_rng(seed), pd.date_range("2024-01-01", periods=rows).strftime("%Y-%m-%d")
    lines = ["unique_id,ds,y,offer"]
    for name in names:
        walk = level + chance.normal(size=rows).cumsum()
        walk[chance.integers(rows, size=4)] = np.nan
        cells = ["" if np.isnan(value) else f"{value:.4f}" for value in walk]
        lines += [f"{name},{day},{one},{n % 5}" for n, (day, one) in enumerate(zip(days, cells, strict=True))]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("walks")
    recipe = folder / "x.yaml"
    recipe.write_text(
        f"task: forecast\ndata: {{file: {table(folder / 'x.csv', 'a', 'b')}, known: [offer],\n"
        f"  lookback: {LOOKBACK}, horizon: {HORIZON}}}\n"
        "model: {forecaster: {use: linear}, head: normal}\n"
        "training: {optimiser: {use: adam, lr: 0.01}, max_updates: 3, validate_every: 3, metric: mse,\n"
        "  tensorboard: false, monitors: false}\n"
    )
    weft("train", recipe, "--run", folder / "run", code=0)
    return folder / "run"


def forecasts(opened: LoadedRun, path: Path) -> tuple[np.ndarray, np.ndarray, int]:
    """What prediction answers to a table cut off at every row, the true values, and refusals."""
    predictor = opened.pipeline.predictor(opened.model)
    assert isinstance(predictor, ForecastPredictor)
    whole = opened.pipeline.data.table(path, opened.pipeline.about)  # type: ignore[attr-defined]
    best, true, refused = [], [], 0
    for one in predictor.forecaster.chosen(whole):
        series = one.series
        for cut in range(LOOKBACK, len(series.times) - HORIZON + 1):
            before = series._replace(
                times=series.times[:cut],
                values=series.values[:cut],
                known=series.known[:cut],
                past=series.past[:cut],
                ahead=series.known[cut:],
            )
            if predictor.forecaster.why_not(one._replace(series=before)):
                refused += 1
                continue
            best.append(predictor.forecaster.forecast(one._replace(series=before), quantiles=False).best)
            true.append(series.values[cut : cut + HORIZON, one.column])
    return np.array(best), np.array(true), refused


@pytest.mark.parametrize("names", [("a", "b"), ("b", "new"), ("other",)])
def test_every_window_of_a_file_is_scored_as_it_is_predicted(
    run: Path, tmp_path: Path, names: tuple[str, ...]
) -> None:
    new, opened = table(tmp_path / "new.csv", *names, rows=31, seed=2, level=50.0), open_run(run)
    best, true, _ = forecasts(opened, new)
    found = opened.pipeline.evaluate(opened.model, data=new)
    compared = found.compared[0].made()
    np.testing.assert_allclose(compared.outputs.best, best, rtol=1e-5)
    np.testing.assert_allclose(compared.references, true)
    assert ("|new series, by their own rows:1" in found.scores[0].score.signature) is (
        len(names) == 1 or "new" in names
    )
    by_name = {one.score.name: one.value for one in found.scores}
    assert by_name["MAE in units"] == pytest.approx(np.nanmean(np.abs(best - true)), rel=1e-5)
    assert by_name["RMSE in units"] == pytest.approx(np.nanmean((best - true) ** 2) ** 0.5, rel=1e-5)


def test_a_window_that_prediction_refuses_is_not_scored(run: Path, tmp_path: Path) -> None:
    new, opened = table(tmp_path / "new.csv", "a", "new", rows=31, seed=2), open_run(run)
    lines = new.read_text().splitlines()
    lines[20] = ",".join([*lines[20].split(",")[:2], "", ""])  # an offer that nobody knows
    lines[32:42] = [",".join([*line.split(",")[:2], "", "1"]) for line in lines[32:42]]  # begins with a gap
    new.write_text("\n".join(lines) + "\n")
    best, _, refusals = forecasts(opened, new)
    found = opened.pipeline.evaluate(opened.model, data=new)
    assert refusals and f"|no forecast:{refusals}|" in found.scores[0].score.signature
    np.testing.assert_allclose(found.compared[0].made().outputs.best, best, rtol=1e-5)


def test_rows_before_a_series_that_was_trained_change_no_score(run: Path, tmp_path: Path) -> None:
    new, opened = table(tmp_path / "new.csv", "a", rows=31, seed=2), open_run(run)
    before = opened.pipeline.evaluate(opened.model, data=new).compared[0].made()
    header, *lines = new.read_text().splitlines()
    far = [f"a,2023-12-{day:02},{1e4 * day},0" for day in range(1, 32)]
    new.write_text("\n".join([header, *far, *lines]) + "\n")
    after = opened.pipeline.evaluate(opened.model, data=new).compared[0].made()
    windows = len(before.references) - 1  # the first looks back on rows that were not there
    np.testing.assert_allclose(after.references[-windows:], before.references[-windows:])
    np.testing.assert_allclose(after.outputs.best[-windows:], before.outputs.best[-windows:], rtol=1e-5)


def test_windows_of_training_rows_are_counted_in_the_title(run: Path, tmp_path: Path) -> None:
    opened = open_run(run)
    own = opened.task.data.folder / opened.task.data.file  # type: ignore[attr-defined]
    # 42 of 60 rows are the training part; the futures of its windows begin at rows 7 to 41, in two series.
    found = opened.pipeline.evaluate(opened.model, data=own)
    assert ", 70 of 102 windows in the training part of the run" in found.title
    later = pd.read_csv(own)
    later[later.ds >= "2024-02-20"].to_csv(tmp_path / "later.csv", index=False)
    assert (
        "in the training part"
        not in opened.pipeline.evaluate(opened.model, data=tmp_path / "later.csv").title
    )


def test_without_the_data_of_the_training_ridge_regression_is_left_out(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "run")
    recipe = tmp_path / "run" / "recipe.yaml"
    recipe.write_text(recipe.read_text().replace("x.csv", "gone.csv"))
    answer = weft(
        "evaluate", tmp_path / "run", "--data", table(tmp_path / "new.csv", "a", rows=31, seed=2), code=0
    )
    assert "last value repeated" in answer.out and "ridge regression" not in answer.out
    assert "without ridge regression" in answer.err and "gone.csv" in answer.err


def test_a_file_without_a_whole_window_is_refused(run: Path, tmp_path: Path) -> None:
    said = refused(weft("evaluate", run, "--data", table(tmp_path / "new.csv", "a", rows=9)))
    assert "series 'a': expected at least 10 rows, got 9" in said


def test_windows_score_the_same_together_and_in_pieces(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = open_run(run)
    whole = opened.pipeline.evaluate(opened.model)
    monkeypatch.setattr(evaluation, "ROWS", 7)  # of 20 windows
    pieces = opened.pipeline.evaluate(opened.model)
    for one, other in zip(whole.scores, pieces.scores, strict=True):
        assert one.value == pytest.approx(other.value, rel=1e-5), one.score.name
        assert one.baselines == pytest.approx(other.baselines, rel=1e-9)
    outputs = [one.compared[0].made().outputs for one in (whole, pieces)]
    np.testing.assert_allclose(outputs[0].quantiles, outputs[1].quantiles, rtol=1e-5)
    np.testing.assert_array_equal(outputs[0].naive, outputs[1].naive)
