"""Embed an image as a sequence of patches in reading order (ViT)."""

import torch
from torch import Tensor, nn

from weft.errors import ShapeError
from weft.nn.ops import Linear


class Patches(nn.Module):
    """W p + b for each patch p of P x P pixels, row by row from the top left.

    Args:
        channels: features of a pixel.
        size: D.
        patch: P.
        first: prepend a learned vector for classification (BERT's CLS).

    Raises:
        ShapeError: in forward, if the patch size does not divide the image size.

    Source: Dosovitskiy et al. 2021, eq. 1; positions are the encoder's.

    Example:
        >>> Patches(3, 16, patch=4)(torch.zeros(2, 8, 12, 3)).shape
        torch.Size([2, 6, 16])
    """

    def __init__(self, channels: int, size: int, *, patch: int = 4, first: bool = False) -> None:
        super().__init__()
        self.patch = patch
        self.project = Linear(patch * patch * channels, size)
        self.first = nn.Parameter(0.02 * torch.randn(size)) if first else None

    def forward(self, picture: Tensor) -> Tensor:
        """[B, height, width, channels] to [B, S, D], S = height width / P^2, plus one with `first`.

        Raises:
            ShapeError: a side of the picture is not a multiple of P.
        """
        height, width = picture.shape[1:3]
        if height % self.patch or width % self.patch:
            raise ShapeError(
                f"expected a picture whose sides are multiples of {self.patch}, "
                f"got {height} x {width} pixels; crop or scale it"
            )
        tiles = picture.unflatten(2, (-1, self.patch)).unflatten(1, (-1, self.patch))
        x = self.project(tiles.transpose(2, 3).flatten(3).flatten(1, 2))  # [B, S, D]
        if self.first is None:
            return x
        return torch.cat([self.first.to(x.dtype).expand(x.shape[0], 1, -1), x], 1)
