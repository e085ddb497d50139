"""The adding problem's head: one number, judged by its squared error."""

import torch
from torch import Tensor

from weft.nn.heads.head import Head, Loss
from weft.nn.kernels.linear import Linear


class Squared(Head):
    """y = w h + b, (y - target)² summed.

    Args:
        in_size: D, features of h.
    """

    def __init__(self, in_size: int) -> None:
        super().__init__()
        self.out = Linear(in_size, 1)

    def forward(self, h: Tensor) -> Tensor:
        """h [.., D] to [..]."""
        y: Tensor = self.out(h)[..., 0]
        return y.to(torch.promote_types(y.dtype, torch.float32))

    def loss(self, h: Tensor, target: Tensor, mask: Tensor) -> Loss:
        """h [B, T, D] against numbers [B, T] where the mask is True; not nats but squares."""
        y = self(h)
        return Loss((y - target.to(y.dtype))[mask].square().sum(), mask.sum())

    def best(self, h: Tensor, mask: Tensor) -> Tensor:
        """The number, [B, T]."""
        return self(h)  # type: ignore[no-any-return]
