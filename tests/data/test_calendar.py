"""Times: formats, frequencies, missing periods and future periods."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from weft.data.calendar import after, grid, infer, months_of, resampled, season_of, unmeasured
from weft.data.series import Columns, read_series
from weft.data.times import read_times
from weft.errors import ConfigError, DataError
from weft.export.programs import tables as programs


def dates(*texts: str) -> np.ndarray:
    return np.array(texts, dtype="datetime64[s]")


def days(times: np.ndarray) -> list[str]:
    return [str(time)[:10] for time in times]


def write(path: Path, times: list[str], values: list[object] | None = None) -> Path:
    numbers = range(len(times)) if values is None else values
    lines = [f"{time},{number}" for time, number in zip(times, numbers, strict=True)]
    path.write_text("ds,y\n" + "\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("alias", "season"),
    [
        ("QE-DEC", 4), ("QS-JAN", 4), ("QE-NOV", 4), ("MS", 12), ("ME", 12), ("BME", 12), ("BMS", 12),
        ("YS-JAN", 1), ("W-SUN", 52), ("D", 7), ("B", 5), ("h", 24), ("15min", 96), ("2h", 12),
    ],
)  # fmt: skip
def test_a_series_is_continued_as_pandas_continues_it_with_and_without_holes(alias: str, season: int) -> None:
    import pandas as pd

    whole = np.asarray(pd.date_range("2019-02-11", periods=61, freq=alias), "datetime64[s]")
    past, future = whole[:53], whole[53:]
    for times in (past, np.delete(past, [7, 8, 23, 41])):
        found = infer(times)
        np.testing.assert_array_equal(after(found, times[-1], 8), future)
        np.testing.assert_array_equal(grid(found, times[0], times[-1]), past)
        assert season_of(found) == season


def test_the_fifteenth_of_each_month_and_the_thirtieth_where_there_is_one() -> None:
    assert infer(dates("2024-01-15", "2024-02-15", "2024-04-15")) == "1 month"
    assert days(after("1 month", dates("2024-11-30")[0], 4)) == [
        "2024-12-30", "2025-01-30", "2025-02-28", "2025-03-30",
    ]  # fmt: skip
    assert season_of("3 months") == 4


@pytest.mark.parametrize(
    ("past", "future"),
    [
        (["2010-01-30", "2010-02-28", "2010-03-30"], ["2010-04-30", "2010-05-30"]),
        (["2019-12-30", "2020-01-30", "2020-02-29"], ["2020-03-30", "2020-04-30"]),  # ends in February
        (["2023-02-28", "2023-03-30", "2023-05-30"], ["2023-06-30", "2023-07-30"]),  # begins in February
        (
            ["2023-02-28", "2023-05-29", "2023-08-29", "2023-11-29", "2024-02-29"],
            ["2024-05-29", "2024-08-29"],
        ),  # quarters
        (["2022-11-30", "2023-02-28", "2023-05-30"], ["2023-08-30", "2023-11-30"]),
        (["2023-01-28", "2023-02-28", "2023-03-28"], ["2023-04-28", "2023-05-28"]),
    ],
)
def test_a_day_that_february_lacks_comes_again_in_march(past: list[str], future: list[str]) -> None:
    times = dates(*past)
    name = infer(times)
    assert days(after(name, times[-1], 2)) == future
    whole = [*past, *future]
    assert set(whole) <= set(days(grid(name, times[0], future[-1])))
    assert days(programs.every(dates(*past), {"months": months_of(name)}, 2))[-2:] == future
    zoned = pd.DatetimeIndex(past).tz_localize("Europe/Zagreb")
    assert days(after(infer(zoned), zoned[-1], 2)) == future


def test_opening_hours_are_hours_with_gaps() -> None:
    hours = pd.date_range("2024-01-01", periods=24 * 9, freq="h")
    assert infer(hours[(hours.hour >= 10) & (hours.hour <= 14)]) == "h"


def test_times_of_day_and_weekdays_that_never_have_a_value() -> None:
    for frequency, rows, closed, said in (
        (
            "h",
            24 * 28,
            lambda t: (t.hour >= 23) | (t.hour < 6) | (t.day_of_week > 4),
            "23:00 to 05:00, Saturday to Sunday",
        ),
        ("30min", 48 * 28, lambda t: (t.hour == 12) & (t.minute == 30), "12:30"),
        ("D", 28, lambda t: t.day_of_week == 6, "Sunday"),
        ("D", 14, lambda t: t.day_of_week == 6, ""),  # too few of them
        ("MS", 60, lambda t: t.day_of_week == 6, ""),
        ("h", 96, lambda t: t.hour < 0, ""),
        ("h", 96, lambda t: t.hour >= 0, ""),
    ):
        times = pd.date_range("2026-01-05", periods=rows, freq=frequency)
        assert unmeasured(times, np.where(closed(times), np.nan, 1.0)) == said


def test_business_days_have_no_weekend_and_a_holiday_is_a_hole(tmp_path: Path) -> None:
    import pandas as pd

    times = days(np.asarray(pd.bdate_range("2024-04-24", "2024-05-17"), "datetime64[s]"))
    times.remove("2024-05-01")
    table = read_series(write(tmp_path / "x.csv", times))
    series = table.series[0]
    assert series.frequency == "B" and len(series.times) == 18
    assert np.isnan(series.values[:, 0]).nonzero()[0].tolist() == [5]
    assert days(after("B", series.times[-1], 2)) == ["2024-05-20", "2024-05-21"]
    assert "1 missing period of the frequency B" in table.notes[0] and "2024-05-01" in table.notes[0]


def test_months_that_end_serve_where_months_that_begin_were_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", ["2024-01-31", "2024-02-29", "2024-03-31"])
    assert read_series(path, Columns(frequency="MS")).series[0].frequency == "ME"
    with pytest.raises(DataError, match="frequency QS, got 2024-01-31"):
        read_series(path, Columns(frequency="QS"))


def test_irregular_times_are_refused_and_gathered_on_request(tmp_path: Path) -> None:
    times = [
        "2024-01-01 00:10",
        "2024-01-01 07:30",
        "2024-01-02 09:45",
        "2024-01-04 01:00",
        "2024-01-04 23:00",
    ]
    path = write(tmp_path / "x.csv", times, [1, 3, 5, 7, 10])
    with pytest.raises(DataError, match=r"irregular|regular times.*data\.resample"):
        read_series(path)
    gathered = read_series(path, Columns(frequency="D", resample="mean")).series[0]
    assert days(gathered.times) == ["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04"]
    np.testing.assert_array_equal(gathered.values[:, 0], [2, 5, np.nan, 8.5])
    total = read_series(path, Columns(frequency="D", resample="sum")).series[0]
    np.testing.assert_array_equal(total.values[:, 0], [4, 5, 0, 17])


def test_times_that_are_not_of_the_given_frequency_are_named(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", ["2024-02-01", "2024-02-02", "2024-02-03", "2024-02-05"])
    with pytest.raises(DataError, match="frequency B, got 2024-02-03"):
        read_series(path, Columns(frequency="B"))
    with pytest.raises(ConfigError, match=r"frequency: .*'H'"):
        read_series(path, Columns(frequency="H"))
    far = write(tmp_path / "far.csv", ["1724-02-01", "2024-02-02", "2024-02-03"])
    with pytest.raises(DataError, match="3 rows from 1724-02-01"):
        read_series(far, Columns(frequency="min"))
    with pytest.raises(DataError, match=r"got 157,\d{3},\d{3} at the frequency min from 1724-02-01"):
        read_series(far, Columns(frequency="min", resample="min"))
    with pytest.raises(DataError, match="2024-02-02 followed by 2024-02-03"):
        read_series(far)


def test_times_outside_the_calendar_are_named() -> None:
    last = pd.Timestamp("2262-04-10").as_unit("ns")
    for name in ("3 months", "YS", "D"):
        with pytest.raises(DataError, match=r"2262-04-10.*correct them"):
            after(name, last, 4)
    with pytest.raises(DataError, match=r"2262-04-10 00:00:00 and 10D"):
        resampled(pd.DatetimeIndex([last]), np.ones((1, 1)), "10D", ["sum"])


@pytest.mark.parametrize(
    "text", ["now", "nat", "", "2024-13-01", "12:30", "may", "2016-12-31T23:59:60Z", "2023-02-29", "24:00"]
)
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(DataError, match=r"x:1: .*is not a time"):
        read_times("x", [(1, text)])


def test_rows_at_the_end_without_a_value_are_the_future(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(
        "ds,y,fair\n2024-01,1,0\n2024-02,,1\n2024-03,3,0\n2024-04,,1\n2024-05,,\n"
    )
    series = read_series(tmp_path / "x.csv", Columns(known=["fair"])).series[0]
    np.testing.assert_array_equal(series.values[:, 0], [1, np.nan, 3])
    np.testing.assert_array_equal(series.ahead[:, 0], [1, np.nan])
    (tmp_path / "x.csv").write_text("ds,y,fair\n2024-01,1,0\n2024-02,2,\n2024-03,3,0\n")
    with pytest.raises(DataError, match=r"x\.csv:3: .*fair.*known ahead"):
        read_series(tmp_path / "x.csv", Columns(known=["fair"]))


def test_days_without_a_row_of_a_ledger_are_zero_and_an_incomplete_period_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "ledger.csv"
    rows = [("A", "2024-01-01", 2), ("A", "2024-01-01", 3), ("A", "2024-01-05", 4), ("A", "2024-01-06", "")]
    rows += [("B", "2024-01-02", 7), ("B", "2024-01-08", 1)]
    path.write_text("item,day,qty\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows))
    which = Columns(time=["day"], id=["item"], targets=["qty"], frequency="D", resample="sum")
    table = read_series(path, which)
    found = {one.name: one.values[:, 0] for one in table.series}
    # The ledger ends on the 8th for both; the 6th has a row without a number.
    np.testing.assert_array_equal(found["A"], [5, 0, 0, 0, 4, np.nan, 0, 0])
    np.testing.assert_array_equal(found["B"], [7, 0, 0, 0, 0, 0, 1])
    assert "a period without a row is 0 (data.absent: missing changes it)" in " ".join(table.assumed)
    other = read_series(path, which._replace(absent="missing")).series[0].values[:, 0]
    np.testing.assert_array_equal(other, [5, np.nan, np.nan, np.nan, 4])
    days = pd.date_range("2024-01-01", "2024-06-10")
    path.write_text("day,qty\n" + "".join(f"{day.date()},1\n" for day in days))
    months = read_series(path, Columns(time=["day"], targets=["qty"], frequency="MS", resample="sum"))
    assert months.series[0].values[:, 0].tolist() == [31, 29, 31, 30, 31]
    assert "last period of the frequency MS is left out, as its rows end on 2024-06-10" in months.assumed[0]


@pytest.mark.parametrize(("frequency", "sums"), [("W-SUN", [7, 7, 7, 7]), ("MS", [29, 31, 30, 31])])
def test_a_first_period_that_begins_late_is_left_out(tmp_path: Path, frequency: str, sums: list[int]) -> None:
    days = pd.date_range("2024-01-04", "2024-05-31")
    (tmp_path / "x.csv").write_text("day,qty\n" + "".join(f"{day.date()},1\n" for day in days))
    found = read_series(tmp_path / "x.csv", Columns(time=["day"], frequency=frequency, resample="sum"))
    assert found.series[0].values[:4, 0].tolist() == sums
    assert "first period of the frequency" in found.assumed[0] and "begin on 2024-01-04" in found.assumed[0]


@pytest.mark.parametrize("day", [28, 29, 30, 31])
@pytest.mark.parametrize("begin", ["2023-01", "2023-02", "2024-02", "2023-12"])
def test_months_on_a_day_that_some_lack_go_on(day: int, begin: str) -> None:
    months = pd.period_range(begin, periods=27, freq="M")
    times = pd.DatetimeIndex([one.start_time.replace(day=min(day, one.days_in_month)) for one in months])
    assert after(infer(times[:14]), times[13], 13).tolist() == times[14:].tolist()


def test_years_on_leap_days_go_on() -> None:
    leap = pd.DatetimeIndex([f"{year}-02-29" for year in (2004, 2008, 2012, 2016)])
    assert after(infer(leap), leap[-1], 1).tolist() == [pd.Timestamp("2020-02-29")]
    ends = pd.date_range("2000-02-29", periods=13, freq="YE-FEB")
    assert after(infer(ends), ends[-1], 4)[-1] == pd.Timestamp("2016-02-29")


@pytest.mark.parametrize("zone", ["Europe/London", "America/New_York"])
@pytest.mark.parametrize("begin", ["2024-03-07", "2024-03-28", "2024-10-25", "2024-10-31"])
@pytest.mark.parametrize(("name", "minutes"), [("h{}", 60), ("p{}", 30), ("hh_{}", 30)])
def test_days_in_rows_have_as_many_times_as_their_clocks(
    tmp_path: Path, zone: str, begin: str, name: str, minutes: int
) -> None:
    """Also on a short day, whose last columns are empty, in a table that has no long one."""
    days = pd.date_range(begin, periods=6)
    edges = days.append(days[-1:] + pd.Timedelta(days=1)).tz_localize(zone)
    counts = [int((after - one) / pd.Timedelta(minutes=minutes)) for one, after in pairwise(edges)]
    begins = range(int(name != "hh_{}"), int(name != "hh_{}") + max(counts))
    lines = [",".join(["day", *map(name.format, begins)])]
    for date, count in zip(days, counts, strict=True):
        cells = [str(n) if n < count else "" for n in range(max(counts))]
        lines.append(",".join([str(date.date()), *cells]))
    (tmp_path / "x.csv").write_text("\n".join(lines) + "\n")
    found = read_series(tmp_path / "x.csv", Columns(zone=zone))
    assert found.series[0].values[:, 0].tolist() == [n for count in counts for n in range(count)]
    assert not found.notes and found.series[0].times.tz is not None
