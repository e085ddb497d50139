"""The helpers of the laws can fail: a gradient of rounding noise counts as none."""

import pytest
import torch
from torch import Tensor, nn

from weft.testing.values import gradients_reach_every_parameter


class Noisy(nn.Module):
    """Its true gradient is zero; computed is 0.1 * 3 - 0.3 = 5.6e-17."""

    def __init__(self) -> None:
        super().__init__()
        self.learns, self.idle = nn.Parameter(torch.ones(())), nn.Parameter(torch.ones(()))

    def forward(self) -> Tensor:
        return self.learns + self.idle * 0.1 * 3 - self.idle * 0.3


def test_rounding_noise_is_no_gradient() -> None:
    it = Noisy().double()
    it().backward()
    assert it.idle.grad is not None and 0 < it.idle.grad.abs() < 1e-15
    with pytest.raises(AssertionError, match="zero gradient at idle"):
        gradients_reach_every_parameter(it)
    it.idle.grad.fill_(1e-6)
    gradients_reach_every_parameter(it)
