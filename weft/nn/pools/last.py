"""The state at the last real position."""

from torch import Tensor

from weft import masks
from weft.nn.encoders.encoder import Memory
from weft.nn.pools.pool import Pool


class Last(Pool):
    """h_S of each row. With two directions, the backward one has read only one word; prefer `summary`.

    Example:
        >>> import torch
        >>> states = torch.tensor([[[1.0], [3.0], [50.0]]])
        >>> Last(1)(Memory(states, torch.tensor([[True, True, False]]), states[:, 0])).tolist()
        [[3.0]]
    """

    def forward(self, memory: Memory) -> Tensor:
        """A memory to [B, D]."""
        return masks.last(memory.states, memory.mask)
