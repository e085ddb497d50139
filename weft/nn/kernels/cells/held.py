"""Padding inside a fused recurrence: keep a short row's state unchanged after its end."""

import torch
import torch.nn.functional as F
from torch import Tensor

MULTIPLE = 16  # oneDNN's bfloat16 LSTM took 44 ms with 257 features, 16 ms with 272 (and 15 with 256)


def pad_feature(
    x: Tensor, weight: Tensor, mask: Tensor, holds: tuple[float, ...], size: int
) -> tuple[Tensor, Tensor]:
    """Add a feature that is 1 at padding, with fixed weights for each gate.

    Args:
        x: [B, T, D], finite; weight: [G H, D]; mask: [B, T] bool.
        holds: what to add to the pre-activation of each of the G gates at padding.
        size: H.

    Returns:
        x [B, T, D'] and weight [G H, D'], D' the next multiple of 16 beyond D, filled with zeros.
    """
    extra = MULTIPLE - x.shape[2] % MULTIPLE
    x = x * mask[..., None].to(x.dtype)  # a large enough value at padding would outweigh the hold
    flag = F.pad((~mask).to(x.dtype)[..., None], (0, extra - 1))
    column = torch.tensor(holds, dtype=weight.dtype, device=weight.device).repeat_interleave(size)
    return torch.cat([x, flag], -1), torch.cat([weight, F.pad(column[:, None], (0, extra - 1))], 1)


def hold_last(y: Tensor, before: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Zero y at padding and give the output at each row's last real step, or the state before if none.

    Args:
        y: [B, T, H]; before: [B, H]; mask: [B, T] bool, real positions first.
    """
    y = y.masked_fill(~mask[..., None], 0.0)
    count = mask.sum(1)
    index = (count - 1).clamp(min=0).view(-1, 1, 1).expand(-1, 1, y.shape[2])
    last = y.gather(1, index).squeeze(1)
    return y, torch.where((count > 0)[:, None], last, before.to(y.dtype))


def shown_last(y: Tensor, before: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """`hold_last`, also without a mask."""
    return (y, y[:, -1]) if mask is None else hold_last(y, before, mask)
