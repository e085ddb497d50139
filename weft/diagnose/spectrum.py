"""Of the recurrent weights: the largest singular value and the spectral radius, gate by gate."""

import torch
from torch import Tensor

from weft.nn.cells.cell import Cell


def recurrent_matrices(cell: Cell) -> Tensor | None:
    """W_hh of each gate, [G, H, H]; None where the recurrence has no such matrix.

    A cell's `weight_h` [G H, H] is looked at, the gates in the cell's own order.
    """
    weight = getattr(cell, "weight_h", None)
    if not isinstance(weight, Tensor) or weight.dim() != 2 or weight.shape[0] % weight.shape[1]:
        return None
    return weight.detach().unflatten(0, (-1, weight.shape[1]))


def sigma_max(weights: Tensor) -> Tensor:
    """λ₁, the largest singular value of [.., H, H] matrices: what a step can stretch a vector by at most.

    Example:
        >>> sigma_max(torch.tensor([[0.0, 3.0], [0.0, 0.0]])).item()
        3.0
    """
    return torch.linalg.matrix_norm(weights, ord=2)


def spectral_radius(weights: Tensor) -> Tensor:
    """The largest modulus of an eigenvalue of [.., H, H] matrices: what many steps stretch by, each.

    Example:
        >>> spectral_radius(torch.tensor([[0.0, 3.0], [0.0, 0.0]])).item()
        0.0
    """
    return torch.linalg.eigvals(weights).abs().amax(-1)
