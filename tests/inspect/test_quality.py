"""Bars by source length: every value, count and signature is in the picture."""

import xml.etree.ElementTree as ElementTree

import pytest

from weft.errors import DataError
from weft.figures.picture import png, svg
from weft.figures.quality import quality_by_length
from weft.metrics.bylength import LengthRow
from weft.metrics.metric import MetricScore


def rows(*values, name="BLEU", counts=(317, 1233, 46, 19), labels=("<=10", "11-20", "21-30", ">30")):
    scores = [
        None if value is None else MetricScore(name, value, "tok:13a|bs:9", 7, low=value - 1, high=value + 2)
        for value in values
    ]
    return [LengthRow(*row) for row in zip(labels, counts, scores, strict=True)]


def texts(figure):
    return [e.text for e in ElementTree.fromstring(svg(figure)).iter("{http://www.w3.org/2000/svg}text")]


def test_one_run_shows_values_counts_and_signature():
    shown = texts(quality_by_length({"lstm": rows(35.25, 30.5, 20.0, None)}, title="help en–es $test$"))
    wanted = ["≤ 10", "11–20", "> 30", "n = 317", "n = 1,233", "35.2", "30.5", "20.0", "BLEU"]
    assert not [text for text in [*wanted, "tok:13a|bs:9", "help en–es $test$"] if text not in shown]


def test_several_runs_have_a_legend_and_one_signature():
    runs = {
        "no attention": rows(30, 25, 20, 10),
        "$attention$": rows(31, 30, 29, 28, counts=(317, 1233, 46, 18)),
    }
    shown = texts(quality_by_length(runs, title="t"))
    assert {"no attention", "$attention$", "n = 19 / 18"} <= set(shown)
    assert shown.count("tok:13a|bs:9") == 1
    assert png(quality_by_length(runs, title="t")).startswith(b"\x89PNG")


def test_more_than_four_runs_are_drawn_without_figures():
    shown = texts(quality_by_length({f"run {n}": rows(30, 25, 20, 10) for n in range(7)}, title="t"))
    assert "run 6" in shown and "30.0" not in shown


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        ({}, "got 0 without any"),
        ({"a": rows(None, None, None, None)}, "got 1 without any"),
        (
            {"a": rows(1, 2, 3, 4), "b": rows(1, 2, 3, 4, name="chrF2")},
            r"same metrics, got BLEU and chrF2",
        ),
        (
            {"a": rows(1, 2, 3, 4), "b": rows(1, labels=("<=10",), counts=(5,))},
            "runs with the same bins",
        ),
    ],
)
def test_runs_that_do_not_compare_are_refused(runs, said):
    with pytest.raises(DataError, match=said):
        quality_by_length(runs, title="t")
