"""The contract of an attention score, which measures how well a query matches a key.

Read next: dot.py and the other scores; ../attention.py, which turns scores into a weighted sum.
"""

from abc import ABC, abstractmethod

from torch import Tensor, nn

from weft.nn.kernels.writing.recurrent import Comparison


class Score(nn.Module, ABC):
    """Compares queries with keys.

    Args:
        query_size: Q, features of a query.
        key_size: D, features of a key.
    """

    def __init__(self, query_size: int, key_size: int) -> None:
        super().__init__()
        self.query_size = query_size
        self.key_size = key_size

    def prepare(self, keys: Tensor) -> Tensor:
        """The part computed once per source: [B, S, D] to [B, S, A]. By default the keys themselves."""
        return keys

    def comparison(self) -> Comparison | None:
        """The formula with a prepared key, for compiled code in a search; None if it has another form."""
        return None

    @abstractmethod
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Energies [B, T, S] of queries [B, T, Q] and prepared keys [B, S, A]; higher is a better match."""
