"""How a score depends on the length of a hypothesis: score = logp / norm(length).

A sum of log-probabilities falls with every token, so that a search by the sum prefers short
sentences. `length` counts every generated token, eos included.

    length:  norm(n) = n^alpha                 alpha = 0: the sum itself; alpha = 1: the mean per token
    gnmt:    norm(n) = ((5 + n) / 6)^alpha     Wu et al. 2016, equation 14, without its coverage term

Both are 1 at n = 1 and grow with n, but (5 + n) / 6 grows more slowly: from n = 10 to n = 20 n^alpha
grows by 2^alpha, gnmt's by (25/15)^alpha, so that the same alpha favours long hypotheses less there.
Read next: beam.py, whose early stopping requires a non-decreasing norm.
"""

from typing import Literal

import torch
from torch import Tensor

from weft.errors import ConfigError

Normalisation = Literal["length", "gnmt"]


def norms(longest: int, alpha: float, kind: Normalisation = "length") -> Tensor:
    """norm(n) for n = 0 to `longest`: [longest + 1] float64; norm(0) is set to 1 and not used.

    Powers are Python's own, so a trace replayed without torch is bit-identical.

    Raises:
        ConfigError: alpha below 0 (early stopping would be wrong), or an unknown kind.

    Example:
        >>> norms(3, 1.0).tolist()
        [1.0, 1.0, 2.0, 3.0]
    """
    return torch.tensor([norm(n, alpha, kind) for n in range(longest + 1)], dtype=torch.float64)


def norms_for(limits: Tensor, alpha: float, kind: Normalisation = "length") -> Tensor:
    """`norms` up to the largest of these limits, on their device."""
    return norms(int(limits.max()) if len(limits) else 0, alpha, kind).to(limits.device)


def norm(length: int, alpha: float, kind: Normalisation = "length") -> float:
    """What a log-probability is divided by.

    Args:
        length: of the hypothesis, in tokens.
        alpha: the length penalty, 0 to 10; 0 gives 1.
        kind: length^alpha, or ((5 + length) / 6)^alpha for "gnmt".

    Raises:
        ConfigError: alpha is out of its range.
    """
    if not 0 <= alpha <= 10:
        raise ConfigError(f"length_penalty: expected 0 (none) to 10, got {alpha:g}; 0.6 to 1 is usual")
    if kind == "length":
        return float(max(length, 1) ** alpha)
    if kind == "gnmt":
        return float(((5 + max(length, 1)) / 6) ** alpha)
    raise ConfigError(f"normalisation: expected 'length' or 'gnmt', got {kind!r}")
