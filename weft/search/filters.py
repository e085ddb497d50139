"""Narrow a distribution before a token is drawn: pure functions of [N, V], in nats.

Each takes logits or log-probabilities and returns a new tensor with -inf where a token is excluded; none
renormalises. They compose in the order of sampling.py: ban, temperature, top_k, top_p.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from weft.errors import ConfigError
from weft.search.candidates import best_candidates


def ban(logits: Tensor, tokens: Sequence[int]) -> Tensor:
    """Leave out the given tokens.

    Example:
        >>> import torch
        >>> ban(torch.tensor([[1.0, 2.0, 3.0]]), [0]).tolist()  # [N, V]
        [[-inf, 2.0, 3.0]]
    """
    if not tokens:
        return logits
    return logits.index_fill(1, torch.tensor(tokens, device=logits.device), -float("inf"))


def temperature(logits: Tensor, degree: float) -> Tensor:
    """Divide by `degree`: below 1 sharper, above 1 flatter.

    Raises:
        ConfigError: the degree is not above 0, or infinite.

    Example:
        >>> import torch
        >>> temperature(torch.tensor([[1.0, 2.0]]), 0.5).tolist()  # [N, V]
        [[2.0, 4.0]]
    """
    if not 0 < degree < float("inf"):
        raise ConfigError(
            f"temperature: expected a number above 0, got {degree}; for temperature 0 use greedy search"
        )
    return logits if degree == 1 else logits / degree


def top_k(logits: Tensor, k: int, *, waits: bool = True) -> Tensor:
    """Keep the k most probable tokens; ties go to the lower ids; `waits` as in `best_candidates`.

    Raises:
        ConfigError: k is below 1.

    Example:
        >>> import torch
        >>> top_k(torch.tensor([[1.0, 3.0, 2.0]]), 2).tolist()  # [N, V]
        [[-inf, 3.0, 2.0]]
    """
    if k < 1:
        raise ConfigError(f"top_k: expected at least 1, got {k}")
    if k >= logits.shape[1]:
        return logits
    base = torch.zeros(len(logits), 1, dtype=torch.float64, device=logits.device)
    keep = best_candidates(logits, base, k, waits=waits).token
    return torch.full_like(logits, -float("inf")).scatter(1, keep, logits.gather(1, keep))


def top_p(logits: Tensor, p: float) -> Tensor:
    """Keep the smallest set of most probable tokens whose probabilities sum to p or more.

    Raises:
        ConfigError: p is not above 0, or above 1.

    Source: Holtzman et al. 2020, section 3.1 (nucleus sampling). Ties go to the lower ids.

    Example:
        >>> import torch
        >>> top_p(torch.tensor([[0.5, 0.3, 0.2]]).log(), 0.7).isfinite().tolist()  # [N, V]: which are kept
        [[True, True, False]]
    """
    if not 0 < p <= 1:
        raise ConfigError(f"top_p: expected a number above 0 and at most 1, got {p}")
    if p == 1:
        return logits
    ordered, index = logits.sort(dim=1, descending=True, stable=True)
    prob = ordered.double().softmax(1)
    before = prob.cumsum(1) - prob  # the total of the more probable tokens
    return torch.full_like(logits, -float("inf")).scatter(
        1, index, ordered.masked_fill(before >= p, -float("inf"))
    )


def invert(prob: Tensor, uniform: Tensor) -> Tensor:
    """The token whose part of the cumulative distribution contains the uniform number.

    One random number per row instead of the V that torch.multinomial draws.

    Args:
        prob: [N, V]; a token of probability zero is never returned.
        uniform: [N, 1], in [0, 1).

    Returns:
        [N] int64.
    """
    cumulative = prob.cumsum(1)
    total = cumulative[:, -1:]
    # Strictly below the total even when the product rounds up, or the place would be V.
    place = torch.minimum(uniform * total, torch.nextafter(total, torch.zeros_like(total)))
    return torch.searchsorted(cumulative, place, right=True)[:, 0]
