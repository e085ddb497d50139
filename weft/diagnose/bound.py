"""An upper bound on a plain recurrent network's gradient reach, without measuring it.

γ_max λ₁ < 1 is sufficient for gradients to vanish. γ_max λ₁ > 1 is necessary but not sufficient for them to
explode. Read next: reach.py, which measures; verdict.py, which uses only the measurement.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from weft import masks
from weft.diagnose.recorded import StepTrace
from weft.diagnose.spectrum import sigma_max
from weft.errors import ConfigError
from weft.nn.cells.elman import Elman

STEEPEST = dict.fromkeys(("tanh", "relu", "leaky_relu", "elu", "maxout", "modrelu"), 1.0) | {"sigmoid": 0.25}
"""γ_max, the largest slope of each activation (modrelu: except for the jump at a positive bias)."""

LEAK = 0.1


class Bound(NamedTuple):
    """Upper bounds of ‖∂h_T/∂h_t‖₂ in the order of positions, as in `Reach`; NaN at padding."""

    coarse: Tensor  # [B, T] (γ_max λ₁)^(T-t)
    tight: Tensor  # [B, T] Π_{s=t+1..T} γ_s,max λ₁, with the actual slopes


@torch.no_grad()
def bound(steps: StepTrace) -> Bound:
    """Both bounds for a plain network, layer by layer: ‖∂h_T/∂h_t‖ <= tight <= coarse.

    λ₁ is the largest singular value of W_hh and γ_s,max the largest slope of the activation among the units
    at step s.

    Source: Pascanu, Mikolov & Bengio 2013, section 2.1, with the same λ₁.
    """
    cell = steps.place.cell
    if not isinstance(cell, Elman):
        raise ConfigError(
            f"{steps.place.name}: expected a plain (elman) cell, got {type(cell).__name__}; "
            "the bound holds for no other, so ask for the measured reach"
        )
    longest = sigma_max(cell.weight_h)
    last = cell.step(steps.x[:, -1], steps.states[-1])[1]
    after = torch.stack([state[0] for state in [*steps.states[1:], last]], 1)  # [B, T, H]
    met = (
        slopes(cell.activation, after).amax(-1) * longest
    ).double()  # [B, T]; in float32, 200 factors of 2 would overflow
    most = torch.full_like(met, STEEPEST[cell.activation]) * longest
    tight, coarse = (_backward_product(factors, steps.mask) for factors in (met, most))
    if steps.place.backward:
        tight, coarse = (masks.reverse(one[..., None], steps.mask)[..., 0] for one in (tight, coarse))
    return Bound(coarse, tight)


def slopes(activation: str, h: Tensor) -> Tensor:
    """g'(z) from h = g(z), elementwise; 1 for maxout, which is piecewise linear."""
    if activation == "tanh":
        return 1 - h * h
    if activation == "sigmoid":
        return h * (1 - h)
    if activation == "relu":
        return (h > 0).to(h.dtype)
    if activation == "leaky_relu":
        return torch.where(h > 0, 1.0, LEAK).to(h.dtype)
    if activation == "elu":
        return torch.where(h > 0, 1.0, h + 1)
    if activation == "modrelu":
        return (h != 0).to(h.dtype)
    if activation == "maxout":
        return torch.ones_like(h)
    raise ConfigError(f"activation: expected one of {', '.join(STEEPEST)}, got {activation!r}")


def scalar_reach(weight: float, slopes: Tensor) -> Tensor:
    """dh_T/dh_t of a network with one unit: Π_{s=t+1..T} γ_s w = (γ̄ w)^(T-t) with the geometric mean γ̄.

    Args:
        slopes: [T] γ_1 .. γ_T.

    Returns:
        [T] for t = 1 .. T; the last one is 1.
    """
    return _backward_product((slopes * weight)[None], torch.ones_like(slopes, dtype=torch.bool)[None])[0]


def _backward_product(factors: Tensor, mask: Tensor) -> Tensor:
    """Π_{s>t} factors_s over real steps, [B, T]."""
    later = factors.masked_fill(~mask, 1.0).flip(1).cumprod(1).flip(1)  # s >= t
    product = torch.cat([later[:, 1:], torch.ones_like(later[:, :1])], 1)
    return product.masked_fill(~mask, torch.nan)
