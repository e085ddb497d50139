"""Bootstrap: seeded, equal to a plain loop, no significant difference between equal systems."""

import numpy as np
import pytest

from weft.errors import ConfigError, DataError
from weft.metrics.accuracy import Accuracy
from weft.metrics.bleu import Bleu
from weft.metrics.bootstrap import compare, confidence
from weft.metrics.meteor import Meteor


@pytest.mark.parametrize("metric", [Accuracy(), Meteor()], ids=["accuracy", "meteor"])
def test_interval_equals_scoring_every_resampled_text_anew(metric, good, references):
    generator = np.random.default_rng(5)
    values = []
    for rows in generator.choice(31, size=(40, 31)):
        values.append(metric.score([good[r] for r in rows], [references[r] for r in rows]).value)
    got = confidence(metric, good[:31], references[:31], resamples=40, seed=5)
    assert got.low == pytest.approx(sorted(values)[1], abs=1e-10)  # one in forty at either end
    assert got.high == pytest.approx(sorted(values)[-2], abs=1e-10)


def test_the_same_seed_gives_the_same_interval_and_another_another(good, references):
    first, again = (confidence(Bleu(), good, references, resamples=50) for _ in range(2))
    other = confidence(Bleu(), good, references, resamples=50, seed=2)
    assert first == again
    assert (first.low, first.high) != (other.low, other.high)


def test_a_system_against_itself_is_no_difference(good, references):
    result = compare(Bleu(), good, good, references, resamples=50)
    assert (result.difference, result.p_value) == (0, pytest.approx(1 / 51))


def test_a_clearly_better_system_is_significant_with_the_right_sign(good, references):
    result = compare(Bleu(), good, references, references, resamples=99)
    assert result.difference > 0
    assert result.p_value == pytest.approx(0.01)


def test_unequal_systems_and_no_resamples_are_refused(good, references):
    with pytest.raises(DataError, match="210 hypotheses and 211 references"):
        compare(Bleu(), good, good[1:], references)
    with pytest.raises(ConfigError, match=r"resample.*got 0"):
        confidence(Bleu(), good, references, resamples=0)
