"""The laws of a metric; `check_metric` runs them over a metric of your own."""

from typing import Any, NamedTuple

import numpy as np

from weft.metrics.metric import ItemKind, Metric
from weft.metrics.numbers import ForecastWindows
from weft.testing.values import keeps


class MetricExamples(NamedTuple):
    """Outputs and references of one kind, not all right nor all wrong; `empty` outputs say nothing."""

    references: Any
    perfect: Any
    outputs: Any
    empty: Any


LINES = [
    "the cat sat on the mat .",
    "a dog",
    "Ünïcode — überall, heute und morgen!",
    "x",
    "no no no no no",
    "7",
]
OUTPUTS = ["the cat sat on a mat .", "a dog", "Unicode überall, heute und gestern!", "", "no no", "7"]
NUMBERS = np.array([[1.0, 2.0], [4.0, 8.0], [16.0, np.nan], [3.0, 5.0], [9.0, 2.0], [6.0, 7.0]])
CLASSES = np.array([0, 1, 1, 2, 0, 2])
PROBS = np.array([[5, 3, 2], [3, 4, 3], [6, 3, 1], [1, 2, 7], [2, 5, 3], [1, 3, 6]]) / 10
NAIVE = np.array([1.0, 2.0, 4.0, 1.0, 2.0, 4.0])


def examples(kind: ItemKind) -> MetricExamples:
    """Six items of a kind."""
    if kind == "probabilities":
        return MetricExamples(CLASSES, np.eye(3)[CLASSES], PROBS, np.full((6, 3), 1 / 3))
    if kind in ("numbers", "forecasts"):
        known = np.nan_to_num(NUMBERS)
        other = known + np.array([0.5, 4.0])  # in another order
        found = [ForecastWindows(one, None, (), NAIVE, NAIVE**2) for one in (known, other, known * 0)]
        return MetricExamples(NUMBERS, *found)
    if kind == "nats":
        tokens = np.array([7.0, 2.0, 5.0, 1.0, 5.0, 1.0])
        return MetricExamples(tokens, 0.1 * tokens, tokens + 1, 9 * tokens)
    labels = [line[:1] for line in LINES] if kind == "labels" else LINES
    outputs = [line[:1] for line in OUTPUTS] if kind == "labels" else OUTPUTS
    return MetricExamples(labels, labels, outputs, [""] * len(labels))


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
    keeps(LAWS, made.fitted(examples(made.reads[0]).references))


def a_perfect_output_is_better_than_an_imperfect_one(metric: Metric) -> None:
    """A perfect output is better than an imperfect one."""
    one = examples(metric.reads[0])
    perfect = metric.score(one.perfect, one.references, LINES).value
    other = metric.score(one.outputs, one.references, LINES).value
    assert perfect > other if metric.higher_is_better else perfect < other


def the_order_of_items_changes_nothing(metric: Metric) -> None:
    """The order of items changes nothing."""
    one = examples(metric.reads[0])
    forward = metric.score(one.outputs, one.references, LINES).value
    backward = metric.score(_reversed(one.outputs), _reversed(one.references), LINES[::-1]).value
    assert abs(backward - forward) <= 1e-10


def statistics_of_a_line_do_not_depend_on_its_neighbours(metric: Metric) -> None:
    """Statistics of a line do not depend on its neighbours."""
    one = examples(metric.reads[0])
    together = metric.fitted(one.references, one.outputs).statistics(one.outputs, one.references, LINES)
    assert together.dtype == np.float64
    if "texts" in metric.reads or "tags" in metric.reads:
        alone = [
            metric.statistics([ours], [theirs], ["s"])
            for ours, theirs in zip(one.outputs, one.references, strict=True)
        ]
        np.testing.assert_array_equal(together, np.concatenate(alone))


def values_of_many_totals_are_the_values_of_each(metric: Metric) -> None:
    """Values of many totals are the values of each."""
    one = examples(metric.reads[0])
    metric = metric.fitted(one.references, one.outputs)
    statistics = metric.statistics(one.outputs, one.references, LINES)
    totals = np.stack([statistics, statistics.cumsum(0)])  # [2, N, K]
    values = metric.value(totals)
    assert values.shape == totals.shape[:2]
    for index in np.ndindex(values.shape):
        alone = float(metric.value(totals[index]))
        assert np.isclose(values[index], alone, rtol=0, atol=1e-10, equal_nan=True)


def empty_outputs_are_scored_as_finite_numbers(metric: Metric) -> None:
    """Empty outputs are scored as finite numbers."""
    one = examples(metric.reads[0])
    score = metric.score(one.empty, one.references, LINES)
    assert np.isfinite(score.value)
    assert score.size >= len(LINES)  # items, or their tokens


def the_signature_is_text_without_line_ends_before_and_after_scoring(metric: Metric) -> None:
    """The signature is text without line ends before and after scoring."""
    one, before = examples(metric.reads[0]), metric.signature()
    assert before == metric.score(one.outputs, one.references, LINES).signature
    assert before and "\n" not in before


def _reversed(items: Any) -> Any:
    """The items from the last to the first; of forecasts each of their arrays."""
    if isinstance(items, ForecastWindows):
        return ForecastWindows(items.best[::-1], None, (), NAIVE[::-1], NAIVE[::-1] ** 2)
    return items[::-1]


LAWS = [
    a_perfect_output_is_better_than_an_imperfect_one,
    the_order_of_items_changes_nothing,
    statistics_of_a_line_do_not_depend_on_its_neighbours,
    values_of_many_totals_are_the_values_of_each,
    empty_outputs_are_scored_as_finite_numbers,
    the_signature_is_text_without_line_ends_before_and_after_scoring,
]
