"""Gradient paths through a cell with a separate memory c: along c only, and through the whole state.

On the direct path, with h held fixed, an LSTM's gradient is multiplied by the forget gates only.
The full product over (h, c) has three more paths through the gates, which can still explode.
Read next: forgetting.py.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from weft import masks
from weft.diagnose.jacobian import blocks, flat, products, pull_back, sigma_max
from weft.diagnose.recorded import CellPlace, StepTrace
from weft.errors import ConfigError
from weft.tree import State


class Paths(NamedTuple):
    """Spectral norms, [B, T] each, in the order of positions; NaN at padding.

    hh, hc, ch, cc are the blocks of Π_{s=t+1..T} ∂(h_s, c_s)/∂(h_{s-1}, c_{s-1}): hc is ‖∂h_T/∂c_t‖. `direct`
    is ‖Π ∂c_s/∂c_{s-1}‖ with h held fixed; for an LSTM ‖Π f_s‖, the largest product of any unit. With
    peepholes the gates read c, so it is not the product of f.
    """

    place: CellPlace
    direct: Tensor
    hh: Tensor
    hc: Tensor
    ch: Tensor
    cc: Tensor
    mask: Tensor  # [B, T] bool


def paths(steps: StepTrace) -> Paths:
    """Both products for a cell whose state is (h, c).

    Source: Hochreiter & Schmidhuber 1997, appendix A.1; Gers, Schmidhuber & Cummins 2000.
    """
    h, c = _two(steps)
    size = flat(steps.states[-1]).shape[1]
    eye = torch.eye(size, dtype=steps.x.dtype, device=steps.x.device).expand(len(steps.x), -1, -1)
    norms = torch.full((5, *steps.mask.shape), torch.nan, dtype=steps.x.dtype, device=steps.x.device)
    for t, product in products(steps, eye):
        found = [product[:, to, of] for to in (h, c) for of in (h, c)]
        norms[1:, :, t] = torch.stack([sigma_max(block) for block in found])
    for t, product in _direct(steps, eye[:, c], c):
        norms[0, :, t] = sigma_max(product)
    norms = norms.masked_fill(~steps.mask, torch.nan)
    if steps.place.backward:
        norms = torch.stack([masks.reverse(one[..., None], steps.mask)[..., 0] for one in norms])
    direct, hh, hc, ch, cc = norms.unbind()
    return Paths(steps.place, direct, hh, hc, ch, cc, steps.mask)


def _direct(steps: StepTrace, rows: Tensor, c: slice) -> list[tuple[int, Tensor]]:
    """Π ∂c_s/∂c_{s-1} with every h_{s-1} held fixed, [B, H, H]; `rows` selects c from the state."""
    picks = rows
    product = rows[..., c]
    last = len(steps.states) - 1
    found = [(last, product)]
    for t in range(last, 0, -1):
        own = pull_back(steps.place.cell, steps.x[:, t], steps.states[t], picks)[..., c]
        product = torch.where(steps.mask[:, t, None, None], product @ own, product)
        found.append((t - 1, product))
    return found


def _two(steps: StepTrace) -> tuple[slice, slice]:
    state: State = steps.states[-1]
    parts = blocks(state)
    if len(parts) != 2:
        kind = type(steps.place.cell).__name__
        raise ConfigError(
            f"{steps.place.name}: the state of a {kind} has {len(parts)} parts, the two paths need (h, c); "
            "take an LSTM of any kind, or ask for the measured reach"
        )
    return parts[0], parts[1]
