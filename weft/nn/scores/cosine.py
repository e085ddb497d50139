"""The cosine of the angle between query and key."""

import torch.nn.functional as F
from torch import Tensor

from weft.nn.scores.dot import need_equal
from weft.nn.scores.score import Score


class Cosine(Score):
    """score(q, k) = scale · q^T k / (|q| |k|).

    Args:
        scale: factor of the cosine; with 1 (the plain cosine) the softmax is nearly uniform.

    Raises:
        ShapeError: query and key differ in size.

    Source: Graves, Wayne & Danihelka 2014, eq. 6; `scale` is their key strength beta, as a constant.
    """

    def __init__(self, query_size: int, key_size: int, *, scale: float = 1.0) -> None:
        super().__init__(query_size, key_size)
        need_equal("cosine", query_size, key_size)
        self.scale = scale

    def prepare(self, keys: Tensor) -> Tensor:
        """Keys of unit length, [B, S, Q]."""
        return F.normalize(keys, dim=-1)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """[B, T, Q], [B, S, Q] to [B, T, S]."""
        return F.normalize(query, dim=-1) @ keys.transpose(-1, -2) * self.scale
