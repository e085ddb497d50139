"""Adagrad is its formula, and leaves rows without a gradient alone."""

import numpy as np
import torch
from torch import nn

from weft.train.optimisers.adagrad import Adagrad


def test_three_steps_are_the_formula() -> None:
    model = nn.Linear(3, 2, bias=False).double()
    optimiser = Adagrad(lr=0.3, start=0.5, eps=1e-6).build(model)
    theta, s = model.weight.detach().numpy().copy(), np.full((2, 3), 0.5)
    for step in range(3):
        g = np.array([[1.0, -2.0, 0.0], [0.0, 0.5, 3.0]]) * (step + 1)
        model.weight.grad = torch.from_numpy(g)
        optimiser.step()
        s += g**2
        theta -= 0.3 * g / (np.sqrt(s) + 1e-6)
    np.testing.assert_allclose(model.weight.detach().numpy(), theta, atol=1e-10)
