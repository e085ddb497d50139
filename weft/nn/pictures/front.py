"""The contract of an image front end, which turns pixels into a sequence of vectors, one per place.

Any encoder, pool and decoder can then be used. Read next: convolution.py, patches.py, regions.py.
"""

import math
from abc import ABC, abstractmethod

from torch import Tensor, nn


class Front(nn.Module, ABC):
    """[B, *shape] to [B, S, D].

    Args:
            shape: of one image [height, width, channels], clip [time, height, width, channels] or sequence of
                regions [S, features].

    Attributes:
        size: D.
        grid: arrangement of the places, such as (height, width); S is their number.

    Example:
        >>> import torch
        >>> from weft.nn import PatchFront
        >>> front: Front = PatchFront((8, 12, 3), size=5, patch=4)
        >>> front.grid, front(torch.zeros(2, 8, 12, 3)).shape  # [B, S, D]
        ((2, 3), torch.Size([2, 6, 5]))
    """

    size: int
    grid: tuple[int, ...]

    @property
    def places(self) -> int:
        """S, the number of places that a picture is read as."""
        return math.prod(self.grid)

    @abstractmethod
    def forward(self, picture: Tensor) -> Tensor:
        """[B, *shape], pixels from -1 to 1, to [B, S, D], places in reading order."""
