"""An Elman network over all time steps; for tanh and ReLU, torch's own operation is one way.

It has no gate that could keep h at padding, so h is taken from the last real step. The plain twin is the loop
over ../../../cells/elman.py's `step`.
"""

from functools import partial

import torch
from torch import Tensor

from weft.nn.kernels.autocast import cast_weight
from weft.nn.kernels.cells.form import ACTIVATIONS
from weft.nn.kernels.cells.held import hold_last
from weft.nn.kernels.cells.layer import Given, run
from weft.nn.kernels.cells.operations.recurrent import recurrent
from weft.nn.kernels.choice import Cells

CELLS = {activation: cell for cell, activation in ACTIVATIONS.items()}
"""The name of an Elman cell in the kernels, by its activation."""


def elman(
    x: Tensor,
    h: Tensor,
    weight_x: Tensor,
    weight_h: Tensor,
    bias: Tensor,
    activation: str,
    mask: Tensor | None,
    *,
    backend: Cells | None = None,
) -> tuple[Tensor, Tensor]:
    """h_t = activation(W_x x_t + W_h h_{t-1} + b); modrelu uses b inside the activation instead.

    Args:
        x: [B, T, D]; h: [B, H] the initial state.
        weight_x: [H, D]; weight_h: [H, H]; bias: [H].
        activation: one of CELLS.
        mask: [B, T] bool, real positions first, or None.
        backend: forces a way (choice.py).

    Returns:
        y [B, T, H] (zero at padding), h [B, H].
    """
    given = Given(x, h, None, weight_x, weight_h, bias, None, mask)
    return run(CELLS[activation], given, OPERATIONS.get(activation), backend)[:2]


def operation(
    activation: str,
    x: Tensor,
    h: Tensor,
    _: Tensor | None,
    weight_x: Tensor,
    weight_h: Tensor,
    bias: Tensor,
    __: Tensor | None,
    mask: Tensor | None,
) -> tuple[Tensor, Tensor, None]:
    """`elman` with torch's own operation."""
    function = {"tanh": torch.rnn_tanh, "relu": torch.rnn_relu}[activation]
    if mask is not None:
        x = x * mask[..., None].to(x.dtype)  # else ReLU could grow without bound at padding
    weights = [weight_x, cast_weight(weight_h), bias, torch.zeros_like(bias)]
    y, last = recurrent(function, x, (h[None],), weights)
    if mask is None:
        return y, last[0], None
    y, held = hold_last(y, h, mask)
    return y, held, None


OPERATIONS = {activation: partial(operation, activation) for activation in ("tanh", "relu")}
