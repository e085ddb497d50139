"""Small functions over columns, times, names and vectors answer as their one-line docstrings say."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from weft.data.calendar import about_seconds, week_of
from weft.data.frames import as_csv, zone_of
from weft.data.labelled import NO_BORDER, joined_columns
from weft.data.languages import code_of, share
from weft.data.parallel import complete
from weft.data.quoting import escaped
from weft.data.several import rank
from weft.data.shapes import Scene
from weft.data.values import filled
from weft.store.jsonfile import is_number
from weft.wording import numbered


def test_empty_values_take_the_last_one_or_that_of_a_season_before() -> None:
    assert filled(np.array([np.nan, 2.0, np.nan, 3.0])).tolist() == [0.0, 2.0, 2.0, 3.0]
    assert filled(np.array([7.0, np.nan])).tolist() == [7.0, 7.0]
    assert filled(np.array([1.0, 2.0, np.nan, 3.0]), season=2).tolist() == [1.0, 2.0, 1.0, 3.0]


def test_lengths_of_steps_and_weeks() -> None:
    assert [about_seconds(one) for one in ("2h", "B", "MS")] == [7200.0, 86400.0, 31 * 86400.0]
    assert [week_of(one) for one in ("h", "15min", "D")] == [168, 672, 0]


def test_a_series_of_pandas_keeps_its_zone() -> None:
    times = pd.date_range("2024-03-31", periods=2, freq="h", tz="Europe/Zagreb")
    assert zone_of(pd.DataFrame({"ds": times})) == "Europe/Zagreb"
    lines = as_csv(pd.Series([1.5, 2.5], index=times)).split("\n")
    assert lines == ["ds,y", "2024-03-31 00:00:00+01:00,1.5", "2024-03-31 01:00:00+01:00,2.5", ""]


def test_columns_are_joined_with_a_border_or_without() -> None:
    assert (
        joined_columns(["Hi ", "all"], " | ") == "Hi | all" and joined_columns(["", "all"], " | ") == " | all"
    )
    assert joined_columns(["", "all"], NO_BORDER) == "all"


def test_quotes_after_a_backslash_are_escaped_and_doubled_ones_are_not() -> None:
    lines = r'"a \"b\" c",1', '"a ""b"" c",1', r'"C:\",1'
    assert [escaped([one], ",") for one in lines] == [True, False, False]


def test_languages_by_name_and_by_their_commonest_words() -> None:
    assert [code_of(name) for name in ("de_AT", "DE", "klingon")] == ["de", "de", None]
    assert share({"the": 2, "cat": 1, "in": 1}, "en") == 0.75


def test_pairs_with_a_blank_side_are_left_out() -> None:
    assert complete(["a", "b", ""], ["x", " ", "z"]) == [0]


def test_which_examples_are_held_out_depends_on_the_seed() -> None:
    one, two = (sorted(range(7), key=lambda number: rank(number, seed)) for seed in (1, 2))
    assert one == [0, 5, 1, 3, 2, 6, 4] and two != one


def test_a_scene_is_said_at_its_place() -> None:
    assert Scene("red", "circle", "top left").caption == "a red circle at the top left"


def test_numbers_of_json_are_finite_and_no_truth_values() -> None:
    given = 3, 0.5, True, 10**400, float("nan"), float("inf")
    assert [is_number(one) for one in given] == [True, True, False, False, False, False]


@pytest.mark.parametrize(("run", "after"), [("runs/en-es", "runs/en-es-2"), ("runs/en-es-2", "runs/en-es-3")])
def test_the_next_run_counts_on(run: str, after: str) -> None:
    assert numbered(Path(run)) == Path(after)
