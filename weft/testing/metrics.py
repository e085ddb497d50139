"""The laws of a metric; `check_metric` runs them over a metric of your own."""

import numpy as np

from weft.metrics.metric import Metric
from weft.testing.values import keeps

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


def check_metric(metric: Metric | type[Metric]) -> None:
    """Check that a metric keeps the laws that every metric of Weft keeps.

    A perfect output scores better than another; the order of lines changes nothing; a line's statistics do
    not depend on its neighbours; totals of many resamples are scored as each alone; empty outputs have finite
    scores.

    Args:
        metric: with its settings; or its class, if it has none.

    Raises:
        AssertionError: names the laws that are broken, and where the first one is.

    Example:
        >>> from weft.metrics import Wer
        >>> check_metric(Wer())
    """
    made = metric() if isinstance(metric, type) else metric
    keeps(LAWS, made.for_references(REFERENCES))


def a_perfect_output_is_better_than_an_imperfect_one(metric: Metric) -> None:
    """A perfect output is better than an imperfect one."""
    perfect = metric.score(REFERENCES, REFERENCES, SOURCES).value
    other = metric.score(HYPOTHESES, REFERENCES, SOURCES).value
    assert perfect > other if metric.higher_is_better else perfect < other


def the_order_of_lines_changes_nothing(metric: Metric) -> None:
    """The order of lines changes nothing."""
    forward = metric.score(HYPOTHESES, REFERENCES, SOURCES).value
    backward = metric.score(HYPOTHESES[::-1], REFERENCES[::-1], SOURCES).value
    assert abs(backward - forward) <= 1e-10


def statistics_of_a_line_do_not_depend_on_its_neighbours(metric: Metric) -> None:
    """Statistics of a line do not depend on its neighbours."""
    together = metric.statistics(HYPOTHESES, REFERENCES, SOURCES)
    alone = [
        metric.statistics([ours], [theirs], ["s"])
        for ours, theirs in zip(HYPOTHESES, REFERENCES, strict=True)
    ]
    assert together.dtype == np.float64
    np.testing.assert_array_equal(together, np.concatenate(alone))


def values_of_many_totals_are_the_values_of_each(metric: Metric) -> None:
    """Values of many totals are the values of each."""
    statistics = metric.statistics(HYPOTHESES, REFERENCES, SOURCES)
    totals = np.stack([statistics, statistics.cumsum(0)])  # [2, N, K]
    values = metric.value(totals)
    assert values.shape == totals.shape[:2]
    for index in np.ndindex(values.shape):
        assert abs(values[index] - float(metric.value(totals[index]))) <= 1e-10


def empty_hypotheses_are_scored_as_finite_numbers(metric: Metric) -> None:
    """Empty hypotheses are scored as finite numbers."""
    score = metric.score([""] * len(REFERENCES), REFERENCES, SOURCES)
    assert np.isfinite(score.value)
    assert score.size == len(REFERENCES)


def the_signature_is_text_without_line_ends_before_and_after_scoring(metric: Metric) -> None:
    """The signature is text without line ends before and after scoring."""
    before = metric.signature()
    assert before == metric.score(HYPOTHESES, REFERENCES, SOURCES).signature
    assert before and "\n" not in before


LAWS = [
    a_perfect_output_is_better_than_an_imperfect_one,
    the_order_of_lines_changes_nothing,
    statistics_of_a_line_do_not_depend_on_its_neighbours,
    values_of_many_totals_are_the_values_of_each,
    empty_hypotheses_are_scored_as_finite_numbers,
    the_signature_is_text_without_line_ends_before_and_after_scoring,
]
