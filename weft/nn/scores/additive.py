"""Additive attention, a small network of query and key."""

from torch import Tensor

from weft.nn.kernels.attention.energies import additive
from weft.nn.kernels.linear import Linear
from weft.nn.kernels.writing.recurrent import Comparison
from weft.nn.scores.score import Score


class Additive(Score):
    """score(q, k) = w^T tanh(W [q; k]); query and key may differ in size.

    Args:
        inner: A, hidden features; the query's size by default.

        W [q; k] is computed as W_q q + W_k k, the latter once per source.
    Source: Bahdanau, Cho & Bengio 2014, appendix A.1.2 (v_a^T tanh(W_a s + U_a h)).
    """

    def __init__(self, query_size: int, key_size: int, *, inner: int | None = None) -> None:
        super().__init__(query_size, key_size)
        inner = inner or query_size
        self.query = Linear(query_size, inner)
        self.key = Linear(key_size, inner, bias=False)
        self.weight = Linear(inner, 1, bias=False)

    def prepare(self, keys: Tensor) -> Tensor:
        """W_k k, [B, S, A]."""
        return self.key(keys)

    def comparison(self) -> Comparison:
        return Comparison(query=self.query, weight=self.weight.weight)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """[B, T, Q], [B, S, A] to [B, T, S]."""
        return additive(self.query(query), keys, self.weight.weight)
