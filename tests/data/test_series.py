"""Series from CSV: wide and long, with gaps and without dates; errors name file and line."""

import gzip
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from weft.data.lines import LONGEST
from weft.data.parquet import as_parquet
from weft.data.series import MOST_COLUMNS, Columns, read_series
from weft.errors import ConfigError, DataError
from weft.export.programs.tables import cells_of
from weft.tasks.forecast.data import guessed


def write(path: Path, text: str) -> Path:
    path.write_text(text, "utf-8")
    return path


def test_a_wide_table_is_a_series_a_column(tmp_path: Path) -> None:
    text = "date,a,b\n2024-01-01 00:00,1,2\n2024-01-01 01:00,NA,3.5\n2024-01-01 02:00,4,\n"
    table = read_series(write(tmp_path / "x.csv", text))
    assert table.columns == ("a", "b") and not table.long
    np.testing.assert_array_equal(table.series[0].values, [[1, 2], [np.nan, 3.5], [4, np.nan]])
    assert table.series[0].times[-1] == np.datetime64("2024-01-01T02")


def test_compressed_and_without_a_header(tmp_path: Path) -> None:
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(b"1,2\n3,4\n"))
    table = read_series(tmp_path / "x.csv.gz")
    assert table.columns == ("1", "2") and table.series[0].times.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("text", "columns", "said"),
    [
        ("0,1\n3,4\n5,6\n", ("0", "1"), "(0, 1) is read as the names of columns"),  # pandas' names
        ("101,205\n3.5,4.0\n,6.5\n", ("101", "205"), "(101, 205) is read as the names"),
        ("1,2\n3,4\n5,6\n", ("1", "2"), "(1, 2) is read as values of columns called 1 to 2"),
        ("0,5\n1,6\n2,7\n", ("1", "2"), "(0, 5) is read as values"),
        ("2,5.5\n3.5,4.0\n4,6.5\n", ("1", "2"), "(2, 5.5) is read as values"),
        ("1,5;2,5\n3,5;4,5\n5,5;6,5\n", ("1", "2"), "(1,5, 2,5) is read as values"),
        (
            "2024-01-01,5,9\n2024-01-02,7,9\n2024-01-03,5,\n",
            ("2", "3"),
            "(2024-01-01, 5, 9) is read as values",
        ),
        (
            "31.01.2024;1,5;\n01.02.2024;2;3\n02.02.2024;;4\n",
            ("2", "3"),
            "(31.01.2024, 1,5, ) is read as val",
        ),
        ("2024-Q1,1\n2024-Q2,2\n2024-Q3,3\n", ("2",), "(2024-Q1, 1) is read as values"),
    ],
)
def test_a_first_row_of_numbers_is_never_read_silently(
    tmp_path: Path, text: str, columns: tuple[str, ...], said: str
) -> None:
    table = read_series(write(tmp_path / "x.csv", text))
    assert table.columns == columns and said in " ".join(table.assumed)
    which, _ = guessed(tmp_path / "x.csv", Columns())
    again = read_series(tmp_path / "x.csv", which).series[0].times
    rows = 2 if "names" in said else 3
    assert [len(table.series[0].times), len(again), len(cells_of(text, columns).rows)] == [rows] * 3


def test_the_keys_of_records_are_names_also_if_they_are_numbers(tmp_path: Path) -> None:
    table = read_series(write(tmp_path / "x.jsonl", '{"1": 3, "2": 4}\n{"1": 5, "2": 6}\n'))
    assert table.columns == ("1", "2") and table.series[0].values.tolist() == [[3, 4], [5, 6]]


def test_a_long_table_is_a_series_an_id(tmp_path: Path) -> None:
    text = "unique_id,ds,y\nB,2024-01,1\nB,2024-02,2\nA,2024-01,7\n"
    table = read_series(write(tmp_path / "x.csv", text))
    assert table.long and [series.name for series in table.series] == ["B", "A"]
    assert table.series[0].values[:, 0].tolist() == [1, 2]


@pytest.mark.parametrize("long", [False, True])
def test_parquet_is_read_as_the_csv_is(tmp_path: Path, long: bool) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="NO PYARROW: pip install weft-seq[parquet]")
    wide = f"ds,a,b\n2024-01-01 00:00:00,{1 / 3},\n2024-01-01 01:00:00,{2**40},-4\n"
    rows = "unique_id,ds,y\nx,2024-01-01,1\nx,2024-01-02,\ny,2024-01-01,3e-7\n7,2024-02-01,1e3\n"
    text = (rows if long else wide).encode()
    (tmp_path / "x.csv").write_bytes(text)
    (tmp_path / "x.parquet").write_bytes(as_parquet(text, tmp_path / "x.parquet"))
    one, other = read_series(tmp_path / "x.csv"), read_series(tmp_path / "x.parquet")
    assert (one.columns, one.long) == (other.columns, other.long)
    assert [series.name for series in one.series] == [series.name for series in other.series]
    for series, same in zip(one.series, other.series, strict=True):
        np.testing.assert_array_equal(series.times, same.times)
        np.testing.assert_array_equal(series.values, same.values)
    types = {str(field.type) for field in parquet.read_schema(tmp_path / "x.parquet")}
    assert "double" in types and not any(kind.startswith("int") for kind in types)
    if long:
        assert parquet.read_table(tmp_path / "x.parquet")["unique_id"].to_pylist() == ["x", "x", "y", "7"]


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ("2024-01-02,1\n2024-01-02,2\n", r"x\.csv:3: 2024-01-02 is a duplicate .*remove one .*--resample"),
        ("2024-01-02,inf\n", r"x\.csv:2: inf in column y is infinite"),
        ("2024-01-02,one\n", r"x\.csv:2: .*'one' in column y is"),
        ("soon,1\n", r"x\.csv:2: .*'soon' is"),
        ("2024-01-02,1,9\n", r"x\.csv:2: .*got 3"),
        ("", "no row"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_by_line(tmp_path: Path, rows: str, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        read_series(write(tmp_path / "x.csv", "ds,y\n" + rows))


def test_a_table_of_empty_cells_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="got rows without text"):
        read_series(write(tmp_path / "x.csv", ",,\n,,\n"))


def test_a_column_that_is_not_there(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "ds,y\n2024-01-02,1\n")
    with pytest.raises(ConfigError, match="column 'z'"):
        read_series(path, Columns(targets=["z"]))


def _long(path: Path, **times: "pd.DatetimeIndex") -> Path:
    lines = [f"{name},{time},{n}" for name, own in times.items() for n, time in enumerate(own)]
    path.write_text("unique_id,ds,y\n" + "\n".join(lines) + "\n")
    return path


def test_series_of_several_frequencies_are_named_unless_that_is_asked_for(tmp_path: Path) -> None:
    days, mondays, business = (
        pd.date_range("2024-01-01", periods=40, freq=name) for name in ("D", "W-MON", "B")
    )
    path = _long(tmp_path / "mixed.csv", A=days, B=mondays, C=business)
    with pytest.raises(
        DataError, match=r"one frequency .* got D and 'B' at W-MON; 'C' at B; .*--frequency D .*each"
    ):
        read_series(path)
    each = read_series(path, Columns(frequency="each")).series
    assert [one.frequency for one in each] == ["D", "W-MON", "B"]
    whole = read_series(path, Columns(frequency="D")).series
    assert [one.frequency for one in whole] == ["D"] * 3 and len(whole[1].times) == 39 * 7 + 1
    weeks = read_series(path, Columns(frequency="W-MON", resample="sum")).series
    assert {one.frequency for one in weeks} == {"W-MON"}
    read_series(_long(tmp_path / "months.csv", A=pd.date_range("2024-01-01", periods=9, freq="MS"),
                      B=pd.date_range("2024-01-01", periods=9, freq="ME")))  # fmt: skip
    read_series(_long(tmp_path / "short.csv", A=days, B=days[::3][:4]))  # too few to tell
    steps = tmp_path / "steps.csv"
    steps.write_text(
        "unique_id,ds,y\n" + "".join(f"{a},{n * b},1\n" for a, b in (("A", 1), ("B", 10)) for n in range(9))
    )
    with pytest.raises(
        DataError,
        match=r"steps of 1 and 'B' at steps of 10; give a table for each frequency, or --frequency each",
    ):
        read_series(steps)


@pytest.mark.parametrize(("trained", "other"), [("D", "W-MON"), ("D", "B"), ("h", "2h"), ("MS", "QS")])
def test_a_table_at_another_frequency_than_the_trainings_is_refused(
    tmp_path: Path, trained: str, other: str
) -> None:
    run = Columns(frequency=trained, inferred=True)
    path = _long(tmp_path / "x.csv", A=pd.date_range("2024-01-01", periods=30, freq=other))
    with pytest.raises(
        DataError, match=rf"expected rows at the frequency {trained}, as in training, got {other}"
    ):
        read_series(path, run)
    gaps = pd.date_range("2024-01-01", periods=30, freq=trained).delete([3, 4, 9])
    assert len(read_series(_long(tmp_path / "y.csv", A=gaps), run).series[0].times) == 30


HALF_HOURS = ",".join(f"hh_{n}" for n in range(48))


@pytest.mark.parametrize(
    ("text", "names", "first", "times"),
    [
        ('"V1","V2","V3","V4"\n"Y1",3,4,5\n"Y2",6,7,\n', "Y1 Y2", [3, 4, 5], ["2", "4"]),
        ("id,item_id,state,d_1,d_2,d_3,d_4\na_1,a,CA,0,2,,0\na_2,a,CA,1,1,1,1\n", "a_1 a_2",
         [0, 2, np.nan, 0], ["1", "4"]),
        ("Series,N,Category,1,2,3,4,5\nN1,4,MICRO,1,2,3,4,\nN2,5,MICRO,5,6,7,8,9\n", "N1 N2", [1, 2, 3, 4],
         ["1", "4"]),
        ("geo,2024-01,2024-02,2024-03,2024-04\nHR,1 p,2,:,3 be\nDE,4,5,6,7\n", "HR DE", [1, 2, np.nan, 3],
         ["2024-01-01", "2024-04-01"]),
        ("Data Source,World Development Indicators,\n\nCountry Name,Code,Name,1990,1991,1992,1993\n"
         "Peru,PER,GDP,..,2,3,4\nChad,TCD,GDP,5,6,7,8\n",
         "Peru Chad", [np.nan, 2, 3, 4], ["1990-01-01", "1993-01-01"]),
        ("geo,2024-01,2024-02,2024-03\nHR,1,2,3\nDE,4,5,6\n", "HR DE", [1, 2, 3],
         ["2024-01-01", "2024-03-01"]),
        ("Customer,date,6:00,12:00,18:00,0:00\nc1,30/01/2024,1,2,3,4\nc1,31/01/2024,5,6,7,8\n", "c1",
         [1, 2, 3, 4, 5, 6, 7, 8], ["2024-01-30 06:00:00", "2024-02-01"]),
        ("date,00:00,06:00,12:00,18:00\n2024-01-01,1,2,3,4\n2024-01-02,5,6,7,8\n", "",
         [1, 2, 3, 4, 5, 6, 7, 8], ["2024-01-01", "2024-01-02 18:00:00"]),
        (f"LCLid,day,{HALF_HOURS}\nMAC1,2012-10-12{',2' * 48}\nMAC2,2012-10-12{',3' * 48}\n", "MAC1 MAC2",
         [2] * 48, ["2012-10-12", "2012-10-12 23:30:00"]),
    ],
)  # fmt: skip
def test_a_series_or_a_day_in_each_row_is_read(
    tmp_path: Path, text: str, names: str, first: list[float], times: list[str]
) -> None:
    path = tmp_path / "x.csv"
    path.write_text(text)
    found = read_series(path).series
    assert [one.name for one in found] == (names.split() or [""])
    np.testing.assert_array_equal(found[0].values[:, 0], first)
    assert [str(found[0].times[at]).removesuffix(" 00:00:00") for at in (0, -1)] == times


def test_covariates_of_a_table_with_a_series_in_each_row_and_days_without_a_date_are_refused(
    tmp_path: Path,
) -> None:
    path = tmp_path / "x.csv"
    path.write_text("id,price,d_1,d_2,d_3\na,1,0,2,1\nb,2,3,2,1\n")
    with pytest.raises(ConfigError, match="a row for each time beside price, got a row for each series"):
        read_series(path, Columns(known=["price"]))
    path.write_text("zone,year,month,day,h1,h2,h3,h4,h5\n1,2024,5,7,1,2,3,4,5\n")
    with pytest.raises(ConfigError, match=r"a column of days beside h1 to h5, .*--time"):
        read_series(path)
    whole = read_series(path, Columns(time=["year", "month", "day"], id=["zone"])).series[0]
    assert whole.name == "1" and [str(one) for one in whole.times[[0, -1]]] == [
        "2024-05-07 01:00:00",
        "2024-05-07 05:00:00",
    ]


def test_a_file_of_the_monash_archive_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.tsf"
    path.write_text(
        "# about\n@relation x\n@attribute series_name string\n@attribute start_timestamp date\n"
        "@frequency half_hourly\n@missing true\n@data\nT1:1979-01-01 00-00-00:1,2,?,4\n"
        "T2:1980-05-01 06-30-00:5,6\n"
    )
    one, two = read_series(path).series
    np.testing.assert_array_equal(one.values[:, 0], [1, 2, np.nan, 4])
    assert one.name == "T1" and one.frequency == "30min" and str(two.times[1]) == "1980-05-01 07:00:00"
    path.write_text("@attribute series_name string\n@frequency monthly\n@data\nT1:1,2,3\nT2:5,6:7\n")
    with pytest.raises(DataError, match=r"x.tsf:5: expected 1 attributes and the values.*got 3 parts"):
        read_series(path)
    path.write_text("1,2,3\n")
    with pytest.raises(DataError, match="expected @attribute, @frequency and @data"):
        read_series(path)


def test_twice_a_day_by_local_clocks_names_the_clocks(tmp_path: Path) -> None:
    days = pd.date_range("2022-10-20", "2022-11-10", tz="Europe/Berlin")
    times = [day.replace(hour=hour).isoformat() for day in days for hour in (8, 20)]
    path = tmp_path / "x.csv"
    path.write_text("ds,y\n" + "".join(f"{time},1\n" for time in times))
    with pytest.raises(
        DataError,
        match=r"leave data.zone or .* out: the clocks of Europe/Berlin are regular \(12h\)",
    ):
        read_series(path)
    path.write_text("ds,y\n" + "".join(f"{time[:19]},1\n" for time in times))
    assert read_series(path).series[0].frequency == "12h"


def test_half_hours_by_period_are_times(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    rows = [(f"2024-01-0{day}", period) for day in (1, 2) for period in range(1, 49)]
    path.write_text("settlement_date,settlement_period,mw\n" + "".join(f"{a},{b},{b}\n" for a, b in rows))
    found = read_series(path, Columns(time=["settlement_date", "settlement_period"])).series[0]
    assert found.frequency == "30min" and str(found.times[47]) == "2024-01-01 23:30:00"
    path.write_text(path.read_text().replace("2024-01-02,48,", "2024-01-02,50,"))
    with pytest.raises(DataError, match=r"'2024-01-02 24:30' is not a time.*clocks go back: name the zone"):
        read_series(path, Columns(time=["settlement_date", "settlement_period"]))


@pytest.mark.parametrize("name", ["hour", "period"])
@pytest.mark.parametrize("skips", [False, True])
def test_hours_of_long_and_short_days_are_counted_in_their_zone(
    tmp_path: Path, name: str, *, skips: bool
) -> None:
    """A day has 25 hours in autumn; in spring it has 23, or skips the number of one."""
    each, first = (2, 0) if name == "period" else (1, 1)
    rows = []
    for day in pd.date_range("2024-03-30", "2024-10-28", tz="Europe/Madrid"):
        end = day.tz_localize(None) + pd.Timedelta(days=1)
        hours = round((end.tz_localize(day.tz) - day) / pd.Timedelta(hours=1))
        numbers = [n for n in range(24) if n != 2] if skips and hours == 23 else list(range(hours))
        rows += [f"{day:%Y-%m-%d},{each * n + part + 1},1\n" for n in numbers for part in range(each)]
    path = tmp_path / "x.csv"
    path.write_text(f"date,{name},y\n" + "".join(rows))
    which = Columns(time=["date", name], zone="Europe/Madrid")
    times = read_series(path, which).series[0].times
    begin = pd.Timestamp("2024-03-30", tz="Europe/Madrid") + first * pd.Timedelta(hours=1)
    expected = pd.date_range(begin, periods=len(rows), freq="h" if each == 1 else "30min")
    assert (times == expected).all()
    if name == "hour":
        with pytest.raises(DataError, match=r"'2024-10-27 25:00' is not a time.*--zone Europe/Madrid"):
            read_series(path, which._replace(zone=None))


@pytest.mark.parametrize("begin", ["2024-04-05", "2024-10-04"])  # days of 49 and of 47 half-hours
def test_periods_are_counted_where_clocks_go_by_half_hours(tmp_path: Path, begin: str) -> None:
    times = pd.date_range(begin, periods=4 * 48, freq="30min", tz="Australia/Lord_Howe")
    day = times.normalize()
    periods = ((times - day) / pd.Timedelta("30min")).astype(int) + 1
    path = tmp_path / "x.csv"
    pd.DataFrame({"date": day.date, "period": periods, "y": 1}).to_csv(path, index=False)
    found = read_series(path, Columns(time=["date", "period"], zone="Australia/Lord_Howe"))
    assert (found.series[0].times == times).all()


@pytest.mark.parametrize(("zone", "often"), [("Australia/Lord_Howe", "h"), ("Europe/Zagreb", "2h")])
def test_clocks_that_go_back_by_half_a_step_are_read_in_their_zone_or_refused(
    tmp_path: Path, zone: str, often: str
) -> None:
    path = tmp_path / "x.csv"
    half = pd.Timedelta(minutes=30 if often == "h" else 60)
    for first in (pd.Timestamp("2024-01-01", tz=zone), pd.Timestamp("2024-01-01", tz=zone) + half):
        times = pd.date_range(first, periods=8784 if often == "h" else 4392, freq=often)
        pd.DataFrame({"ds": times.tz_localize(None), "y": 1}).to_csv(path, index=False)
        found = read_series(path, Columns(zone=zone)).series[0]
        assert (found.times == times).all() and found.frequency == often
        with pytest.raises(DataError, match=r"expected regular times.*data\.zone, the zone of the times"):
            read_series(path)
        pd.DataFrame({"ds": times, "y": 1}).to_csv(path, index=False)
        assert (read_series(path).series[0].times.tz_convert("UTC") == times.tz_convert("UTC")).all()


def test_whole_hours_of_clocks_that_move_by_half_an_hour_name_the_ways_out(tmp_path: Path) -> None:
    clocks = pd.date_range("2024-04-01", periods=24 * 10, freq="h")
    offset = ["+11:00" if time < pd.Timestamp("2024-04-07 02:00") else "+10:30" for time in clocks]
    path = tmp_path / "x.csv"
    pd.DataFrame({"ds": [f"{a}{b}" for a, b in zip(clocks, offset, strict=True)], "y": 1}).to_csv(
        path, index=False
    )
    with pytest.raises(DataError, match=r"or leave .* the offsets out: the clocks of .* are regular \(h\)"):
        read_series(path)
    assert len(read_series(path, Columns(frequency="h", resample="mean")).series[0].times) == 24 * 10
    pd.DataFrame({"ds": clocks, "y": 1}).to_csv(path, index=False)
    assert (read_series(path).series[0].times == clocks).all()
    pd.DataFrame({"ds": pd.date_range("2024-10-06 01:00", periods=9, freq="30min"), "y": 1}).to_csv(path)
    with pytest.raises(DataError, match=r"whose clocks skip it; .* or leave data\.zone \(--zone\) out"):
        read_series(path, Columns(time=["ds"], zone="Australia/Lord_Howe"))


def test_a_column_of_a_wide_table_at_another_frequency_is_said(tmp_path: Path) -> None:
    days = pd.date_range("2024-01-01", periods=90)
    table = pd.DataFrame({"ds": days, "a": 1.0, "b": 2.0, "c": 3.0})
    table.loc[days.day_of_week != 0, "b"] = np.nan
    table.loc[[7, 20, 21], "c"] = np.nan
    table.to_csv(tmp_path / "x.csv", index=False)
    (said,) = read_series(tmp_path / "x.csv").assumed
    assert "the values of b come at W-MON, other columns at D; pass --past 'b' to forecast only the" in said
    guess, note = guessed(tmp_path / "x.csv", Columns())
    assert (guess.targets, guess.past) == ((), ("b",))
    assert "to forecast 'a', 'c'; past covariate 'b', as its values come at W-MON; --time" in note
    for which in (Columns(targets=["a", "b"]), Columns(frequency="D")):
        assert guessed(tmp_path / "x.csv", which)[0].past == ()
    past = read_series(tmp_path / "x.csv", guess)
    assert past.columns == ("a", "c") and not past.assumed
    assert not read_series(tmp_path / "x.csv", Columns(frequency="D")).assumed
    in_turns = pd.DataFrame({"ds": days, "a": [1.0, np.nan] * 45, "b": [np.nan, 1.0] * 45})
    in_turns.to_csv(tmp_path / "x.csv", index=False)
    assert guessed(tmp_path / "x.csv", Columns())[0].past == ()


def test_two_header_rows_of_prices_become_one(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    days = "".join(f"2024-01-0{n},{n},{n + 1}\n" for n in range(1, 6))
    path.write_text("Price,Close,Volume\nTicker,AAPL,AAPL\nDate,,\n" + days)
    table = read_series(path)
    assert table.columns == ("Close", "Volume") and table.series[0].values[:, 0].tolist() == [1, 2, 3, 4, 5]
    path.write_text("Price,Close,Close\nTicker,AAPL,MSFT\nDate,,\n" + days)
    assert read_series(path).columns == ("AAPL", "MSFT")


def test_a_covariate_of_classes_is_numbers_of_its_classes(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("date,sold,holiday\n2024-01-01,3,a\n2024-01-02,4,0\n2024-01-03,5,0.0\n2024-01-04,,b\n")
    which = Columns(known=["holiday"], targets=["sold"])
    with pytest.raises(DataError, match=r"x\.csv:2: 'a' in column holiday is not a number.*--category"):
        read_series(path, which)
    which = which._replace(categories=["holiday"])
    table = read_series(path, which)
    assert table.classes == {"holiday": ["0", "a", "b"]}
    assert table.series[0].known.tolist() == [[1], [0], [0]] and table.series[0].ahead.tolist() == [[2]]
    run = which._replace(classes={"holiday": ["0", "a"]})
    with pytest.raises(
        DataError, match=r"x\.csv:5: expected one of 0, a in column holiday, as in training, got 'b'"
    ):
        read_series(path, run)
    with pytest.raises(ConfigError, match="category 'colour': expected its name under known, past or static"):
        read_series(path, which._replace(categories=["colour"]))


def test_static_covariates_have_one_value_for_each_series(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(
        "shop,day,sold,size,kind\nN,2024-01-01,3,5,a\nN,2024-01-04,4,,a\nS,2024-01-01,5,9,b\nS,2024-01-02,6,9,b\n"
    )
    which = Columns(
        id=["shop"], targets=["sold"], static=["size", "kind"], categories=["kind"], frequency="D"
    )
    one, two = read_series(path, which).series
    assert one.known.tolist() == [[5, 0]] * 4 and two.known.tolist() == [[9, 1]] * 2  # in inserted rows too
    path.write_text(path.read_text().replace("6,9,b", "6,8,b"))
    with pytest.raises(DataError, match=r"x\.csv:5: expected one value of size in series 'S', got several"):
        read_series(path, which)


def table(path: Path, columns: int) -> Path:
    names = ",".join(f"c{number}" for number in range(columns))
    rows = (f"2024-01-0{day}," + ",".join(["1"] * columns) for day in (1, 2, 3))
    path.write_text("\n".join([f"date,{names}", *rows]) + "\n")
    return path


def test_a_wide_table_is_read_in_linear_time(tmp_path: Path) -> None:
    begun = time.process_time()
    found = read_series(table(tmp_path / "wide.csv", 30_011))
    assert len(found.columns) == 30_011 and found.series[0].values.shape == (3, 30_011)
    assert time.process_time() - begun < 20  # took more than 100 s before


def test_a_table_of_too_many_columns_is_refused_with_the_limit(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=rf"expected at most {MOST_COLUMNS:,} columns, got {MOST_COLUMNS + 1:,}"
    ):
        read_series(table(tmp_path / "wide.csv", MOST_COLUMNS))


def test_a_head_of_one_endless_cell_is_read_up_to_the_limit_of_a_line(tmp_path: Path) -> None:
    (tmp_path / "long.csv").write_text("a" * 1_000_000 + ",b\n1,2\n")
    assert read_series(tmp_path / "long.csv").columns == ("a" * 1_000_000, "b")
    (tmp_path / "long.csv").write_text("a" * (LONGEST + 2**20) + ",b\n1,2\n")
    with pytest.raises(DataError, match=r"long\.csv:1: a line longer than"):
        read_series(tmp_path / "long.csv")


def test_names_are_found_in_any_case_and_of_two_neither_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("date,Sales,sales,SALES,heat\n2024-01-01,1,2,3,4\n2024-01-02,5,6,7,8\n")
    for name, values in (("sales", [2, 6]), ("SALES", [3, 7]), ("Heat", [4, 8])):
        found = read_series(path, Columns(targets=(name,)))
        assert found.series[0].values[:, 0].tolist() == values
    with pytest.raises(ConfigError, match="no such column 'rain'"):
        read_series(path, Columns(targets=("rain",)))
    with pytest.raises(DataError, match="the columns 2 and 3 and 4 are both called 'sALES'; rename one"):
        read_series(path, Columns(targets=("sALES",)))
