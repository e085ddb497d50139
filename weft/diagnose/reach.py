"""How far gradients reach, measured as the norm of dh_T/dh_t for every layer of any recurrent model.

Read next: bound.py, Pascanu's upper bound; paths.py, the two paths through an LSTM; verdict.py.
"""

from collections.abc import Collection
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from weft import masks
from weft.diagnose.jacobian import flat, products, shown_block
from weft.diagnose.recorded import CellPlace, RecordedRun, StepTrace, trace, watch
from weft.diagnose.spectrum import sigma_max
from weft.tree import leaves

LAGS = (1, 2, 5, 10, 20, 50)


class Reach(NamedTuple):
    """‖∂h_T/∂h_t‖₂ of one layer and direction."""

    place: CellPlace
    norms: Tensor  # [B, T]; 1 at a row's end (of a backward direction at its beginning), NaN at padding
    mask: Tensor  # [B, T] bool


def reach(model: nn.Module, batch: Any) -> list[Reach]:
    """The measured reach of each recurrent layer on a batch.

    ∂h_T/∂h_t = Π_{s=t+1..T} ∂h_s/∂h_{s-1}, by products of each step's exact Jacobian; for a gated cell it is
    the h-to-h block of the product over its whole state. T is each row's last unpadded step. A backward
    direction runs from the end, so there it is ∂h_0/∂h_t. The effects of other layers, attention and input
    feeding are held fixed.

    Returns:
        One for each sequence that each cell read, in order of their beginnings.

    Source: Pascanu, Mikolov & Bengio 2013, "On the difficulty of training recurrent neural networks", (5).
    """
    with parametrize.cached():  # compute an orthogonal matrix once instead of at every step
        return [measured_reach(trace(run)) for run in seen(model, batch)]


def seen(model: nn.Module, batch: Any) -> list[RecordedRun]:
    """What a model's cells read while it computes its loss on a batch in evaluation mode.

    Example:
        >>> from weft.models import Labeller
        >>> from weft.nn import Categorical, RecurrentEncoder, Tokens
        >>> from weft.tasks.labels.base import LabelBatch
        >>> model = Labeller(Tokens(7, 3), RecurrentEncoder(3, sizes=(5,)), Categorical(5, 2))
        >>> source = torch.tensor([[4, 5, 6]])  # [B, S]
        >>> (run,) = seen(model, LabelBatch(source, source > 0, source % 2, 3))
        >>> run.calls[0].x.shape  # [B, S, D]
        torch.Size([1, 3, 3])
    """
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad(), watch(model) as runs:
            model.loss(batch)  # type: ignore[operator]
    finally:
        for module, training in modes:
            module.training = training
    return runs


def measured_reach(steps: StepTrace) -> Reach:
    """The reach of one cell over the steps of a trace, [B, T], in the order of positions."""
    norms = torch.full(steps.mask.shape, torch.nan, dtype=steps.x.dtype, device=steps.x.device)
    for t, norm in _norms(steps, range(len(steps.states))):
        norms[:, t] = norm
    norms = norms.masked_fill(~steps.mask, torch.nan)
    if steps.place.backward:
        norms = masks.reverse(norms[..., None], steps.mask)[..., 0]
    return Reach(steps.place, norms, steps.mask)


def reach_at(steps: StepTrace, lags: Collection[int] = LAGS) -> dict[int, Tensor]:
    """The reach [B] at the given lags T - t within the trace, for monitoring."""
    last = len(steps.states) - 1
    wanted = [last - lag for lag in lags if lag <= last]
    if not wanted:
        return {}
    found = dict(_norms(steps, wanted))
    return {last - t: found[t] for t in sorted(wanted, reverse=True)}


def _norms(steps: StepTrace, wanted: Collection[int]) -> list[tuple[int, Tensor]]:
    """(t, ‖∂h_T/∂h_t‖₂ [B]) for the steps in `wanted`."""
    cell, state = steps.place.cell, steps.states[-1]
    last = len(steps.states) - 1
    if not any(True for _ in leaves(state)):  # a network without recurrence
        ones = steps.x.new_ones(len(steps.x))
        return [(t, ones if t == last else torch.zeros_like(ones)) for t in wanted]
    numbers, h = flat(state), shown_block(cell, state)
    rows = numbers.new_zeros(len(h), numbers.shape[1])
    rows[torch.arange(len(h), device=h.device), h] = 1
    found = []
    for t, product in products(steps, rows.expand(len(numbers), -1, -1)):
        if t in wanted:
            found.append((t, sigma_max(product[..., h])))
        if t <= min(wanted):
            break
    return found
