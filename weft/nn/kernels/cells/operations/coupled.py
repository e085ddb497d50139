"""An LSTM with coupled gates over all time steps: compiled, or as an ordinary LSTM with tied weights.

1 - sigmoid(z) = sigmoid(-z), so W_i = -W_f and b_i = -b_f give i = 1 - f, which cuDNN can run. It multiplies
four gates where the compiled cell multiplies three. The plain twin is the loop over
../../../cells/coupled.py's `step`.
"""

import torch
from torch import Tensor

from weft.nn.kernels.cells.layer import Given, run
from weft.nn.kernels.cells.operations import lstm
from weft.nn.kernels.choice import Cells


def coupled(
    x: Tensor,
    h: Tensor,
    c: Tensor,
    weight_x: Tensor,
    weight_h: Tensor,
    bias: Tensor,
    mask: Tensor | None,
    *,
    backend: Cells | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gates stacked f, candidate, o.

    Args:
        x: [B, T, D]; h, c: [B, H] the initial state.
        weight_x: [3H, D]; weight_h: [3H, H]; bias: [3H].
        mask: [B, T] bool, real positions first, or None.
        backend: forces a way (choice.py).

    Returns:
        y [B, T, H] (zero at padding), h [B, H], c [B, H].
    """
    given = Given(x, h, c, weight_x, weight_h, bias, None, mask)
    return run("coupled", given, operation, backend)  # type: ignore[return-value]


def operation(
    x: Tensor,
    h: Tensor,
    c: Tensor,
    weight_x: Tensor,
    weight_h: Tensor,
    bias: Tensor,
    _: Tensor | None,
    mask: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """`coupled` with torch's LSTM operation."""
    size = weight_h.shape[1]
    tied = [torch.cat([-weight[:size], weight]) for weight in (weight_x, weight_h, bias)]
    return lstm.operation(x, h, c, *tied, None, mask)
