"""The state at the first position."""

from typing import Literal

from torch import Tensor, nn

from weft.nn.encoders.encoder import Memory
from weft.nn.kernels.linear import Linear
from weft.nn.pools.pool import Pool
from weft.shapes import check_choice

Layer = Literal["none", "tanh", "relu"]


class First(Pool):
    """h_1 of each row, for front ends that prepend a learned vector, or for texts that begin with a symbol.

    Args:
        size: D.
        layer: g(W h_1 + b) with this g instead of h_1, as in BERT's classifiers.

    Source: Devlin et al. 2019, its [CLS].

    Example:
        >>> import torch
        >>> states = torch.tensor([[[1.0], [3.0], [50.0]]])
        >>> First(1)(Memory(states, torch.tensor([[True, True, False]]), states[:, 0])).tolist()
        [[1.0]]
    """

    def __init__(self, size: int, *, layer: Layer = "none") -> None:
        super().__init__(size)
        check_choice("layer", layer, Layer)
        self.layer = layer
        self.map: nn.Module = nn.Identity() if layer == "none" else Linear(size, size)

    def forward(self, memory: Memory) -> Tensor:
        """A memory to [B, D]."""
        h: Tensor = self.map(memory.states[:, 0])
        if self.layer == "none":
            return h
        return h.tanh() if self.layer == "tanh" else h.relu()
