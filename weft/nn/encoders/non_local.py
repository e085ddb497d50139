"""An encoder of non-local blocks, for places of an image, frames of a clip or words."""

from torch import Tensor, nn

from weft import masks
from weft.nn.encoders.encoder import Encoder, Memory
from weft.nn.non_local import NonLocal, Pairwise
from weft.nn.ops import Linear
from weft.setting_types import Count, Size


class NonLocalEncoder(Encoder):
    """Stacked blocks Z = X + W_z y(X); the summary is the mean.

    Args:
        in_size: features of the input; projected if they differ from the width.
        size: C, the width.
        num_layers: number of blocks.
        inner, pairwise, scaled: see `NonLocal`.

    Source: Wang et al. 2018.

    Example:
        >>> import torch
        >>> encoder = NonLocalEncoder(5, size=6)
        >>> encoder(torch.zeros(2, 7, 5), torch.ones(2, 7) > 0).states.shape  # [B, S, D]
        torch.Size([2, 7, 6])
    """

    def __init__(
        self,
        in_size: int,
        *,
        size: Size = 256,
        num_layers: Count = 1,
        inner: int | None = None,
        pairwise: Pairwise = "embedded",
        scaled: bool = False,
    ) -> None:
        super().__init__(in_size)
        self.size = size
        self.project = nn.Identity() if in_size == size else Linear(in_size, size)
        self.blocks = nn.ModuleList(
            NonLocal(size, inner=inner, pairwise=pairwise, scaled=scaled) for _ in range(num_layers)
        )

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Memory:
        x, mask = self.check(x, mask)
        x = self.project(x)
        for block in self.blocks:
            x = block(x, mask)
        return Memory(x, mask, masks.mean(x, mask))
