"""Bands of forecasts: calibrated, scored in units, drawn with dates and by the name of the series."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests import toys
from tests.commands.shell import refused, weft
from weft.data.windows import SeriesWindows
from weft.nn.forecasters.forecaster import Past
from weft.tasks.forecast.forecaster import CalibratedForecast, conformal
from weft.tasks.forecast.model import tensors


def two(path: Path) -> Path:
    """Noise of standard deviation 3 around 100, and of 0.1 around 5, a day a row."""
    rng = np.random.default_rng(11)
    days = np.datetime64("2023-01-01") + np.arange(311)
    rows = [
        f"{day},{100 + 3 * a:.4f},{5 + 0.1 * b:.4f}"
        for day, (a, b) in zip(days, rng.normal(size=(311, 2)), strict=True)
    ]
    path.write_text("date,shop 7/Zagreb,other\n" + "\n".join(rows) + "\n")
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A point forecaster, from a recipe that says no more than it must."""
    folder = tmp_path_factory.mktemp("bands")
    (folder / "x.yaml").write_text(
        f"task: forecast\ndata: {{file: {two(folder / 'x.csv')}, lookback: 14, horizon: 3}}\n"
        "model: {forecaster: linear, base: linear}\ntraining: {max_updates: 3, validate_start: true}\n"
    )
    answer = weft("train", folder / "x.yaml", "--run", folder / "run", code=0)
    assert "the model starts as" in answer.err
    assert "shop 7/Zagreb after 10" in answer.err or "shop 7/Zagreb after 9" in answer.err  # in units
    return folder / "run"


def test_the_offsets_leave_their_share_below() -> None:
    errors = np.random.default_rng(1).normal(size=(999, 2, 1)) * np.array([1.0, 5.0])[:, None]
    levels = (0.1, 0.5, 0.9)
    offsets = conformal(errors.repeat(3, 2), levels)
    for at, level in enumerate(levels):
        np.testing.assert_allclose((errors[..., 0] <= offsets[:, at]).mean(0), level, atol=0.0015)
    errors[5:] = np.nan
    few = conformal(errors.repeat(3, 2), levels)
    np.testing.assert_array_equal(few[:, 2], errors[:5, :, 0].max(0))  # 0.9 of 6 is more than 5


class Nothing(nn.Module):
    """Forecasts 0, the mean of the training part."""

    has_quantiles = False

    def best(self, past: Past) -> Tensor:
        return torch.zeros(len(past.values), 2)


def test_bands_are_as_wide_as_the_validation_part_needs() -> None:
    """The training part varies by 1, the validation part by 3, the test part by 30."""
    chance, bounds = np.random.default_rng(5), (200, 600, 900)
    values = chance.normal(size=(900, 1)) * np.repeat([1.0, 3.0, 30.0], np.diff([0, *bounds]))[:, None]
    table = toys.series_table(values)
    windows = SeriesWindows(table, split=(200, 400, 300), lookback=5, horizon=2, calendar=False)
    model = CalibratedForecast(Nothing(), windows)  # type: ignore[arg-type]
    levels = torch.tensor([0.1, 0.5, 0.9], dtype=torch.float64)
    past, _ = tensors(windows, windows.of(2)[:7], torch.device("cpu"))
    found = model.quantiles(past, levels) * windows.scale.std[0] + windows.scale.mean[0]
    for step in range(2):  # the futures of the windows of the validation part
        known = values[200 + step : 599 + step, 0]
        wanted = np.quantile(known, levels.numpy())
        np.testing.assert_allclose(found[0, step].numpy(), wanted, atol=0.2)
    assert (found == found[:1]).all()


def test_a_point_forecaster_has_calibrated_quantiles_on_request(run: Path, tmp_path: Path) -> None:
    assert "--set conformal=true" in refused(weft("predict", run, run.parent / "x.csv", "--scores"))
    answer = weft("predict", run, run.parent / "x.csv", "--scores", "--set", "conformal=true", code=0)
    rows = list(csv.DictReader(answer.lines))
    widths = [float(row["q0.9"]) - float(row["q0.1"]) for row in rows]
    assert all(4 < width < 12 for width in widths[:3]) and all(0.1 < width < 0.5 for width in widths[3:])
    answer = weft("evaluate", run, "--set", "conformal=true", "--json", tmp_path / "x.json", "--full", code=0)
    found = json.loads((tmp_path / "x.json").read_text())
    coverage = found["scores"]["coverage"]
    assert 65 < coverage["value"] < 95 and coverage["low"] < coverage["value"] < coverage["high"]
    assert "calibrated on the validation part" in answer.out
    assert "on this part" in weft("evaluate", run, "--set", "conformal=true", "--split", "valid").out
    shop, other = found["series"]["shop 7/Zagreb"], found["series"]["other"]
    assert 2 < shop["MAE in units"] < 4 and 0.05 < other["MAE in units"] < 0.15  # 0.8 deviations and more
    assert "other: MAE in units" in answer.out
    assert "ridge" in " ".join(found["scores"]["MASE"]["baselines"])


def test_calibration_needs_the_data_of_the_training(run: Path, tmp_path: Path) -> None:
    moved = tmp_path / "x.csv"
    (run.parent / "x.csv").rename(moved)
    try:
        said = refused(weft("predict", run, moved, "--scores", "--set", "conformal=true"))
    finally:
        moved.rename(run.parent / "x.csv")
    assert "decoding.conformal" in said and "x.csv" in said


@pytest.mark.slow
def test_pictures_have_the_names_of_the_series_and_one_may_be_chosen(run: Path, tmp_path: Path) -> None:
    table, where = run.parent / "x.csv", tmp_path / "all"
    weft("predict", run, table, "--pictures", where, "--set", "conformal=true", code=0)
    names = {path.name for path in where.iterdir()}
    assert names == {"shop-7-Zagreb.png", "shop-7-Zagreb.svg", "other.png", "other.svg"}
    assert "80 % band" in (where / "other.svg").read_text("utf-8")
    answer = weft("predict", run, table, "--series", "other", "--pictures", tmp_path / "one")
    assert len(answer.lines) == 4 and {path.stem for path in (tmp_path / "one").iterdir()} == {"other"}
    assert "--series: 'none' is not in the table" in refused(weft("predict", run, table, "--series", "none"))


def test_inspect_and_evaluate_show_the_series_that_is_named_over_dates(run: Path, tmp_path: Path) -> None:
    views = tmp_path / "views"
    where = ("--output", tmp_path / "x.html", "--views", views, "--format", "json", "--format", "csv")
    weft("inspect", run, "--series", "other", *where, code=0)
    (block,) = json.loads((views / "forecast.json").read_text())["blocks"]
    assert block["title"] == "other" and block["dates"]
    last = (np.datetime64("2023-01-01") + 310).astype("datetime64[s]").astype(int)
    assert block["series"][0]["x"][-1] == last and block["series"][1]["x"][0] == last + 86400
    assert "--series: 'none' is not in" in refused(weft("inspect", run, "--series", "none"))
    plot = tmp_path / "scores.svg"
    weft("evaluate", run, "--series", "other", "--plot", plot, code=0)
    assert "one window of other" in plot.read_text("utf-8") and "2023-10" in plot.read_text("utf-8")
    assert "--series: 'none' is not in" in refused(weft("evaluate", run, "--series", "none"))
