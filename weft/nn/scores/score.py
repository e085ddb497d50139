"""The contract of an attention score: how well a query fits a key.

Read next: dot.py and its neighbours; ../attention.py, which turns scores into a weighted sum.
"""

from abc import ABC, abstractmethod

from torch import Tensor, nn


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
        """What can be done once a source: [B, S, D] to [B, S, A]. The keys themselves by default."""
        return keys

    @abstractmethod
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Energies [B, T, S] of queries [B, T, Q] against prepared keys [B, S, A]; higher fits better."""
