"""A GRU over all time steps; torch's own operation is one way if the reset gate acts after the product.

There the mask is an input feature as in lstm.py: at padding, a fixed weight opens the update gate (torch's z;
1 keeps the old state), so h stays bit-identical. The plain twin is the loop over ../../../cells/gru.py's
`step`.
"""

import torch
from torch import Tensor

from weft.nn.kernels.autocast import cast_weight
from weft.nn.kernels.cells.held import hold_last, pad_feature
from weft.nn.kernels.cells.layer import Given, run
from weft.nn.kernels.cells.operations.recurrent import recurrent
from weft.nn.kernels.cells.reset_before import reset_before
from weft.nn.kernels.choice import Cells
from weft.nn.padding import inspectable

HOLD = 1e4


def gru(
    x: Tensor,
    h: Tensor,
    weight_x: Tensor,
    weight_h: Tensor,
    bias: Tensor,
    bias_n: Tensor | None,
    mask: Tensor | None,
    *,
    backend: Cells | None = None,
) -> tuple[Tensor, Tensor]:
    """Gates in torch's order r, u (torch's z), n (candidate).

    Args:
        x: [B, T, D]; h: [B, H] the initial state.
        weight_x: [3H, D]; weight_h: [3H, H]; bias: [3H].
        bias_n: [H], the candidate's inner bias b_h; None where the reset gate acts before the product.
        mask: [B, T] bool, real positions first, or None.
        backend: forces a way (choice.py).

    Returns:
        y [B, T, H] (zero at padding), h [B, H].
    """
    given = Given(x, h, None, weight_x, weight_h, bias, bias_n, mask)
    if bias_n is None:
        eager = x.device.type == "cpu" and inspectable(x)
        return run("gru_before", given, reset_before if eager else None, backend)[:2]
    return run("gru", given, operation, backend)[:2]


def operation(
    x: Tensor,
    h: Tensor,
    _: Tensor | None,
    weight_x: Tensor,
    weight_h: Tensor,
    bias: Tensor,
    bias_n: Tensor,
    mask: Tensor | None,
) -> tuple[Tensor, Tensor, None]:
    """`gru` with torch's own operation."""
    size = weight_h.shape[1]
    if mask is not None:
        x, weight_x = pad_feature(x, weight_x, mask, (0.0, HOLD, 0.0), size)
    inner = torch.cat([torch.zeros_like(bias[: 2 * size]), bias_n])
    weights = [weight_x, cast_weight(weight_h), bias, inner]  # weight_h is used once per step
    y, last = recurrent(torch.gru, x, (h[None],), weights)
    last = last[0]
    if mask is not None:
        y, last = hold_last(y, h, mask)
    return y, last, None
