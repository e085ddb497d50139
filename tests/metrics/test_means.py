"""Means over items: what is reported of a sum and a count."""

import math

import numpy as np
import pytest

from weft.metrics.means import Form, form_of, mean_of, ratio
from weft.metrics.wer import Wer

SUMS, COUNTS = np.array([3.0, 5.0, 4.0]), np.array([2.0, 7.0, 1.0])


@pytest.mark.parametrize(
    ("form", "value"),
    [("mean", 1.2), ("root", math.sqrt(1.2)), ("percent", 120.0), ("perplexity", math.e**1.2)],
)
def test_each_form_is_its_formula(form: Form, value: float) -> None:
    metric = ratio("x", "unit:item", higher_is_better=False, form=form)
    assert float(metric.value(np.array([12.0, 10.0]))) == pytest.approx(value)
    found = mean_of(metric, SUMS, COUNTS, baselines={"lowest": 7.0})
    assert found.value == pytest.approx(value) and dict(found.baselines) == {"lowest": 7.0}
    assert form_of(metric) == form and form_of(Wer()) is None


def test_a_perplexity_too_large_for_a_number_is_still_one() -> None:
    metric = ratio("perplexity", "unit:token", higher_is_better=False, form="perplexity")
    assert math.isfinite(float(metric.value(np.array([1e6, 1.0]))))


def test_without_counts_each_item_is_one() -> None:
    metric = ratio("share", "unit:item", higher_is_better=True)
    assert mean_of(metric, SUMS, baselines={}).value == pytest.approx(4.0)
    assert mean_of(metric, SUMS, COUNTS, baselines={}, size=10).score.size == 10
