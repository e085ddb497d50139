"""An LSTM over all time steps by torch's own operation (oneDNN on the CPU, cuDNN on a GPU).

A mask costs one input feature: it is 1 at padding, and its fixed weights close the input gate and
open the forget gate there (sigmoid(-+1e4) is 0 and 1 exactly), so that c is held to the bit; h is then
taken from the last real step. torch's packed sequences would leave the fused path on the CPU.
Its plain twin is the loop over cells/lstm.py's `step`. Read next: gru.py.
"""

import torch
from torch import Tensor

from weft.nn.kernels.held import hold_last, pad_feature

HOLD = 1e4


def lstm(
    x: Tensor, h: Tensor, c: Tensor, weight_x: Tensor, weight_h: Tensor, bias: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Gates in torch's order i, f, g (candidate), o.

    Args:
        x: [B, T, D]; h, c: [B, H] the state before.
        weight_x: [4H, D]; weight_h: [4H, H]; bias: [4H].
        mask: [B, T] bool, real positions first, or None.

    Returns:
        y [B, T, H] (zero at padding), h [B, H], c [B, H].
    """
    if mask is not None:
        size = weight_h.shape[1]
        x, weight_x = pad_feature(x, weight_x, mask, (-HOLD, HOLD, 0.0, 0.0), size)
    weights = [weight_x, weight_h, bias, torch.zeros_like(bias)]
    y, last_h, last_c = torch.lstm(x, (h[None], c[None]), weights, True, 1, 0.0, False, False, True)
    last_h, last_c = last_h[0], last_c[0]
    if mask is not None:
        y, last_h = hold_last(y, h, mask)
    return y, last_h, last_c
