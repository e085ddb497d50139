"""Tables of series from other programs: one base of times, remembered columns, short series, lookbacks."""

import csv
import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from tests.commands.shell import Answer, refused, weft
from weft.data.series import Columns, read_series
from weft.errors import ConfigError, DataError, DataWarning
from weft.nn import LinearForecaster
from weft.run import open_run
from weft.tasks.forecast.data import SeriesData
from weft.tasks.forecast.model import ForecastModel
from weft.tasks.forecast.predictor import ForecastPredictor, Horizon, SeriesInput

LOOKBACK, HORIZON = 24, 6
LOAD = pd.date_range("2024-10-14", "2024-10-29 11:00", freq="h", tz="Europe/Zagreb", inclusive="left")
OPEN = ((LOAD.hour >= 8) & (LOAD.hour < 18)).astype(int)
WRITTEN = {"local": "Europe/Zagreb", "Z": "UTC", "winter": "+01:00", "summer": "+02:00"}


def table(path: Path, zone: str, columns: str, rows: slice) -> Path:
    """A shop sells 50 more while it is open."""
    times = [time.isoformat().replace("+00:00", "Z") for time in LOAD.tz_convert(zone)]
    values = {"load_mw": 100 + 50 * OPEN, "open": OPEN, "extra": OPEN * 2}
    lines = [f"time,{columns}"]
    for row in range(len(times))[rows]:
        lines.append(",".join([times[row], *(str(values[name][row]) for name in columns.split(","))]))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("load")
    file = table(folder / "x.csv", "Europe/Zagreb", "load_mw,open", slice(-HORIZON))
    recipe = folder / "x.yaml"
    recipe.write_text(
        f"task: forecast\ndata: {{file: {file}, known: [open], lookback: {LOOKBACK}, horizon: {HORIZON},"
        " calendar: true}\nmodel: {forecaster: {use: linear}, head: point, base: none}\n"
        "training: {optimiser: {use: adam, lr: 0.03}, max_epochs: 20, tensorboard: false, monitors: false}\n"
    )
    answer = weft("train", recipe, "--run", folder / "run", code=0)
    assert answer.err.count("times are in Europe/Berlin") == 1
    return folder / "run"


def forecast(answer: Answer, delimiter: str = ",") -> list[dict[str, str]]:
    assert answer.code == 0, answer.err
    return list(csv.DictReader(answer.lines, delimiter=delimiter))


@pytest.mark.parametrize("past", WRITTEN)
def test_the_same_instants_give_the_same_forecast(run: Path, tmp_path: Path, past: str) -> None:
    before = table(tmp_path / "past.csv", WRITTEN[past], "load_mw,open", slice(-HORIZON))
    rows = []
    for zone in ("+01:00", "UTC"):
        ahead = table(tmp_path / "future.csv", zone, "open", slice(-HORIZON, None))
        answer = weft("predict", run, before, "--future", ahead)
        rows.append(forecast(answer))
        assert (past == "local") == ("past.csv: times are converted" not in answer.err)
    assert rows[0] == rows[1]
    assert rows[0][0]["ds"] == "2024-10-29 05:00:00+01:00"
    got = np.array([float(row["y"]) for row in rows[0]])
    np.testing.assert_allclose(got, 100 + 50 * OPEN[-HORIZON:], atol=25)  # an hour's shift is 50


def test_a_table_without_offsets_is_refused(run: Path, tmp_path: Path) -> None:
    before = table(tmp_path / "past.csv", "Europe/Zagreb", "load_mw,open", slice(-HORIZON))
    before.write_text(before.read_text().replace("+02:00", "").replace("+01:00", ""))
    assert "expected times with an offset from UTC" in refused(weft("predict", run, before))


def test_the_columns_of_the_training_are_forecast_and_no_others(run: Path, tmp_path: Path) -> None:
    before = table(tmp_path / "past.csv", "UTC", "load_mw,open,extra", slice(-HORIZON))
    ahead = table(tmp_path / "future.csv", "UTC", "open", slice(-HORIZON, None))
    answer = weft("predict", run, before, "--future", ahead)
    assert {row["unique_id"] for row in forecast(answer)} == {"load_mw"}
    assert "left out: extra" in answer.err
    assert weft("evaluate", run, "--data", before).code == 0
    before.write_text(before.read_text().replace("load_mw", "load_mwh"))
    said = refused(weft("predict", run, before, "--future", ahead))
    assert "expected the column 'load_mw', as in training" in said and "'load_mwh' is close" in said
    said = refused(weft("predict", run, ahead))
    assert "give the table of the past, and this one with --future" in said


def test_a_target_of_the_recipe_is_asked_for_by_name(tmp_path: Path) -> None:
    file = table(tmp_path / "x.csv", "UTC", "load_mw,open", slice(9))
    which = SeriesData(file="x", targets=("load_kw",), known=("open",)).columns
    with pytest.raises(ConfigError, match=r"no such column 'load_kw'.*did you mean 'load_mw'"):
        read_series(file, which)
    with pytest.raises(DataError, match=r"expected load_kw.*--future"):
        read_series(table(file, "UTC", "open", slice(9)), which)
    with pytest.raises(DataError, match="expected a column to forecast, got only time"):
        read_series(file, which._replace(known=(), past=("open",), targets=()))


def test_one_of_several_columns_may_be_absent_but_not_renamed(tmp_path: Path) -> None:

    times = [f"2024-01-{day:02d}" for day in range(1, 10)]
    (tmp_path / "x.csv").write_text("\n".join(["date,b", *(f"{time},1" for time in times)]) + "\n")
    assert read_series(tmp_path / "x.csv", Columns(trained=["a", "b"])).columns == ("b",)


def test_a_short_series_is_left_out_by_name_and_the_others_keep_their_numbers(tmp_path: Path) -> None:
    days = pd.date_range("2024-01-01", periods=60).strftime("%Y-%m-%d")
    rows = [f"{name},{day},{n % 7}" for name, count in (("a", 60), ("b", 5), ("c", 50)) for n, day in
            enumerate(days[:count])]  # fmt: skip
    file = tmp_path / "x.csv"
    file.write_text("\n".join(["unique_id,ds,y", *rows]) + "\n")
    recipe = tmp_path / "x.yaml"
    answer = weft("init", "forecast", "--file", file, "--horizon", 2, "-o", recipe)
    assert answer.code == 0 and "left out 1 series: series 'b': expected at least" in answer.out
    answer = weft("train", recipe, "--run", tmp_path / "run", "training.max_updates=1", code=0)
    assert "left out 1 series: series 'b'" in answer.err
    checked = weft("data", "check", file)
    assert checked.code == 0 and "series 'b' has 5 rows" in checked.out
    pipeline = open_run(tmp_path / "run").pipeline
    assert pipeline.about["names"] == ["a", "c"]  # type: ignore[attr-defined]
    data: SeriesData = pipeline.data  # type: ignore[attr-defined]
    file.write_text("\n".join(["unique_id,ds,y", *reversed(rows[65:]), *rows[:60]]) + "\n")
    with pytest.warns(DataWarning, match="sorted"):
        windows = data.windows(data.table(file), pipeline.about)  # type: ignore[attr-defined]
    assert windows.names == ["c", "a"] and windows.numbers.tolist() == [1, 0]
    weft("predict", tmp_path / "run", file, code=0)


def test_the_lookback_covers_the_week_of_hourly_rows_with_known_columns_too(tmp_path: Path) -> None:
    hours = pd.date_range("2024-01-01", periods=24 * 7 * 6, freq="h")
    lines = [f"{hour},{hour.hour + 9 * (hour.day_of_week > 4)},0" for hour in hours]
    (tmp_path / "x.csv").write_text("\n".join(["time,load,holiday", *lines]) + "\n")
    for options in (("--known", "holiday"), ("--target", "load")):
        recipe = tmp_path / f"{options[1]}.yaml"
        asked = ("init", "forecast", "--file", tmp_path / "x.csv", "--horizon", 24, "-o", recipe, *options)
        assert weft(*asked).code == 0
        assert "lookback: 168 " in recipe.read_text()


def test_a_ledger_with_numeric_names_is_trained_and_forecast(tmp_path: Path) -> None:
    chance = np.random.default_rng(1)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(chance.integers(0, 80, 600), unit="D")
    lines = [f"{day:%d.%m.%Y};{n % 2 + 1};{n % 5},50" for n, day in enumerate(days)]
    file, recipe = tmp_path / "x.csv", tmp_path / "x.yaml"
    file.write_text("\n".join(["date;store;amount", *lines, ";;"]) + "\n")
    answer = weft("init", "forecast", "--file", file, "--horizon", 7, "--frequency", "D", "--resample", "sum",
                  "-o", recipe)  # fmt: skip
    assert answer.code == 0 and "names of series 'store'" in answer.lines[0]
    weft("train", recipe, "--run", tmp_path / "run", "training.max_updates=1", code=0)
    rows = forecast(weft("predict", tmp_path / "run", file), ";")
    assert [row["unique_id"] for row in rows] == ["1"] * 7 + ["2"] * 7
    assert all("." not in row["y"] for row in rows)  # a decimal comma, as in the table
    total = sum(float(line.split(";")[2].replace(",", ".")) for line in lines)
    read = read_series(
        file, SeriesData(file="x", id="store", targets=("amount",), frequency="D", resample="sum").columns
    )
    assert sum(np.nansum(one.values) for one in read.series) == pytest.approx(total)


def test_a_run_of_before_sums_a_table_as_it_was_trained(tmp_path: Path) -> None:
    """Its days without a row were missing, and its last week was whole whatever it had."""
    file = tmp_path / "x.csv"
    file.write_text(
        "day,sold\n" + "".join(f"2024-01-{day:02},2\n" for day in range(1, 31) if day not in (9, 10))
    )
    data = SeriesData(file=str(file), frequency="D", resample="sum")
    about = {"names": ["sold"], "columns": ["sold"]}
    days = [data.table(None, one).series[0].values[7:11, 0] for one in ({}, {**about, "fill": 1}, about)]
    np.testing.assert_array_equal(days, [[2, 0, 0, 2], [2, 0, 0, 2], [2, np.nan, np.nan, 2]])
    weeks = SeriesData(file=str(file), frequency="W", resample="sum")
    assert [len(weeks.table(None, one).series[0].values) for one in ({}, about)] == [4, 5]


def test_a_tsf_names_its_horizon_and_findings_name_the_series(tmp_path: Path) -> None:
    rows = ["1,2,?,4", "3,3,3,3"]
    file, recipe = tmp_path / "x.tsf", tmp_path / "x.yaml"
    head = "@attribute series_name string\n@frequency daily\n@horizon 3\n@data\n"
    file.write_text(
        head + "".join(f"T{n}:{row},{','.join(row for _ in range(20))}\n" for n, row in enumerate(rows))
    )
    found = weft("data", "check", file).out
    assert "column y of series 'T0': 21 of 84 values are missing" in found
    assert "column y of series 'T1' never changes" in found
    weft("init", "forecast", file, "-o", recipe, code=0)
    assert "horizon: 3 " in recipe.read_text()
    file.write_text(file.read_text().replace("@horizon 3\n", ""))
    assert (
        "--horizon: expected the number of rows"
        in weft("init", "forecast", file, "-o", tmp_path / "y.yaml", code=2).err
    )


@pytest.mark.filterwarnings("ignore:standard input. read as:weft.errors.DataWarning")
def test_forecasts_are_written_as_the_table_is(tmp_path: Path) -> None:
    days = pd.date_range("2026-01-01", periods=12, freq="D")
    rows = [f"{day:%d.%m.%Y};{n},5" for n, day in enumerate(days)]
    content = "\ufeff" + "".join(f"{row}\r\n" for row in ["date;y", *rows])
    (tmp_path / "x.csv").write_bytes(content.encode())
    data = SeriesData(file="x.csv", folder=tmp_path, lookback=4, horizon=1)
    network = ForecastModel(forecaster=LinearForecaster).build(4, 1, 0, 1).eval()
    for weight in network.parameters():
        torch.nn.init.zeros_(weight)  # it repeats the last value
    predictor = ForecastPredictor(network, data, {"names": ["y"], "mean": [0.0], "std": [1.0]}, Horizon())
    for source in (tmp_path / "x.csv", io.BytesIO(content.encode()), None):
        given = [one.value for one in predictor.inputs(source)]
        asked = [one for one in given if isinstance(one, SeriesInput)]
        texts = list(predictor.formatted(predictor.answers(asked)))
        assert predictor.file(texts, tmp_path / "a.csv") == (
            "\ufeffunique_id;ds;y\r\ny;2026-01-13;11,5\r\n".encode()
        )
        parquet = predictor.file(texts, tmp_path / "a.parquet")
        assert pd.read_parquet(io.BytesIO(parquet)).y.tolist() == [11.5]
