"""Perplexity is exp of the mean loss in nats."""

import math

import pytest

from weft.errors import DataError
from weft.metrics.perplexity import perplexity


def test_a_uniform_model_is_as_perplexed_as_its_vocabulary_is_large():
    score = perplexity(13 * math.log(101), 13)
    assert score.value == pytest.approx(101, abs=1e-10)
    assert not score.higher_is_better
    assert score.signature == "unit:target token with </s>|log:e|smoothing:none"


def test_a_hopeless_model_is_infinitely_perplexed_and_raises_nothing():
    assert perplexity(1e6, 1).value == math.inf


def test_no_tokens_are_refused():
    with pytest.raises(DataError, match="perplexity: "):
        perplexity(0.0, 0)
