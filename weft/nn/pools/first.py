"""The state at the first position."""

from torch import Tensor

from weft.nn.encoders.encoder import Memory
from weft.nn.pools.pool import Pool


class First(Pool):
    """h_1 of each row, for front ends that prepend a learned vector.

    Source: Devlin et al. 2019, its [CLS].

    Example:
        >>> import torch
        >>> states = torch.tensor([[[1.0], [3.0], [50.0]]])
        >>> First(1)(Memory(states, torch.tensor([[True, True, False]]), states[:, 0])).tolist()
        [[1.0]]
    """

    def forward(self, memory: Memory) -> Tensor:
        """A memory to [B, D]."""
        return memory.states[:, 0]
