"""One base of times for a run: offsets, zones, summer time, steps, and times as other programs write them."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.commands.shell import weft
from weft.data.future import coming, read_future
from weft.data.series import Columns, SeriesTable, read_series
from weft.data.times import STEPS, UNKNOWN, read_times
from weft.errors import ConfigError, DataError, DataWarning
from weft.tasks.forecast.data import guessed

OLD = pd.__version__ < "3"

ZAGREB = pd.date_range("2024-08-01", "2024-11-03", freq="h", tz="Europe/Zagreb", inclusive="left")


def isoformat(times: pd.DatetimeIndex) -> list[str]:
    return [time.isoformat() for time in times]


WRITTEN = {
    "local": ZAGREB,
    "Z": ZAGREB.tz_convert("UTC"),
    "+01:00": ZAGREB.tz_convert("+01:00"),
    "-07:00": ZAGREB.tz_convert("-07:00"),
}


def table(path: Path, times: list[str], values: object = None) -> Path:
    numbers = np.arange(len(times)) if values is None else np.asarray(values)
    rows = [f"{time};{number}" for time, number in zip(times, numbers, strict=True)]
    path.write_text("\n".join(["ds;y", *rows]) + "\n")
    return path


def read(path: Path, times: list[str], values: object = None, **which: object) -> SeriesTable:
    return read_series(table(path / "x.csv", times, values), Columns(**which))  # type: ignore[arg-type]


@pytest.mark.parametrize("written", WRITTEN)
def test_the_same_instants_are_the_same_times(tmp_path: Path, written: str) -> None:
    zoned = read(tmp_path, isoformat(ZAGREB))
    base = zoned.base
    assert base == "Europe/Berlin"  # its clocks are those of Zagreb
    assert "data.zone names another" in zoned.assumed[0]
    times = isoformat(WRITTEN[written])
    mixed = [*times[:1000], *isoformat(ZAGREB)[1000:]]
    for texts in (times, mixed):
        found = read(tmp_path, texts, base=base).series[0].times
        assert (found == ZAGREB).all() and found.hour.tolist() == ZAGREB.hour.tolist()


@pytest.mark.parametrize("written", WRITTEN)
def test_days_of_a_zone_are_days_however_they_are_written(tmp_path: Path, written: str) -> None:
    days = pd.date_range("2024-10-20", periods=20, freq="D", tz="Europe/Zagreb")
    base = read(tmp_path, isoformat(days)).base
    zone = days.tz if written == "local" else written.replace("Z", "UTC")
    series = read(tmp_path, isoformat(days.tz_convert(zone)), base=base).series[0]
    assert series.frequency == "D" and (series.times == days).all()
    assert str(coming(series, 1)[0]) == "2024-11-09 00:00:00+01:00"
    assert read(tmp_path, [str(day)[:10] for day in days], base=base).series[0].times[0] == days[0]


@pytest.mark.parametrize(
    ("zone", "begin"), [("Africa/Cairo", "2024-04-20"), ("America/Havana", "2024-10-28")]
)
def test_days_go_on_where_clocks_skip_or_repeat_midnight(tmp_path: Path, zone: str, begin: str) -> None:
    days = pd.date_range(begin, periods=4, freq="D", tz=zone)
    series = read(tmp_path, isoformat(days), zone=zone).series[0]
    times = coming(series, 9)
    assert [str(time)[:10] for time in times] == [
        str(day)[:10] for day in pd.date_range(days[-1].date(), periods=10)
    ][1:]
    whole = read(tmp_path, isoformat(days.append(times)), zone=zone).series[0]
    assert whole.frequency == "D" and len(whole.times) == 13


def test_offsets_of_no_zone_are_utc_and_one_offset_stays(tmp_path: Path) -> None:
    odd = read(tmp_path, ["2024-01-01T00:00+03:00", "2024-01-01T00:00+02:00", "2024-01-01T02:30+03:30"])
    assert odd.base == "UTC" and "no time zone" in odd.assumed[0] and odd.series[0].frequency == "h"
    assert read(tmp_path, ["2024-01-01T00:00-05:00"]).base == "-05:00"
    assert read(tmp_path, ["2024-01-01T00:00Z", "2024-01-01T01:00 UTC"]).base == "UTC"


def test_times_without_offsets_are_not_mixed_with_others(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"x\.csv:2: .*expected times with an offset .*Europe/Berlin"):
        read(tmp_path, ["2024-08-01 00:00", "2024-08-01 01:00"], base="Europe/Berlin")
    found = read(tmp_path, ["2024-08-01 00:00+02:00", "2024-08-01 01:00+02:00"], base="")
    assert found.base == "+02:00" and "no offsets" in found.assumed[0]
    with pytest.raises(DataError, match=r"x\.csv:3: some times have an offset"):
        read(tmp_path, ["2024-08-01 00:00", "2024-08-01 01:00Z"])


def test_a_zone_is_given_to_times_without_offsets(tmp_path: Path) -> None:
    clocks = ZAGREB[2000:].tz_localize(None)
    found = read(tmp_path, [str(time) for time in clocks], zone="Europe/Zagreb")
    assert (found.series[0].times == ZAGREB[2000:]).all() and not found.notes
    with pytest.warns(DataWarning, match="sorted"):
        newest = read(tmp_path, [str(time) for time in clocks[::-1]], zone="Europe/Zagreb")
    assert (newest.series[0].times == ZAGREB[2000:]).all()
    with pytest.raises(DataError, match=r"x\.csv:\d+: 2024-10-27 02:00.* is a duplicate .*data\.zone"):
        read(tmp_path, [str(time) for time in clocks])
    with pytest.raises(DataError, match=r"x\.csv:2: 2024-03-31 02:30:00 .*skip"):
        read(tmp_path, ["2024-03-31 02:30"], zone="Europe/Zagreb")
    with pytest.raises(DataError, match=r"x\.csv:2: 2024-10-27 02:30:00 .*twice"):
        read(tmp_path, ["2024-10-27 02:30"], zone="Europe/Zagreb")
    with pytest.raises(ConfigError, match="unknown time zone 'Europe/Zagrep'"):
        read(tmp_path, ["2024-10-27"], zone="Europe/Zagrep")


@pytest.mark.parametrize(
    ("cell", "time"),
    [
        ("2026-W05", "2026-01-26"),
        ("2026W053", "2026-01-28"),
        ("Q2 2024", "2024-04-01"),
        ("31.01.2024", "2024-01-31"),
        ("31/01/2024 1:05 PM", "2024-01-31 13:05"),
        ("2024-02-05 12:30 AM", "2024-02-05 00:30"),
        ("Jan-24", "2024-01-01"),
        ("5-Feb-24", "2024-02-05"),
        ("Feb 5, 2024", "2024-02-05"),
        ("2024-01-31 10:00:00,250", "2024-01-31 10:00:00.250"),
        ("2024-01-31T10:00:00.123456789Z", "2024-01-31 10:00:00.123456789"),
        ("2024-01-31T10:00:00+01:00[Europe/Zagreb]", "2024-01-31 10:00"),
        pytest.param(
            "2300-01-31", "2300-01-31", marks=pytest.mark.skipif(OLD, reason="pandas 2 ends in 2262")
        ),
        ("45322", "2024-01-31"),
        ("45322.5", "2024-01-31 12:00"),
        ("202401", "2024-01-01"),
        ("20240131", "2024-01-31"),
        ("1706659200", "2024-01-31"),
        ("1706659200123", "2024-01-31 00:00:00.123"),
        ("2024-01-30 24:00", "2024-01-31"),
        ("30.01.2024 24:00:00", "2024-01-31"),
        ("2024-01-29/2024-02-04", "2024-01-29"),  # pandas' name of a week
        ("31.01.2024 00:00 - 31.01.2024 01:00", "2024-01-31"),
        ("Wed Jan 31 2024 10:00:00 GMT+0100 (Central European Standard Time)", "2024-01-31 10:00"),
        ("2024-01-31 10:00 UTC+01:00", "2024-01-31 10:00"),
        ("Wed 31/01/2024", "2024-01-31"),
        ("Mittwoch, 31.01.2024", "2024-01-31"),
        ("2024M01", "2024-01-01"),
        ("2024-M1", "2024-01-01"),
        ("2024-T2", "2024-04-01"),
        ("2024-01-01 13:05:00.250+02:00", "2024-01-01 13:05:00.250"),
        ("2024-01-01 13:05 +02:00", "2024-01-01 13:05"),
        ("2024/01/31", "2024-01-31"),
        ("2024-7", "2024-07-01"),
        ("1749", "1749-01-01"),
        ("2Q2024", "2024-04-01"),
        ("202405", "2024-05-01"),
        ("202653", "2026-12-28"),
    ],
)
def test_times_as_other_programs_write_them(cell: str, time: str) -> None:
    found = read_times("x", [(2, cell)]).times[0]
    assert found.tz_localize(None) == pd.Timestamp(time)


@pytest.mark.parametrize("between", ["-", " - ", "–"])
def test_of_hours_the_begin_counts_and_their_end_is_no_offset(between: str) -> None:
    cells = [
        f"{31 if hour else 30}.01.2024 {(hour - 1) % 24:02d}:00{between}{hour:02d}:00" for hour in range(24)
    ]
    found = read_times("x", list(enumerate(cells, 2)))
    assert found.zone == "" and list(found.times[:3]) == list(
        pd.to_datetime(["2024-01-30 23:00", "2024-01-31 00:00", "2024-01-31 01:00"])
    )


@pytest.mark.parametrize(
    ("cell", "base", "hour", "zone"),
    [
        ("31.01.2024 05:00-06:00", None, 5, ""),
        ("2024-01-31 05:00 - 06:00", None, 5, ""),
        ("2024-01-31 05:00–06:00", None, 5, ""),
        ("2024-01-31 05:00-06:00", "", 5, ""),  # as in training
        ("2024-01-31 05:00-06:00", None, 5, "-06:00"),
        ("2024-01-31 05:00 -0600", None, 5, "-06:00"),
        ("01/31/2024 05:00-06:00", "UTC", 11, "UTC"),
    ],
)
def test_a_single_hour_is_told_from_an_offset(cell: str, base: str | None, hour: int, zone: str) -> None:
    for cells in ([cell], [cell, cell.replace("31", "30")]):
        found = read_times("x", list(enumerate(cells, 2)), "month" if "/" in cell else "day", base=base)
        assert (found.zone, found.times[0].hour) == (zone, hour)
        assert zone == "" or base or zone in found.notes[0]


def test_offsets_stay_offsets_and_impossible_ones_are_refused() -> None:
    winter = [(2, "2024-01-31 00:00-05:00"), (3, "2024-01-31 01:00-05:00")]
    assert list(read_times("x", winter).times.tz_convert("UTC").hour) == [5, 6]
    for far in ("2024-01-31 20:00-21:00", "31 Jan 2024 20:00-21:00"):
        with pytest.raises(DataError, match=r"x:2: .*is not a time"):
            read_times("x", [(2, far), (3, "2024-01-31 20:00-22:00")])


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_times_closer_than_a_second_are_different(tmp_path: Path, unit: str) -> None:
    times = pd.date_range("2024-01-01", periods=9, freq=f"100{unit}")
    series = read(tmp_path, isoformat(times)).series[0]
    assert (series.times == times).all() and coming(series, 1)[0] == times[-1] + (times[-1] - times[-2])


def test_whole_numbers_are_steps_and_years_look_like_years(tmp_path: Path) -> None:
    found = read(tmp_path, [str(n) for n in range(1, 3001)])
    assert found.base == STEPS and found.series[0].times.tolist() == list(range(1, 3001))
    assert "steps" in found.assumed[0] and coming(found.series[0], 2).tolist() == [3001, 3002]
    tens = read(tmp_path, ["10", "20", "40"]).series[0]
    assert tens.times.tolist() == [10, 20, 30, 40] and coming(tens, 1).tolist() == [50]
    assert np.isnan(tens.values[:, 0]).tolist() == [False, False, True, False]
    later = read(tmp_path, ["1990", "1991", "1992"], base=STEPS).series[0]
    assert later.times.tolist() == [1990, 1991, 1992]
    years = read(tmp_path, ["1990", "1991", "1992"]).series[0]
    assert years.frequency == "YS-JAN" and years.times[0] == pd.Timestamp("1990")
    with pytest.raises(DataError, match=r"x\.csv:2: .*is not a whole number"):
        read(tmp_path, ["2024-01-01"], base=STEPS)


def test_numbers_that_grow_evenly_in_fractions_are_no_series(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("seconds,v\n" + "".join(f"{n / 2},{n * n % 7}\n" for n in range(12)))
    which, note = guessed(tmp_path / "x.csv", Columns())
    assert which.targets == ("v",) and "left out 'seconds'" in note


def test_advice_on_times_keeps_the_rows(tmp_path: Path) -> None:
    days = [str(day.date()) for day in pd.date_range("2024-01-01", periods=5)]
    for times, line, advice in (
        ([*days, "Total"], 7, "remove the line if it is a total or a remark"),
        ([*days, ""], 7, "remove the line if it is a total or a remark"),
        (["(days)", *days], 2, "remove the line if it is part of the header"),
        ([*days[:2], "x", *days[2:]], 4, "2024-Q1$"),
        (["a", "b", "c"], 2, "or name the column of times"),
    ):
        with pytest.raises(DataError, match=rf"x\.csv:{line}: .*{advice}"):
            read(tmp_path, times)
    mixed = ["30/01/2024", "31/01/2024", "2/1/2024", "2/2/2024"]  # the third is the first of February
    year = [
        f"{one:%Y-%d-%m}" if one.day <= 12 else f"{one:%Y-%m-%d}" for one in pd.date_range("2024", "2025")
    ]
    for line, times in ((4, mixed), (14, year)):
        with pytest.raises(DataError, match=rf"x\.csv:{line}: .*mixed up; write dates as 2024-01-31"):
            read(tmp_path, times)


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d.%m.%Y", "%b %d, %Y", "%Y%m%d", "%Y-%m-%dT%H:%M:%S+01:00"])
@pytest.mark.parametrize("order", [[4, 3, 2, 1, 0], [2, 0, 4, 3, 1]])
def test_rows_in_any_order_are_sorted(tmp_path: Path, form: str, order: list[int]) -> None:
    """Weeks, of which one is missing: it stays missing."""
    weeks = pd.DatetimeIndex(["2024-01-01", "2024-01-08", "2024-01-22", "2024-01-29", "2024-02-05"])
    with pytest.warns(DataWarning, match=r"x\.csv: the rows were sorted by time$"):
        found = read(tmp_path, [weeks[n].strftime(form) for n in order], [n + 1 for n in order])
    np.testing.assert_array_equal(found.series[0].values[:, 0], [1, 2, np.nan, 3, 4, 5])
    assert found.series[0].frequency == "7D"


def test_blank_rows_and_columns_of_a_spreadsheet_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(
        "\ufeffdate;a;;\n01.01.2024;1,5;;\n02.01.2024;-;;\n03.01.2024;3;;\n;;;\n;;;\n"
    )
    found = read_series(tmp_path / "x.csv")
    assert found.columns == ("a",)
    np.testing.assert_array_equal(found.series[0].values[:, 0], [1.5, np.nan, 3])


def test_two_columns_name_a_series(tmp_path: Path) -> None:
    rows = [
        f"2024-01-0{day},{shop},{item},{shop * item}" for day in (1, 2) for shop in (1, 2) for item in (3, 5)
    ]
    (tmp_path / "x.csv").write_text("\n".join(["date,store,item,sales", *rows]) + "\n")
    found = read_series(tmp_path / "x.csv", Columns(id=("store", "item"), targets=("sales",)))
    assert [one.name for one in found.series] == ["1/3", "1/5", "2/3", "2/5"]
    with pytest.raises(
        DataError, match=r"x\.csv:3: 2024-01-01 is a duplicate .*'1'; .*name every column"
    ) as said:
        read_series(tmp_path / "x.csv", Columns(id=("store",), targets=("sales",)))
    _, _, ways = str(said.value).partition("; ")
    assert len(re.split(", (?![-])|, or ", ways)) == 3 and "zone" not in ways
    with pytest.raises(
        DataError, match=r"name the zone if clocks went back \(data\.zone, --zone\), name every"
    ):
        read(tmp_path, ["2024-10-27 01:00", "2024-10-27 02:00", "2024-10-27 02:00"])


def test_a_future_is_read_in_the_base_of_its_past(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("ds,k\n2024-11-03T00:00:00+01:00,1\n2024-11-03T01:00:00+01:00,2\n")
    found = read_future(tmp_path / "f.csv", Columns(known=["k"], base="Europe/Zagreb"), False).rows[""]
    after = pd.Timestamp("2024-11-02T23:00Z")
    assert found[after].tolist() == [1] and found[after + pd.Timedelta("1h")].tolist() == [2]
    with pytest.raises(DataError, match=r"f\.csv:2: .*offset"):
        (tmp_path / "f.csv").write_text("ds,k\n2024-11-03 01:00,1\n")
        read_future(tmp_path / "f.csv", Columns(known=["k"], base="Europe/Zagreb"), False)


@pytest.mark.parametrize(
    ("header", "cells"),
    [
        ("when,load", "{serial},{n}.5"),
        ("month,load", "2024-{month:02d},{n}.5"),
        (",when,load", "{n},{day},{n}.5"),
        ("year;load", "{year};{n},5"),
        ("ds,load", "{n},{n}.5"),
        ("t,load", "{n},{wave}"),
        ("Unnamed: 0,when,load", "{n},{day},{wave}"),
        ("X,when,load", "{n},{day},{wave}"),
        ("start,end,load", "{day} 00:00,{day} 23:00,{wave}"),
    ],
)
def test_the_column_of_times_is_found(tmp_path: Path, header: str, cells: str) -> None:
    file = tmp_path / "x.csv"
    days = pd.date_range("2024-01-01", periods=12)
    rows = [
        cells.format(n=n, serial=45292 + n, month=n + 1, day=days[n].date(), year=1990 + n, wave=n * n % 7)
        for n in range(12)
    ]
    file.write_text("\n".join([header, *rows]) + "\n")
    which, note = guessed(file, Columns())
    assert which.time is not None and "to forecast 'load';" in note
    series = read_series(file, which)
    assert series.columns == ("load",) and len(series.series[0].times) == 12 and not series.notes


def test_a_workbook_and_a_tsv_of_series_are_checked_as_forecasts(tmp_path: Path) -> None:
    days = pd.date_range("2024-01-01", periods=13)
    table = pd.DataFrame({"Datum": days, "Umsatz": np.arange(13) * 1.5})
    table.to_csv(tmp_path / "x.tsv", sep="\t", index=False)
    names = ["x.tsv"]
    if importlib.util.find_spec("openpyxl") and importlib.util.find_spec("python_calamine"):
        table.to_excel(tmp_path / "x.xlsx", index=False)
        names.append("x.xlsx")
    for name in names:
        answer = weft("data", "check", tmp_path / name)
        assert answer.code == 0 and "times 'Datum'; to forecast 'Umsatz'" in answer.out
        assert (read_series(tmp_path / name).series[0].times == days).all()


@pytest.mark.parametrize(
    ("header", "row", "names", "frequency"),
    [
        ("date,time,load", "{day},{hour:02d}:00,{n}", ("date", "time"), "h"),
        ("Datum;Uhrzeit;Last", "{day:%d.%m.%Y};{hour}:00:00;{n},5", ("Datum", "Uhrzeit"), "h"),
        ("year,month,passengers", "{year},{month},{n}", ("year", "month"), "MS"),
        ("date,hour,load", "{day:%Y%m%d},{hour},{n}", ("date", "hour"), "h"),
        ("date,HE,load", "{day},{ending},{n}", ("date", "HE"), "h"),
        ("year,month,passengers", "{year},{name},{n}", ("year", "month"), "MS"),
        ("year,week,y", "{iso},{week},{n}", ("year", "week"), "W-MON"),
        (
            "store,year,month,day,y",
            "{store},{day.year},{day.month},{day.day},{n}",
            ("year", "month", "day"),
            "12h",
        ),
    ],
)
def test_several_columns_make_a_time(
    tmp_path: Path, header: str, row: str, names: tuple[str, ...], frequency: str
) -> None:
    hours = pd.date_range("2024-02-14", periods=48, freq="h")
    rows = []
    for n, hour in enumerate(hours[::12] if "store" in header else hours):
        values = {"day": hour.date(), "hour": hour.hour, "year": 1949 + n // 12, "month": n % 12 + 1}
        values |= {"ending": hour.hour + 1, "name": pd.Timestamp(2024, n % 12 + 1, 1).month_name()}
        values |= dict(zip(("iso", "week"), (hours[0] + n * pd.Timedelta("7D")).isocalendar(), strict=False))
        rows.append(row.format(n=n, store=n % 2 + 1, **values))
    file = tmp_path / "x.csv"
    file.write_text("\n".join([header, *rows]) + "\n")
    which, note = guessed(file, Columns())
    assert which.time == names and f"times {', '.join(map(repr, names))};" in note
    found = read_series(file, which)
    if "store" in header:
        assert [one.name for one in found.series] == ["1", "2"] and len(found.series[0].times) == 2
    else:
        assert found.series[0].frequency == frequency and len(found.series[0].times) == 48
        assert len(found.columns) == 1 and not found.notes


def test_a_run_that_did_not_keep_its_base_reads_several_offsets_as_utc(tmp_path: Path) -> None:
    found = read(tmp_path, isoformat(ZAGREB), base=UNKNOWN)
    assert found.base == "UTC" and (found.series[0].times == ZAGREB).all()
    assert read(tmp_path, isoformat(ZAGREB[:24]), base=UNKNOWN).base == "+02:00"
    days = pd.date_range("2024-10-20", periods=20, freq="D", tz="Europe/Zagreb")
    assert read(tmp_path, isoformat(days), base=UNKNOWN).base == ""
    assert read(tmp_path, [str(day)[:10] for day in days], base=UNKNOWN).base == ""


@pytest.mark.parametrize(
    "long", ["1 " * 20_000, "jan" * 20_000, "2024-01-31" + " " * 200 + "x", "2024-01-31 " * 20]
)
def test_a_long_cell_is_no_time(tmp_path: Path, long: str) -> None:
    with pytest.raises(DataError, match=r"x\.csv:5"):
        read(tmp_path, ["2024-01-01", "2024-01-02", "2024-01-03", long])
