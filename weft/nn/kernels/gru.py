"""A GRU over all time steps by torch's own operation; the reset gate acts after the product, as in cuDNN.

The mask enters as in lstm.py: at padding a fixed weight opens the update gate (torch's z, 1 keeps the
old state), so h is held to the bit. Its plain twin is the loop over cells/gru.py's `step`.
"""

import torch
from torch import Tensor

from weft.nn.kernels.held import hold_last, pad_feature

HOLD = 1e4


def gru(
    x: Tensor,
    h: Tensor,
    weight_x: Tensor,
    weight_h: Tensor,
    bias: Tensor,
    bias_n: Tensor,
    mask: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """Gates in torch's order r, u (torch's z), n (candidate).

    Args:
        x: [B, T, D]; h: [B, H] the state before.
        weight_x: [3H, D]; weight_h: [3H, H]; bias: [3H]; bias_n: [H], the candidate's inner bias b_h.
        mask: [B, T] bool, real positions first, or None.

    Returns:
        y [B, T, H] (zero at padding), h [B, H].
    """
    size = weight_h.shape[1]
    if mask is not None:
        x, weight_x = pad_feature(x, weight_x, mask, (0.0, HOLD, 0.0), size)
    inner = torch.cat([torch.zeros_like(bias[: 2 * size]), bias_n])
    y, last = torch.gru(x, h[None], [weight_x, weight_h, bias, inner], True, 1, 0.0, False, False, True)
    last = last[0]
    if mask is not None:
        y, last = hold_last(y, h, mask)
    return y, last
