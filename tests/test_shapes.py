"""The error of a shape check names both shapes."""

import pytest
import torch

from weft.errors import ShapeError
from weft.shapes import check_shape


def test_a_shape_that_fits_passes() -> None:
    check_shape("x", torch.zeros(2, 3, 5), 2, None, 5)
    check_shape("x", torch.zeros(()))


@pytest.mark.parametrize(
    ("shape", "sizes", "sentence"),
    [
        ((2, 3), (2, 5), r"^x: .*\[2, 5\], got .*\[2, 3\]"),
        ((2, 3), (None, None, 3), r"^x: .*\[any, any, 3\], got .*\[2, 3\]"),
        ((0,), (1,), r"^x: .*\[1\], got .*\[0\]"),
    ],
)
def test_a_shape_that_does_not_fit_is_named(shape: tuple, sizes: tuple, sentence: str) -> None:
    with pytest.raises(ShapeError, match=sentence):
        check_shape("x", torch.zeros(shape), *sizes)
