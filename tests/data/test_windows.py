"""Windows: parts in time, scales of the training part alone, and nothing of the future in a past."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

import weft.export
from tests import toys
from tests.export.pages import NODE, node
from weft.data.series import SeriesTable, TimeSeries
from weft.data.values import readable
from weft.data.windows import Scale, SeriesWindows, TrainedScales, covariates
from weft.errors import ConfigError, DataError

SPLIT, LOOKBACK, HORIZON = (11, 5, 7), 3, 2


def windows(rows: int = 20, lookback: int = 3, horizon: int = 2, split: tuple = (10, 4, 6)) -> SeriesWindows:
    values = np.stack([np.arange(rows) * 1.0, np.ones(rows)], 1)
    table = toys.series_table(values, ("a", "b"))
    return SeriesWindows(table, split=split, lookback=lookback, horizon=horizon, calendar=False)


def two() -> SeriesTable:
    """Two series with covariates; after the training part everything lies elsewhere."""
    chance, found = np.random.default_rng(3), []
    for name, rows in (("north", 23), ("south", 29)):
        columns = chance.normal(size=(rows, 4)) + 100 * (np.arange(rows)[:, None] >= SPLIT[0])
        values, known, past = columns[:, :1], columns[:, 1:3], columns[:, 3:]
        found.append(TimeSeries(name, np.arange(rows), values, known, past, known[:0], ""))
    return SeriesTable(found, ("y",), ("price", "offer"), ("rain",), True)


def cut(table: SeriesTable, **more: object) -> SeriesWindows:
    return SeriesWindows(table, split=SPLIT, lookback=LOOKBACK, horizon=HORIZON, calendar=False, **more)  # type: ignore[arg-type]


def test_windows_stay_in_their_part_and_none_is_dropped() -> None:
    found = windows()
    starts = [found.of(part)[:, 1][found.of(part)[:, 0] == 0].tolist() for part in range(3)]
    # Rows 0-9 train, 10-13 validation, 14-19 test; the future of a window lies in its part alone.
    assert starts == [[3, 4, 5, 6, 7, 8], [10, 11, 12], [14, 15, 16, 17, 18]]
    past, future, _ = found.take(np.array([[0, 14]]))
    mean, std = np.arange(10).mean(), np.arange(10).std()
    np.testing.assert_allclose(past[0] * std + mean, [11, 12, 13])
    np.testing.assert_allclose(future[0] * std + mean, [14, 15])
    assert found.take(np.array([[1, 14]]))[0].tolist() == [[0, 0, 0]]  # a constant series has scale 1


def test_every_scale_is_that_of_the_training_part() -> None:
    table = two()
    found = cut(table, channels=True)
    train = [
        np.concatenate([one.values, one.known, one.past], 1)[: SPLIT[0]] for one in table.series
    ]  # y, price, offer, rain
    np.testing.assert_allclose(found.scale.mean, [part[:, 0].mean() for part in train])
    np.testing.assert_allclose(found.scale.std, [part[:, 0].std() for part in train])
    for scale, columns in ((found.known_scale, [1, 2]), (found.channels, [0, 3])):
        pooled = np.concatenate(train)[:, columns]  # covariates share a scale over all series
        np.testing.assert_allclose(scale.mean, pooled.mean(0))
        np.testing.assert_allclose(scale.std, pooled.std(0))
    for number, part in enumerate(train):
        np.testing.assert_allclose(found.training_values(number), part[:, 0])


def test_a_past_ends_before_its_future_and_what_is_known_goes_on() -> None:
    table, (number, start) = two(), (1, 17)
    found = cut(table, channels=True)
    series, chosen = table.series[number], np.array([[number, start]])
    past, future, known = found.take(chosen)
    mean, std = found.scale.mean[number], found.scale.std[number]
    np.testing.assert_allclose(past[0] * std + mean, series.values[14:17, 0])
    np.testing.assert_allclose(future[0] * std + mean, series.values[17:19, 0])
    np.testing.assert_allclose(known[0] * found.known_scale.std + found.known_scale.mean, series.known[14:19])
    seen = found.seen(chosen)[0] * found.channels.std + found.channels.mean
    np.testing.assert_allclose(seen, np.concatenate([series.values, series.past], 1)[14:17])
    assert found.times(chosen[0]).tolist() == [14, 15, 16, 17, 18]


def test_a_gap_is_filled_in_a_past_and_never_in_a_future() -> None:
    table = two()
    table.series[0].values[14] = np.nan
    found = cut(table)
    past, future, _ = found.take(np.array([[0, 16], [0, 13]]))
    assert past[0, 1] == past[0, 0] and np.isfinite(past).all()
    assert np.isnan(future).tolist() == [[False, False], [False, True]]


def trained(*names: str) -> TrainedScales:
    """Scales of a run whose series have the means 0, 1, 2 and so on, and the deviation 11."""
    means = np.arange(len(names)) * 1.0
    known, channels = (
        Scale(np.array([7.0, 8.0]), np.array([2.0, 3.0])),
        Scale(np.ones(1) * 5, np.ones(1) * 11),
    )
    return TrainedScales(names, Scale(means, np.full(len(names), 11.0)), known, channels)


def test_a_run_keeps_its_scales_and_the_numbers_of_its_series() -> None:
    run = trained("east", "south", "north")
    found = cut(two(), trained=run)
    assert (found.known_scale, found.channels) == (run.known, run.channels)
    assert found.numbers.tolist() == [2, 1]
    assert found.scale.mean.tolist() == [2, 1] and found.scale.std.tolist() == [11, 11]


def test_a_new_series_has_the_number_0_and_the_scale_of_the_rows_before_each_future() -> None:
    table = two()
    table.series[1].values[:5] = 3.0
    table.series[1].values[7] = np.nan
    found = cut(table, trained=trained("east", "north"))
    assert found.numbers.tolist() == [1, 0]
    scale = found.scales(np.array([[1, 4], [1, 17], [0, 9]]))
    before = table.series[1].values[:17]
    np.testing.assert_allclose(scale.mean[:, 0], [3, np.nanmean(before), 1])
    np.testing.assert_allclose(scale.std[:, 0], [1, np.nanstd(before), 11])


def test_every_window_of_a_whole_table_is_a_test() -> None:
    found = SeriesWindows(
        two(), split=None, lookback=3, horizon=2, calendar=False, trained=trained("north", "south")
    )
    assert not len(found.of(0)) and not len(found.of(1))
    assert found.of(2)[:, 1].tolist() == [*range(3, 22), *range(3, 28)]


def test_a_series_that_is_too_short_is_refused() -> None:
    with pytest.raises(DataError, match="lookback 9"):
        windows(lookback=9)
    with pytest.raises(ConfigError, match="20"):
        windows(split=(10, 5, 6))


def test_the_calendar_is_numbers_around_zero() -> None:
    times = np.array(["2024-01-01T00", "2024-12-31T12"], dtype="datetime64[s]")  # a Monday, a Tuesday
    got = covariates(times, np.zeros((2, 0)), True)
    np.testing.assert_allclose(got, [[-0.5, -0.5, -0.5, -0.5], [0, 1 / 6 - 0.5, 0.5, 0.5]])


def test_a_series_shorter_than_a_split_in_rows_is_left_out_by_name() -> None:
    values = np.random.default_rng(1).normal(size=(40, 1))
    series = [
        toys.series_table(values[:rows]).series[0]._replace(name=name)
        for name, rows in (("long", 40), ("short", 25))
    ]
    table = SeriesTable(series, ("y",), (), (), True)
    found = SeriesWindows(table, split=(20, 5, 5), lookback=4, horizon=2, calendar=False)
    assert found.names == ["long"]
    assert found.left_out == ["series 'short': expected 30 rows, as split has, got 25"]


PAGE = Path(weft.export.__file__).parent / "page"

SHOWN = [
    (104872006.123456, 50.0, "104872006.1235"),  # a meter
    (432.123456, 120.0, "432.123"),
    (12345678.9, 3e6, "12345679"),
    (-0.000012345678, 1e-5, "-1.23457e-05"),
    (4.0, 1.0, "4"),
    (0.0, 1.0, "0"),
    (5e8, 0.0, "500000000"),
]


@pytest.mark.parametrize(("value", "deviation", "text"), SHOWN)
def test_a_number_has_the_digits_that_show_the_deviation_of_its_series(
    value: float, deviation: float, text: str
) -> None:
    assert readable(value, deviation) == text


@node
def test_the_exported_page_writes_the_same_digits() -> None:
    source = (PAGE / "series.js").read_text()
    function = source[source.index("const readable") : source.index("// Missing values")]
    given = json.dumps([case[:2] for case in SHOWN])
    run = f"{function}; console.log(JSON.stringify({given}.map(([a, b]) => readable(a, b))))"
    found = subprocess.run([str(NODE), "-e", run], capture_output=True, check=True)
    assert json.loads(found.stdout) == [text for *_, text in SHOWN]
