"""Largest singular value and spectral radius of recurrent weights, per gate."""

import torch
from torch import Tensor

from weft.nn.cells.cell import Cell


def recurrent_matrices(cell: Cell) -> Tensor | None:
    """W_hh of each gate, [G, H, H], from the cell's `weight_h` [G H, H]; None if it has no such matrix.

    The gates are in the cell's own order.
    """
    weight = getattr(cell, "weight_h", None)
    if not isinstance(weight, Tensor) or weight.dim() != 2 or weight.shape[0] % weight.shape[1]:
        return None
    return weight.detach().unflatten(0, (-1, weight.shape[1]))


def sigma_max(weights: Tensor) -> Tensor:
    """λ₁, the largest singular value of [.., M, N] matrices: the most that a step can stretch a vector.

    It is the square root of the largest eigenvalue of W Wᵀ, several times faster than computing all singular
    values. Small singular values would lose half of their digits this way, but the largest loses none. The
    matrices are scaled first so that squares neither underflow nor overflow. A non-finite entry gives
    infinity.
    """
    largest = weights.abs().amax((-2, -1), keepdim=True)
    scale = torch.where((largest > 0) & largest.isfinite(), largest, 1.0)
    unit = torch.nan_to_num(weights / scale)  # [.., M, N]
    square = unit @ unit.mT if unit.shape[-2] <= unit.shape[-1] else unit.mT @ unit
    found = torch.linalg.eigvalsh(square)[..., -1].clamp_min(0).sqrt() * scale[..., 0, 0]
    return torch.where(largest[..., 0, 0].isfinite(), found, torch.inf)


def spectral_radius(weights: Tensor) -> Tensor:
    """The largest modulus of an eigenvalue of [.., H, H] matrices: the asymptotic growth per step."""
    return torch.linalg.eigvals(weights).abs().amax(-1)
