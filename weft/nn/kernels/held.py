"""Padding inside a fused recurrence: how the state after a short row equals the state at its end."""

import torch
from torch import Tensor


def pad_feature(
    x: Tensor, weight: Tensor, mask: Tensor, holds: tuple[float, ...], size: int
) -> tuple[Tensor, Tensor]:
    """Add a feature that is 1 at padding, with fixed weights for each gate.

    Args:
        x: [B, T, D]; weight: [G H, D]; mask: [B, T] bool.
        holds: what to add to each of the G gates at padding.
        size: H.

    Returns:
        x [B, T, D + 1] and weight [G H, D + 1].
    """
    x = torch.cat([x, (~mask).to(x.dtype)[..., None]], -1)
    column = torch.tensor(holds, dtype=weight.dtype, device=weight.device).repeat_interleave(size)
    return x, torch.cat([weight, column[:, None]], 1)


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
