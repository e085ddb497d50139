"""A bilinear form of query and key."""

from torch import Tensor

from weft.nn.kernels.linear import Linear
from weft.nn.kernels.writing.recurrent import Comparison
from weft.nn.scores.score import Score


class Bilinear(Score):
    """score(q, k) = q^T W k; query and key may differ in size.

    Source: Luong, Pham & Manning 2015, eq. 8 ("general").
    """

    def __init__(self, query_size: int, key_size: int) -> None:
        super().__init__(query_size, key_size)
        self.weight = Linear(key_size, query_size, bias=False)

    def prepare(self, keys: Tensor) -> Tensor:
        """W k, [B, S, Q]."""
        return self.weight(keys)

    def comparison(self) -> Comparison:
        return Comparison()

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """[B, T, Q], [B, S, Q] to [B, T, S]."""
        return query @ keys.transpose(-1, -2)
