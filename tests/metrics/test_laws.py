"""Laws of every metric: a new file in the folder is tested automatically."""

import pytest

import weft.metrics
from weft.errors import DataError
from weft.metrics.metric import Metric
from weft.rooms import parts
from weft.testing import check_metric

METRICS = parts(weft.metrics, Metric)
each = pytest.mark.parametrize("metric", [metric() for metric in METRICS.values()], ids=list(METRICS))


def test_the_folder_holds_the_metrics_of_the_handbook():
    assert {"bleu", "chrf", "meteor", "accuracy"} <= set(METRICS)


@each
def test_a_metric_keeps_the_laws(metric):
    check_metric(metric)


@each
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
