"""A floor's line says who is ahead, a tie too."""

import pytest

from weft.metrics.floor import beside


@pytest.mark.parametrize("higher", [True, False])
def test_ahead_level_and_behind(higher: bool) -> None:
    sign = 1 if higher else -1
    assert beside(2.0 * sign, 1.0 * sign, higher=higher) == ""
    assert beside(1.0, 1.0, higher=higher) == "  <- the model is level with this floor"
    assert beside(1.0 * sign, 2.0 * sign, higher=higher) == "  <- the model is BELOW this floor"
    assert "BELOW" in beside(float("nan"), 1.0, higher=higher)
