"""The encoder's summary of the sequence."""

from torch import Tensor

from weft.nn.encoders.encoder import Memory
from weft.nn.pools.pool import Pool


class Summary(Pool):
    """memory.summary: the final state of a recurrent encoder (in both directions), or the mean for others.

    Example:
        >>> import torch
        >>> Summary(1)(Memory(torch.zeros(1, 2, 1), torch.ones(1, 2) > 0, torch.tensor([[7.0]]))).tolist()
        [[7.0]]
    """

    def forward(self, memory: Memory) -> Tensor:
        """A memory to [B, D]."""
        return memory.summary
