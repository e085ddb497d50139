"""A constant score, so all positions have the same weight."""

from torch import Tensor

from weft.nn.scores.score import Score


class Uniform(Score):
    """score(q, k) = 0, so attention is the mean of all states: c = (1/S) sum_j h_j."""

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """[B, T, Q], [B, S, D] to zeros [B, T, S]."""
        return query.new_zeros(query.shape[0], query.shape[1], keys.shape[1])
