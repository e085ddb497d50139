"""Bars by source length: every value, count and signature is in the picture."""

import xml.etree.ElementTree as ElementTree

import pytest

from weft.errors import DataError
from weft.figures.charts import quality_by_length
from weft.figures.picture import png, svg
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


def test_values_counts_and_signature_are_shown():
    figure = quality_by_length(rows(35.25, 30.5, 20.0, None), title="help en–es $test$")
    shown = texts(figure)
    wanted = ["≤ 10", "11–20", "> 30", "n = 317", "n = 1,233", "35.2", "30.5", "20.0", "BLEU"]
    assert not [text for text in [*wanted, "help en–es $test$"] if text not in shown]
    assert shown.count("tok:13a|bs:9") == 1
    assert png(figure).startswith(b"\x89PNG")


def test_bins_without_scores_are_refused():
    with pytest.raises(DataError, match="at least one score"):
        quality_by_length(rows(None, None, None, None), title="t")
