"""The scaled dot product."""

import math

from torch import Tensor

from weft.nn.kernels.writing.recurrent import Comparison
from weft.nn.scores.dot import need_equal
from weft.nn.scores.score import Score


class ScaledDot(Score):
    """score(q, k) = q^T k / sqrt(d_k): variance 1 for independent features of variance 1.

    Raises:
        ShapeError: query and key differ in size.

    Source: Vaswani et al. 2017, eq. 1.
    """

    def __init__(self, query_size: int, key_size: int) -> None:
        super().__init__(query_size, key_size)
        need_equal("scaled", query_size, key_size)

    def comparison(self) -> Comparison:
        return Comparison(1 / math.sqrt(self.key_size))

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """[B, T, Q], [B, S, Q] to [B, T, S]."""
        return query @ keys.transpose(-1, -2) / math.sqrt(self.key_size)
