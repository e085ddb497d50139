"""Narrow a distribution before a token is drawn: pure functions of [N, V], in nats.

Each takes logits or log-probabilities and returns a new tensor with -inf where a token is excluded; none
renormalises. `narrow` applies all of them, in the order of offered.Narrowing: the one way for sampling, for
recorded programs and for the server.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from weft.errors import ConfigError
from weft.search.candidates import best_candidates
from weft.search.offered import Narrowing


def narrow(logits: Tensor, how: Narrowing, banned: Sequence[int] = (), *, waits: bool = True) -> Tensor:
    """Leave out what may not be drawn.

    Args:
        logits: [N, V].
        how: which tokens stay.
        banned: tokens that are never drawn.
        waits: as in `best_candidates`.

    Example:
        >>> import torch
        >>> narrow(torch.tensor([[1.0, 3.0, 2.0]]), Narrowing(temperature=0.5, top_k=2)).tolist()  # [N, V]
        [[-inf, 6.0, 4.0]]
    """
    kept = temperature(ban(logits, banned), how.temperature)
    kept = top_k(kept, how.top_k, waits=waits) if how.top_k else kept
    return typical_p(min_p(top_p(kept, how.top_p), how.min_p), how.typical_p)


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
    return _until(
        p, logits, logits.double().softmax(1), logits.sort(dim=1, descending=True, stable=True).indices
    )


def min_p(logits: Tensor, p: float) -> Tensor:
    """Keep the tokens whose probability is at least p times that of the most probable one.

    Raises:
        ConfigError: p is below 0, or above 1.

    Source: Nguyen et al. 2024, "Turning Up the Heat: Min-p Sampling", section 3.

    Example:
        >>> import torch
        >>> min_p(torch.tensor([[0.6, 0.3, 0.1]]).log(), 0.4).isfinite().tolist()  # [N, V]: which are kept
        [[True, True, False]]
    """
    if not 0 <= p <= 1:
        raise ConfigError(f"min_p: expected a number from 0 to 1, got {p}")
    if p == 0:
        return logits
    return logits.masked_fill(logits < logits.amax(1, keepdim=True) + math.log(p), -float("inf"))


def typical_p(logits: Tensor, p: float) -> Tensor:
    """Keep the tokens whose surprise is closest to the entropy, until their probabilities sum to p or more.

    Raises:
        ConfigError: p is not above 0, or above 1.

    Source: Meister et al. 2023, "Locally Typical Sampling", section 4. Ties go to the lower ids.

    Example:
        >>> import torch
        >>> typical_p(torch.tensor([[0.7, 0.2, 0.1]]).log(), 0.2).isfinite().tolist()  # [N, V]
        [[True, False, False]]
    """
    if not 0 < p <= 1:
        raise ConfigError(f"typical_p: expected a number above 0 and at most 1, got {p}")
    if p == 1:
        return logits
    surprise = -logits.double().log_softmax(1)
    prob = (-surprise).exp()
    entropy = (prob * surprise).nansum(1, keepdim=True)  # an excluded token has 0 * inf
    return _until(p, logits, prob, (surprise - entropy).abs().sort(dim=1, stable=True).indices)


def _until(p: float, logits: Tensor, prob: Tensor, order: Tensor) -> Tensor:
    """Keep tokens in this order [N, V] until their probabilities sum to p or more."""
    ordered = prob.gather(1, order)
    before = ordered.cumsum(1) - ordered  # the total of the tokens before
    kept = logits.gather(1, order).masked_fill(before >= p, -float("inf"))
    return torch.full_like(logits, -float("inf")).scatter(1, order, kept)


def invert(prob: Tensor, uniform: Tensor) -> Tensor:
    """The token [N] whose part of the cumulative distribution prob [N, V] contains the uniform number [N, 1].

    One random number per row instead of the V that torch.multinomial draws; a token of probability zero is
    never returned.
    """
    cumulative = prob.cumsum(1)
    total = cumulative[:, -1:]
    # Strictly below the total even when the product rounds up, or the place would be V.
    place = torch.minimum(uniform * total, torch.nextafter(total, torch.zeros_like(total)))
    return torch.searchsorted(cumulative, place, right=True)[:, 0]
