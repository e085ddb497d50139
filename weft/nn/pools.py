"""Pools, which turn an encoder's memory into one vector for the whole sequence.

A pool built with `encoder.size` works with any encoder; a classifier uses its output.
Read next: encoders/encoder.py for the Memory.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from weft import masks
from weft.errors import ConfigError
from weft.nn.attention import Attention, Weights
from weft.nn.border import Explained, weight_of
from weft.nn.encoders.encoder import Memory, check_memory
from weft.nn.ops import Linear
from weft.nn.scores import ScaledScore, Score
from weft.setting_types import Count, Size
from weft.shapes import check_choice


class Pool(Explained, nn.Module, ABC):
    """Turns a Memory into [B, size], ignoring padding.

    Args:
        memory_size: D of the memory.

    Attributes:
        size: features of the result; D by default.

    Example:
        >>> class Middle(Pool):
        ...     def forward(self, memory):  # [B, S, D] to [B, D]
        ...         return memory.states[:, memory.states.shape[1] // 2]
        >>> states = torch.tensor([[[1.0], [2.0], [3.0]]])
        >>> Middle(1)(Memory(states, torch.ones(1, 3) > 0, states[:, 0])).tolist()
        [[2.0]]
    """

    checks: ClassVar[Mapping[str, str]] = {"forward": "check_inputs"}
    returns: ClassVar[Mapping[str, str | type]] = {"forward": "tensor"}

    def __init__(self, memory_size: int) -> None:
        super().__init__()
        self.size = memory_size
        self.memory_size = memory_size

    @abstractmethod
    def forward(self, memory: Memory) -> Tensor:
        """A memory of B rows, each with at least one real position, to [B, size]."""

    def check_inputs(self, memory: Memory) -> None:
        """Check the input of `forward`."""
        check_memory(type(self).__name__, memory, self.memory_size, weight_of(self))


class Mean(Pool):
    """(1/S) sum_j h_j over the real positions of each row.

    Example:
        >>> import torch
        >>> states = torch.tensor([[[1.0], [3.0], [50.0]]])
        >>> Mean(1)(Memory(states, torch.tensor([[True, True, False]]), states[:, 0])).tolist()
        [[2.0]]
    """

    def forward(self, memory: Memory) -> Tensor:
        return masks.mean(memory.states, memory.mask)


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
        lowest = torch.finfo(memory.states.dtype).min
        return memory.states.masked_fill(~memory.mask[..., None], lowest).amax(1)


class Last(Pool):
    """h_S of each row. With two directions, the backward one has read only one word; prefer `summary`.

    Example:
        >>> import torch
        >>> states = torch.tensor([[[1.0], [3.0], [50.0]]])
        >>> Last(1)(Memory(states, torch.tensor([[True, True, False]]), states[:, 0])).tolist()
        [[3.0]]
    """

    def forward(self, memory: Memory) -> Tensor:
        return masks.last(memory.states, memory.mask)


Layer = Literal["none", "tanh", "relu"]


class First(Pool):
    """h_1 of each row, for front ends that prepend a learned vector, or for texts that begin with a symbol.

    Args:
        size: D.
        layer: g(W h_1 + b) with this g instead of h_1, as in BERT's classifiers.

    Raises:
        ConfigError: an unknown `layer`.

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
        h: Tensor = self.map(memory.states[:, 0])
        if self.layer == "none":
            return h
        return h.tanh() if self.layer == "tanh" else h.relu()


class Summary(Pool):
    """memory.summary: the final state of a recurrent encoder (in both directions), or the mean for others.

    Example:
        >>> import torch
        >>> Summary(1)(Memory(torch.zeros(1, 2, 1), torch.ones(1, 2) > 0, torch.tensor([[7.0]]))).tolist()
        [[7.0]]
    """

    def forward(self, memory: Memory) -> Tensor:
        return memory.summary


class Queries(Pool):
    """out_i = sum_j alpha_ij v_j, alpha_i = softmax_j(score(q_i, k_j)), for m learned queries q_i.

    The m results are concatenated, so `size` is m times the width of a value.

    Args:
        num_queries: m.
        score: compares a query with a state.
        key_size, value_size, shared, weights: as in `Attention`.
        query_size: features of a query; by default those of a key.

    Raises:
        ConfigError: num_queries is below 1.

    Source: Lin et al. 2017 (m = r hops); Yang et al. 2016, eq. 5-7 (m = 1, its u_w).

    Example:
        >>> import torch
        >>> memory = Memory(torch.zeros(2, 7, 5), torch.ones(2, 7) > 0, torch.zeros(2, 5))
        >>> Queries(5, num_queries=3)(memory).shape
        torch.Size([2, 15])
    """

    def __init__(
        self,
        memory_size: int,
        *,
        num_queries: Count = 1,
        score: Callable[[int, int], Score] = ScaledScore,
        query_size: Size | None = None,
        key_size: Size | None = None,
        value_size: Size | None = None,
        shared: bool = False,
        weights: Weights = "softmax",
    ) -> None:
        super().__init__(memory_size)
        if num_queries < 1:
            raise ConfigError(f"num_queries: expected at least 1, got {num_queries}")
        keys = key_size or memory_size
        query_size = query_size or keys
        self.attention = Attention(
            score(query_size, keys),
            memory_size,
            key_size=key_size,
            value_size=value_size,
            shared=shared,
            weights=weights,
        )
        self.queries = nn.Parameter(torch.randn(num_queries, query_size))
        self.size = num_queries * self.attention.size

    def forward(self, memory: Memory) -> Tensor:
        """A memory to [B, m D]; the weights [B, m, S] are recorded as `attention`."""
        queries = self.queries.expand(memory.states.shape[0], -1, -1)
        return self.attention(queries, self.attention.prepare(memory)).flatten(1)
