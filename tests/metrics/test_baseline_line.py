"""A baseline's line says whether the model is better, worse or equal, for scores of either direction."""

import pytest

from weft.metrics.baseline import beside
from weft.metrics.metric import MetricScore
from weft.metrics.scored import ScoreWithBaselines


@pytest.mark.parametrize("higher", [True, False])
def test_ahead_level_and_behind(higher: bool) -> None:
    sign = 1 if higher else -1
    assert beside(2.0 * sign, 1.0 * sign, higher=higher) == ""
    assert beside(1.0, 1.0, higher=higher) == "  <- the model equals the baseline"
    assert beside(1.0 * sign, 2.0 * sign, higher=higher) == "  <- the model is worse than the baseline"
    assert "worse than the baseline" in beside(float("nan"), 1.0, higher=higher)


def test_what_reads_equal_is_called_equal() -> None:
    score = MetricScore("MSE", 0.00018241, "toy", 34, higher_is_better=False)
    (_, line) = ScoreWithBaselines(score, {"ridge": 0.00018240}).lines()
    assert line.endswith("ridge 0.000182  <- the model equals the baseline")
