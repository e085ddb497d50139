"""The dot product."""

from torch import Tensor

from weft.errors import ShapeError
from weft.nn.kernels.writing.recurrent import Comparison
from weft.nn.scores.score import Score


class Dot(Score):
    """score(q, k) = q^T k. Its variance grows with the size; see scaled.py.

    Raises:
        ShapeError: query and key differ in size.

    Source: Luong, Pham & Manning 2015, eq. 8.
    """

    def __init__(self, query_size: int, key_size: int) -> None:
        super().__init__(query_size, key_size)
        need_equal("dot", query_size, key_size)

    def comparison(self) -> Comparison:
        return Comparison()

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """[B, T, Q], [B, S, Q] to [B, T, S]."""
        return query @ keys.transpose(-1, -2)


def need_equal(name: str, query_size: int, key_size: int) -> None:
    """Check that query and key have the same size.

    Raises:
        ShapeError: names both sizes and what to do.
    """
    if query_size != key_size:
        raise ShapeError(
            f"score {name}: the query has {query_size} features, the key {key_size}; make them equal, "
            f"set key_size: {query_size}, or use bilinear or additive"
        )
