"""Laws of every metric: a new file in the folder is tested automatically."""

import numpy as np
import pandas as pd
import pytest

import weft.metrics
from weft.errors import DataError
from weft.metrics import compare
from weft.metrics.metric import Metric
from weft.rooms import parts
from weft.testing import check_metric
from weft.testing.metrics import LINES, examples

METRICS = parts(weft.metrics, Metric)
each = pytest.mark.parametrize("metric", [metric() for metric in METRICS.values()], ids=list(METRICS))
WORDS = {name: metric() for name, metric in METRICS.items() if {"texts", "tags", "labels"} & {*metric.reads}}
TEXTS = {name: metric() for name, metric in METRICS.items() if metric.reads == ("texts",)}


def test_the_folder_holds_the_metrics_of_the_handbook():
    assert {"bleu", "chrf", "meteor", "accuracy"} <= set(METRICS)


@each
def test_a_metric_keeps_the_laws(metric):
    check_metric(metric)


@each
def test_a_metric_has_its_name_in_recipes_and_is_called_and_shown(metric):
    assert parts(weft.metrics, Metric)[metric.key] is type(metric)
    one = examples(metric.reads[0])
    assert metric(one.outputs, one.references, LINES) == metric.score(one.outputs, one.references, LINES)
    assert repr(metric).startswith(f"<{type(metric).__name__}: ")


@each
def test_what_is_no_list_of_items_is_refused(metric):
    one = examples(metric.reads[0])
    for wrong in ("a b", b"ab", None, {"a": 1}, {"a"}, iter(["a"])):
        with pytest.raises(DataError, match="hypotheses: expected a list"):
            metric(wrong, one.references)
        with pytest.raises(DataError, match="references: expected a list"):
            metric(one.outputs, wrong)
    if metric.key not in WORDS:
        with pytest.raises(DataError, match="hypotheses: expected a number for each item, got None at 1"):
            metric([0.5, None], [1, 1])


@pytest.mark.parametrize("metric", WORDS.values(), ids=WORDS)
@pytest.mark.parametrize("wrong", [None, 1, float("nan"), b"a", [1], ["a", None]], ids=str)
def test_an_item_that_is_no_text_is_refused_with_its_place(metric, wrong):
    said = r"expected a (text|class as text) for each item, got .* at 1"
    for lines in (["a", wrong], np.array(["a", wrong, "b"], object)[:2], pd.Series(["a", wrong])):
        with pytest.raises(DataError, match=f"hypotheses: {said}"):
            metric(lines, ["a", "b"])
        with pytest.raises(DataError, match=f"references: {said}"):
            compare(metric, ["a", "b"], ["a", "b"], lines)


@pytest.mark.parametrize("metric", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize(
    ("hypotheses", "references", "sources", "said"),
    [
        (["a"] * 3, ["a"] * 2, None, "3 hypotheses and 2 references"),
        ([], [], None, "0 hypotheses and 0 references"),
        (["a", "b"], ["", " "], None, "2 hypotheses and 2 references"),
        (["a"], ["a"], ["s", "t"], "2 sources and 1 reference"),
    ],
)
def test_sets_that_do_not_compare_are_refused_with_both_counts(metric, hypotheses, references, sources, said):
    with pytest.raises(DataError, match=said):
        metric.score(hypotheses, references, sources)
