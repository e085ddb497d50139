"""An Elman network over all time steps by torch's own operation, activation tanh or ReLU.

Nothing can hold h at padding here, so h is taken from the last real step. Its plain twin is the loop
over cells/elman.py's `step`.
"""

import torch
from torch import Tensor

from weft.nn.kernels.held import hold_last


def elman(
    x: Tensor,
    h: Tensor,
    weight_x: Tensor,
    weight_h: Tensor,
    bias: Tensor,
    activation: str,
    mask: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """h_t = activation(W_x x_t + W_h h_{t-1} + b).

    Args:
        x: [B, T, D]; h: [B, H] the state before.
        weight_x: [H, D]; weight_h: [H, H]; bias: [H].
        activation: "tanh" or "relu".
        mask: [B, T] bool, real positions first, or None.

    Returns:
        y [B, T, H] (zero at padding), h [B, H].
    """
    run = {"tanh": torch.rnn_tanh, "relu": torch.rnn_relu}[activation]
    weights = [weight_x, weight_h, bias, torch.zeros_like(bias)]
    y, last = run(x, h[None], weights, True, 1, 0.0, False, False, True)
    return (y, last[0]) if mask is None else hold_last(y, h, mask)
