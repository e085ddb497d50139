"""The contract of a pool, which turns an encoder's memory into one vector for the whole sequence.

A pool built with `encoder.size` works with any encoder; a classifier uses its output.
Read next: mean.py (the simplest), queries.py (learned); ../encoders/encoder.py for the Memory.
"""

from abc import ABC, abstractmethod

from torch import Tensor, nn

from weft.nn.encoders.encoder import Memory


class Pool(nn.Module, ABC):
    """Turns a Memory into [B, size], ignoring padding.

    Args:
        memory_size: D of the memory.

    Attributes:
        size: features of the result; D by default.
    """

    def __init__(self, memory_size: int) -> None:
        super().__init__()
        self.size = memory_size

    @abstractmethod
    def forward(self, memory: Memory) -> Tensor:
        """A memory of B rows, each with at least one real position, to [B, size]."""
