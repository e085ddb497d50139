"""The contract of a pool: what an encoder remembers becomes one vector for the whole sequence.

A pool made from `encoder.size` serves any encoder; a classifier reads what it gives.
Read next: mean.py (the simplest), queries.py (learned); ../encoders/encoder.py for the Memory.
"""

from abc import ABC, abstractmethod

from torch import Tensor, nn

from weft.nn.encoders.encoder import Memory


class Pool(nn.Module, ABC):
    """Makes [B, size] of a Memory; padding has no part in it.

    Args:
        memory_size: D of the memory.

    Attributes:
        size: features of the result; D unless a pool says otherwise.
    """

    def __init__(self, memory_size: int) -> None:
        super().__init__()
        self.size = memory_size

    @abstractmethod
    def forward(self, memory: Memory) -> Tensor:
        """A memory of B rows, each with at least one real position, to [B, size]."""
