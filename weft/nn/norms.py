"""Norms over the features of each position: LayerNorm and RMSNorm."""

from typing import Literal

import torch.nn.functional as F
from torch import Tensor, nn

from weft.nn.border import check_tensor, explained
from weft.shapes import check_choice

NormKind = Literal["layer", "rms"]


class RMSNorm(nn.RMSNorm):
    """torch.nn.RMSNorm with half-precision inputs under autocast, using torch's fused operation.

    Example:
        >>> import torch
        >>> x = torch.tensor([3.0, 4.0])  # divided by sqrt((9 + 16) / 2)
        >>> [round(x, 3) for x in RMSNorm(2)(x).tolist()]
        [0.849, 1.131]
    """

    def check_inputs(self, x: Tensor) -> None:
        """Check the input of `forward`."""
        check_tensor("RMSNorm", "x", x, ("..", *self.normalized_shape), self.weight)

    @explained("check_inputs")
    def forward(self, x: Tensor) -> Tensor:
        """[.., D] to [.., D]."""
        return F.rms_norm(x, self.normalized_shape, self.weight.to(x.dtype), self.eps)


def norm_of(size: int, kind: NormKind = "layer", *, epsilon: float = 1e-5, bias: bool = True) -> nn.Module:
    """LayerNorm, or RMSNorm, which has no mean and no bias: x / sqrt(mean(x^2) + epsilon) * gain.

    Source: Ba, Kiros & Hinton 2016; Zhang & Sennrich 2019, eq. 4.
    """
    check_choice("norm_kind", kind, NormKind)
    if kind == "rms":
        return RMSNorm(size, eps=epsilon)
    return nn.LayerNorm(size, eps=epsilon, bias=bias)
