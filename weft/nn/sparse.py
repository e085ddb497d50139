"""Attention weights that can be exactly zero: sparsemax and 1.5-entmax.

Both project energies onto the simplex: p_j = [(alpha - 1) z_j - tau]_+^(1 / (alpha - 1)), with tau such that
p sums to one; alpha = 1 is softmax, 2 sparsemax, 1.5 is in between. The positions above tau are found by
sorting; the rest is a formula over these positions, differentiated by autograd.
Read next: attention.py, `weights_of`.
"""

import torch
from torch import Tensor


def sparsemax(z: Tensor) -> Tensor:
    """p_j = max(0, z_j - tau), tau = (sum of the k largest - 1) / k, over the last axis.

    k is the largest number with 1 + k z_(k) > z_(1) + .. + z_(k).
    Source: Martins & Astudillo 2016, algorithm 1.

    Example:
        >>> [round(p, 4) for p in sparsemax(torch.tensor([1.0, 0.5, -1.0])).tolist()]
        [0.75, 0.25, 0.0]
    """
    z = (z - z.amax(-1, keepdim=True).detach()).clamp(min=-2)  # values below -1 have weight zero
    with torch.no_grad():
        ordered, rank = _ordered(z)
        enough = 1 + rank * ordered > ordered.cumsum(-1)
        above = _above(z, ordered, enough.sum(-1, keepdim=True))
    tau = ((z * above).sum(-1, keepdim=True) - 1) / above.sum(-1, keepdim=True)
    return (z - tau).clamp(min=0)


def entmax15(z: Tensor) -> Tensor:
    """p_j = max(0, z_j / 2 - tau)^2, over the last axis.

    For the k largest z_j / 2, with mean m and sum of squared deviations s: tau = m - sqrt((1 - s) / k).
    Source: Peters, Niculae & Martins 2019, algorithm 2.

    Example:
        >>> [round(p, 4) for p in entmax15(torch.tensor([1.0, 1.0, -3.0])).tolist()]
        [0.5, 0.5, 0.0]
    """
    z = ((z - z.amax(-1, keepdim=True).detach()) / 2).clamp(min=-2)
    with torch.no_grad():
        ordered, rank = _ordered(z)
        mean = ordered.cumsum(-1) / rank
        spread = (ordered**2).cumsum(-1) - rank * mean**2
        tau = mean - ((1 - spread) / rank).clamp(min=0).sqrt()
        above = _above(z, ordered, (tau <= ordered).sum(-1, keepdim=True))
    count = above.sum(-1, keepdim=True)
    mean = (z * above).sum(-1, keepdim=True) / count
    spread = (((z - mean) ** 2) * above).sum(-1, keepdim=True)
    tau = mean - ((1 - spread) / count).clamp(min=torch.finfo(z.dtype).tiny).sqrt()
    return (z - tau).clamp(min=0) ** 2


def _ordered(z: Tensor) -> tuple[Tensor, Tensor]:
    return z.sort(-1, descending=True).values, torch.arange(1, z.shape[-1] + 1, device=z.device)


def _above(z: Tensor, ordered: Tensor, count: Tensor) -> Tensor:
    """1 for values among the `count` largest, otherwise 0."""
    return (z >= ordered.gather(-1, count - 1)).to(z.dtype)
