"""Tables of very many columns: read in linear time, or rejected with the limit."""

import time
from pathlib import Path

import pytest

from weft.data.lines import LONGEST
from weft.data.series import MOST_COLUMNS, Columns, read_series
from weft.errors import ConfigError, DataError


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


def test_names_are_found_in_any_case_and_the_first_of_two_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("date,Sales,sales,SALES,heat\n2024-01-01,1,2,3,4\n2024-01-02,5,6,7,8\n")
    for name, values in (("sales", [2, 6]), ("SALES", [3, 7]), ("sALES", [1, 5]), ("Heat", [4, 8])):
        found = read_series(path, Columns(targets=(name,)))
        assert found.series[0].values[:, 0].tolist() == values
    with pytest.raises(ConfigError, match="no such column 'rain'"):
        read_series(path, Columns(targets=("rain",)))
