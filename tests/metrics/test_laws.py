"""Laws of every metric: a new file in the folder is tested automatically."""

import numpy as np
import pytest

import weft.metrics
from weft.errors import DataError
from weft.metrics.metric import Metric
from weft.rooms import parts

METRICS = parts(weft.metrics, Metric)
REFERENCES = [
    "the cat sat on the mat .",
    "a dog",
    "Ünïcode — überall, heute und morgen!",
    "x",
    "no no no no no",
    "7",
]
HYPOTHESES = ["the cat sat on a mat .", "a dog", "Unicode überall, heute und gestern!", "", "no no", "7"]
SOURCES = ["s"] * len(REFERENCES)

each = pytest.mark.parametrize("metric", [metric() for metric in METRICS.values()], ids=list(METRICS))


def test_the_folder_holds_the_metrics_of_the_handbook():
    assert {"bleu", "chrf", "meteor", "accuracy"} <= set(METRICS)


@each
def test_a_perfect_output_is_better_than_an_imperfect_one(metric):
    perfect = metric.score(REFERENCES, REFERENCES, SOURCES).value
    other = metric.score(HYPOTHESES, REFERENCES, SOURCES).value
    assert perfect > other if metric.higher_is_better else perfect < other


@each
def test_the_order_of_lines_changes_nothing(metric):
    forward = metric.score(HYPOTHESES, REFERENCES, SOURCES).value
    backward = metric.score(HYPOTHESES[::-1], REFERENCES[::-1], SOURCES).value
    assert backward == pytest.approx(forward, abs=1e-10)


@each
def test_statistics_of_a_line_do_not_depend_on_its_neighbours(metric):
    together = metric.statistics(HYPOTHESES, REFERENCES, SOURCES)
    alone = [
        metric.statistics([ours], [theirs], ["s"])
        for ours, theirs in zip(HYPOTHESES, REFERENCES, strict=True)
    ]
    assert together.dtype == np.float64
    np.testing.assert_array_equal(together, np.concatenate(alone))


@each
def test_values_of_many_totals_are_the_values_of_each(metric):
    statistics = metric.statistics(HYPOTHESES, REFERENCES, SOURCES)
    totals = np.stack([statistics, statistics.cumsum(0)])  # [2, N, K]
    values = metric.value(totals)
    assert values.shape == totals.shape[:2]
    for index in np.ndindex(values.shape):
        assert values[index] == pytest.approx(float(metric.value(totals[index])), abs=1e-10)


@each
def test_empty_hypotheses_are_scored_as_finite_numbers(metric):
    score = metric.score([""] * len(REFERENCES), REFERENCES, SOURCES)
    assert np.isfinite(score.value)
    assert score.size == len(REFERENCES)


@each
def test_the_signature_is_text_without_line_ends_before_and_after_scoring(metric):
    before = type(metric)().signature()
    assert before == metric.score(HYPOTHESES, REFERENCES, SOURCES).signature
    assert before and "\n" not in before


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
