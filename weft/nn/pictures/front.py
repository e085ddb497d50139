"""The contract of a picture's front end: pixels become a row of places, as words become a row of vectors.

Any encoder, pool and decoder then reads them. Read next: convolution.py, patches.py, regions.py.
"""

import math
from abc import ABC, abstractmethod

from torch import Tensor, nn


class Front(nn.Module, ABC):
    """[B, *shape] to [B, S, D].

    Args:
        shape: of one picture [height, width, channels], clip [time, height, width, channels] or row of
            regions [S, features].

    Attributes:
        size: D.
        grid: how the places lie, such as (height, width); S is their number.
    """

    size: int
    grid: tuple[int, ...]

    @property
    def places(self) -> int:
        """S."""
        return math.prod(self.grid)

    @abstractmethod
    def forward(self, picture: Tensor) -> Tensor:
        """[B, *shape], pixels from -1 to 1, to [B, S, D], places in the order of reading."""
