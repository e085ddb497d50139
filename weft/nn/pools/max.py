"""The maximum of each feature."""

import torch
from torch import Tensor

from weft.nn.encoders.encoder import Memory
from weft.nn.pools.pool import Pool


class Max(Pool):
    """max_j h_jd for each feature d, over the real positions of each row.

    Source: Collobert et al. 2011, section 3.2.2 (max over time).

    Example:
        >>> import torch
        >>> states = torch.tensor([[[1.0, 4.0], [3.0, 2.0], [50.0, 50.0]]])
        >>> Max(2)(Memory(states, torch.tensor([[True, True, False]]), states[:, 0])).tolist()
        [[3.0, 4.0]]
    """

    def forward(self, memory: Memory) -> Tensor:
        """A memory to [B, D]."""
        lowest = torch.finfo(memory.states.dtype).min
        return memory.states.masked_fill(~memory.mask[..., None], lowest).amax(1)
