"""Laws of every metric: a new file in the folder is tested automatically."""

import pytest

import weft.metrics
from weft.errors import DataError
from weft.metrics.metric import Metric
from weft.rooms import parts
from weft.testing import check_metric
from weft.testing.metrics import LINES, examples

METRICS = parts(weft.metrics, Metric)
each = pytest.mark.parametrize("metric", [metric() for metric in METRICS.values()], ids=list(METRICS))
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


@pytest.mark.parametrize("metric", TEXTS.values(), ids=TEXTS)
def test_a_text_for_a_list_and_none_in_a_list_are_refused(metric):
    for given in (("a b", "a b"), ("a b", ["a b"]), (["a b"], "a b")):
        with pytest.raises(DataError, match=r"expected a list of texts, got one text; put it in a list"):
            metric(*given)
    for given in ((["a", None], ["a", "b"]), (["a", "b"], ["a", None])):
        with pytest.raises(DataError, match="got None at 1"):
            metric(*given)
    for given in ((None, ["a"]), (["a"], None), ({"a": 1}, ["a"]), ({"a"}, ["a"]), (7, ["a"])):
        with pytest.raises(DataError, match="expected a list, an item for each answer, got"):
            metric(*given)
    for wrong in (7, b"a", *([] if metric.reads[0] == "labels" else [["a"]])):
        for given in (([wrong], ["a"]), (["a"], [wrong])):
            with pytest.raises(DataError, match="expected a text for each item, got"):
                metric(*given)


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
