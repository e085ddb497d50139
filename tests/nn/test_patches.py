"""An image is cut into patches in reading order."""

import numpy as np
import pytest
import torch

from tests.laws.members import normal, ready
from weft.errors import ShapeError
from weft.nn.pictures.patches import Patches


@pytest.mark.parametrize("first", [False, True])
def test_patches_are_their_equation(first: bool) -> None:
    module = ready(lambda: Patches(3, 7, patch=2, first=first))
    pictures = normal(5, 4, 6, 3)
    got = module(pictures).detach().numpy()
    w, b = module.project.weight.detach().numpy(), module.project.bias.detach().numpy()
    for row, picture in enumerate(pictures.numpy()):
        want = [picture[y : y + 2, x : x + 2].ravel() @ w.T + b for y in (0, 2) for x in (0, 2, 4)]
        want = ([module.first.detach().numpy()] if first else []) + want
        np.testing.assert_allclose(got[row], np.stack(want), rtol=1e-10, atol=1e-10)


def test_a_picture_that_patches_do_not_tile_is_refused() -> None:
    sentence = r"multiples of 4, got 6 x 9 pixels"
    with pytest.raises(ShapeError, match=sentence):
        Patches(3, 7, patch=4)(torch.zeros(1, 6, 9, 3))
