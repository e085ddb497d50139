"""Exact Jacobians of a cell's step, and products of them over time, for any cell that has a `step`.

A state is flattened to one row of N real numbers, its tensors concatenated depth first (an LSTM's h and c:
N = 2H); a complex number counts as two. Batch rows are independent, so repeating a row K times and pulling
a different vector back through each copy gives K rows of the Jacobian at once. Also the largest singular
value and the spectral radius of recurrent weights. Read next: reach.py.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from weft.diagnose.recorded import StepTrace
from weft.nn.cells.cell import Cell
from weft.tree import State, leaves, tree_map

ROWS = 4096  # maximum batch rows at a time, to limit memory
MOST, SAMPLE = 2048, 128  # numbers of a state that are all followed; how many of a larger one


def flat(state: State) -> Tensor:
    """The real numbers of a state, [B, N]; integer tensors are left out."""
    return torch.cat([_real(leaf).flatten(1) for leaf in leaves(state) if _counts(leaf)], 1)


def unflattened(numbers: Tensor, like: State) -> State:
    """The inverse of `flat`: numbers [B, N] in the form of a state."""
    place = 0

    def take(leaf: Tensor) -> Tensor:
        nonlocal place
        if not _counts(leaf):
            return leaf
        form = _real(leaf).shape[1:]
        part = numbers[:, place : place + form.numel()].unflatten(1, form)
        place += form.numel()
        part = part.contiguous()  # as a step usually receives them
        return torch.view_as_complex(part) if leaf.is_complex() else part

    return tree_map(take, like)


def blocks(state: State) -> list[slice]:
    """The slice of each tensor of a state in its N numbers."""
    found, place = [], 0
    for leaf in leaves(state):
        if _counts(leaf):
            size = _real(leaf)[0].numel()
            found.append(slice(place, place + size))
            place += size
    return found


def shown_block(cell: Cell, state: State) -> Tensor:
    """The places of h, the output part of a state, among its N numbers, int64.

    It is the whole state if h is computed from the state, and the carried part if no step reads h (in SRU,
    c); if that part is computed from matrices, these. Of more than MOST numbers it is a sample, so that norms
    are lower bounds.
    """
    shown, carried = cell.shown(state), list(leaves(cell.carried(state)))
    parts, stored = [shown], list(leaves(state))
    if carried and not any(leaf is carried[0] for leaf in stored):
        parts = [leaf for leaf in stored if leaf.dim() > 2]
    elif not any(leaf is shown for leaf in carried) and any(leaf is carried[0] for leaf in leaves(state)):
        parts = carried if any(leaf is shown for leaf in leaves(state)) or len(carried) == 1 else parts
    places = torch.arange(flat(state).shape[1], device=shown.device)
    found = [
        places[block]
        for leaf, block in zip(filter(_counts, leaves(state)), blocks(state), strict=True)
        if any(leaf is part for part in parts)
    ]
    places = torch.cat(found) if found else places
    if len(places) > MOST:
        places = places[torch.linspace(0, len(places) - 1, SAMPLE, device=places.device).long()]
    return places


def pull_back(cell: Cell, x: Tensor, state: State, rows: Tensor) -> Tensor:
    """rows · ∂s_t/∂s_{t-1}, [B, K, N], exactly; the input x [B, D] is held fixed."""
    at_once = max(1, ROWS // max(1, rows.shape[1]))
    parts = [
        _pull_back(cell, x[at : at + at_once], tree_map(lambda leaf: leaf[at : at + at_once], state), part)  # noqa: B023
        for at, part in zip(range(0, len(rows), at_once), rows.split(at_once), strict=True)
    ]
    return torch.cat(parts)


def products(trace: StepTrace, rows: Tensor) -> Iterator[tuple[int, Tensor]]:
    """rows · ∂s_T/∂s_t for t = T-1, T-2, .. 0, where T is the trace's last step and s_t is after step t.

    Rows are [B, K, N] left factors; the identity gives full Jacobians. Yields t and the product [B, K, N]; a
    step that did not update a row counts as the identity.
    """
    yield len(trace.states) - 1, rows
    for t in range(len(trace.states) - 1, 0, -1):
        pulled = pull_back(trace.place.cell, trace.x[:, t], trace.states[t], rows)
        rows = torch.where(trace.mask[:, t, None, None], pulled, rows)
        yield t - 1, rows


@torch.enable_grad()
def _pull_back(cell: Cell, x: Tensor, state: State, rows: Tensor) -> Tensor:
    """Pull each of the K rows back through a copy of the step.

    We differentiate one number, the sum of rows times outputs. With output gradients torch would first import
    sympy (half a second), and vmap would import a compiler (one second).
    """
    count = rows.shape[1]
    repeated = tree_map(lambda leaf: leaf.detach().repeat_interleave(count, 0), state)
    numbers = flat(repeated).requires_grad_()
    _, after = cell.step(x.detach().repeat_interleave(count, 0), unflattened(numbers, repeated))
    out = flat(after)
    if not out.requires_grad:
        return torch.zeros_like(rows)
    (pulled,) = torch.autograd.grad((out * rows.flatten(0, 1)).sum(), numbers, materialize_grads=True)
    return pulled.view_as(rows)


def _counts(leaf: Tensor) -> bool:
    return leaf.is_floating_point() or leaf.is_complex()


def _real(leaf: Tensor) -> Tensor:
    return torch.view_as_real(leaf) if leaf.is_complex() else leaf


def recurrent_matrices(cell: Cell) -> Tensor | None:
    """W_hh of each gate, [G, H, H], in the cell's order; None without a matrix `weight_h` [G H, H]."""
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
