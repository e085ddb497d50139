"""Attention pooling with learned queries."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from weft.errors import ConfigError
from weft.nn.attention import Attention, Weights
from weft.nn.encoders.encoder import Memory
from weft.nn.pools.pool import Pool
from weft.nn.scores.scaled import ScaledDot
from weft.nn.scores.score import Score


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
        num_queries: int = 1,
        score: Callable[[int, int], Score] = ScaledDot,
        query_size: int | None = None,
        key_size: int | None = None,
        value_size: int | None = None,
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
