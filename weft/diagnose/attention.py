"""How sharply attention looks: the entropy of its weights."""

from torch import Tensor


def entropy(weights: Tensor) -> Tensor:
    """-Σ_j α_j ln α_j in nats: 0 where one position has all the weight, ln S where all weigh the same.

    Args:
        weights: [.., S] non-negative, summing to 1; a position without weight adds nothing.

    Returns:
        [..].

    Example:
        >>> import torch
        >>> entropy(torch.tensor([[1.0, 0.0], [0.5, 0.5]])).tolist()
        [0.0, 0.6931471824645996]
    """
    return weights.new_zeros(()) - weights.xlogy(weights).sum(-1)
