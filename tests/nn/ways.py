"""The compiled ways as parameters of a test, each skipped loudly where this machine has none."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from weft import native

needs_native = pytest.mark.skipif(native.loaded().library is None, reason=native.loaded().reason)
needs_tiles = pytest.mark.skipif(not native.tiles(), reason=native.loaded("tiles").reason)
COMPILED = [pytest.param("native", marks=needs_native), pytest.param("tiles", marks=needs_tiles)]
needs_narrow = pytest.mark.skipif(not native.narrow_cells(), reason="no compiled cells in bfloat16 here")


def as_bytes(weight: Tensor) -> Tensor:
    """What compiled code multiplies in int8 for weights [O, K]: each row on a grid of its own.

    Without VNNI the sum of two neighbours must fit into a byte, too.
    """
    top = weight.abs().amax(-1, keepdim=True)
    if not native.narrow():
        pairs = F.pad(weight, (0, weight.shape[1] % 2)).unflatten(-1, (-1, 2)).sum(-1)
        top = torch.maximum(top, pairs.abs().amax(-1, keepdim=True))
    scale = torch.where(top > 1e-30, top / 127, 1.0)
    return (weight / scale).round() * scale
