"""How concentrated attention is: the entropy of its weights."""

from torch import Tensor


def entropy(weights: Tensor) -> Tensor:
    """-Σ_j α_j ln α_j in nats: 0 if one position has all the weight, ln S if all weights are equal.

    Args:
        weights: [.., S] non-negative, summing to 1; a position with weight 0 contributes nothing.

    Returns:
        [..].

    Example:
        >>> import torch
        >>> entropy(torch.tensor([[1.0, 0.0], [0.5, 0.5]])).tolist()
        [0.0, 0.6931471824645996]
    """
    return weights.new_zeros(()) - weights.xlogy(weights).sum(-1)
