"""Forecasts of transformed values: a model that sees growth by a share as a line."""

from pathlib import Path

import numpy as np
import pytest

from tests.commands.shell import weft
from weft.data.windows import PowerTransform, power_of
from weft.errors import DataError
from weft.run import open_run
from weft.tasks.forecast.data import SeriesData


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
