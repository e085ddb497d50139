"""Regions with precomputed features from another network, read from .npy files."""

from torch import Tensor

from weft.nn.ops import Linear
from weft.nn.pictures.front import Front
from weft.setting_types import Size


class RegionFront(Front):
    """W x + b for each region; in a grid of features each place is a region.

    Args:
        shape: [S, features], or [height, width, features].
        size: D.

    Example:
        >>> import torch
        >>> RegionFront((7, 11), size=5)(torch.zeros(2, 7, 11)).shape
        torch.Size([2, 7, 5])
    """

    def __init__(self, shape: tuple[int, ...], *, size: Size = 128) -> None:
        super().__init__()
        self.size = size
        self.grid = shape[:-1] or (1,)
        self.project = Linear(shape[-1], size)

    def forward(self, picture: Tensor) -> Tensor:
        return self.project(picture.reshape(picture.shape[0], self.places, -1))  # type: ignore[no-any-return]
