"""The mean of all states."""

from torch import Tensor

from weft import masks
from weft.nn.encoders.encoder import Memory
from weft.nn.pools.pool import Pool


class Mean(Pool):
    """(1/S) sum_j h_j over the real positions of each row.

    Example:
        >>> import torch
        >>> states = torch.tensor([[[1.0], [3.0], [50.0]]])
        >>> Mean(1)(Memory(states, torch.tensor([[True, True, False]]), states[:, 0])).tolist()
        [[2.0]]
    """

    def forward(self, memory: Memory) -> Tensor:
        """A memory to [B, D]."""
        return masks.mean(memory.states, memory.mask)
