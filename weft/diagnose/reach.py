"""How far gradients reach, measured as the norm of dh_T/dh_t for every layer of any recurrent model.

`bound` is Pascanu's upper bound for a plain network, without measuring: γ_max λ₁ < 1 is sufficient for
gradients to vanish, γ_max λ₁ > 1 is necessary but not sufficient for them to explode. `verdict` judges by
measurements and never by a bound. `paths` are the two through a cell with a separate memory c. With h held
fixed, an LSTM's gradient along c is multiplied by the forget gates only; the full product over (h, c) has
three more paths through the gates, which can still explode. Read next: forgetting.py.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from statistics import median
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from weft import masks
from weft.diagnose.jacobian import blocks, flat, products, pull_back, shown_block, sigma_max
from weft.diagnose.recorded import CellPlace, RecordedRun, StepTrace, trace, watch
from weft.errors import ConfigError
from weft.nn.cells.elman import Elman
from weft.tree import State, leaves

LAGS = (1, 2, 5, 10, 20, 50)


class Reach(NamedTuple):
    """‖∂h_T/∂h_t‖₂ of one layer and direction."""

    place: CellPlace
    norms: Tensor  # [B, T]; 1 at a row's end (of a backward direction at its beginning), NaN at padding
    mask: Tensor  # [B, T] bool


def reach(model: nn.Module, batch: Any) -> list[Reach]:
    """The measured reach of each recurrent layer on a batch, for each sequence that each cell read, in order.

    ∂h_T/∂h_t = Π_{s=t+1..T} ∂h_s/∂h_{s-1}, by products of each step's exact Jacobian; for a gated cell it is
    the h-to-h block of the product over its whole state. T is each row's last unpadded step. A backward
    direction runs from the end, so there it is ∂h_0/∂h_t. The effects of other layers, attention and input
    feeding are held fixed.

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
    """dh_T/dh_t [T] of one unit: Π_{s=t+1..T} γ_s w = (γ̄ w)^(T-t), γ̄ the geometric mean of slopes γ [T]."""
    return _backward_product((slopes * weight)[None], torch.ones_like(slopes, dtype=torch.bool)[None])[0]


def _backward_product(factors: Tensor, mask: Tensor) -> Tensor:
    """Π_{s>t} factors_s over real steps, [B, T]."""
    later = factors.masked_fill(~mask, 1.0).flip(1).cumprod(1).flip(1)  # s >= t
    product = torch.cat([later[:, 1:], torch.ones_like(later[:, :1])], 1)
    return product.masked_fill(~mask, torch.nan)


Kind = Literal["vanishes", "explodes", "stable"]

LITTLE, MUCH = 0.01, 100.0
"""A reach below the first value is vanishing, above the second exploding."""

ADVICE: dict[Kind, str] = {
    "vanishes": "if the task needs what lies further back, take a gated cell with a higher forget_bias, an "
    "orthogonal recurrence, or attention",
    "explodes": "lower training.clip_norm or the learning rate, or keep the recurrence orthogonal",
}


class Verdict(NamedTuple):
    """What happens to the gradients of a layer, and a sentence that says it."""

    kind: Kind
    sentence: str


def verdict(measures: Sequence[Mapping[int, float]], *, name: str = "the recurrence") -> Verdict:
    """Whether gradients vanish, explode or are stable, with advice.

    Each lag is judged by its median over the later half of the measurements, to ignore the start of training.
    The gradient explodes if the reach exceeds 100 at some lag and vanishes if it is below 0.01 at the
    longest.
    """
    later = [one for one in measures if one][len(measures) // 2 :]
    lags = sorted({lag for one in later for lag in one})
    if not lags:
        return Verdict("stable", f"{name}: no earlier step was measured, so there is no verdict")
    norms = {lag: median(one[lag] for one in later if lag in one) for lag in lags}
    first, last = lags[0], lags[-1]
    highest = max(lags, key=lambda lag: norms[lag] if math.isfinite(norms[lag]) else math.inf)
    kind: Kind = "stable"
    if not norms[highest] <= MUCH:
        kind, last = "explodes", highest
    elif norms[last] < LITTLE:
        kind = "vanishes"
        last = next(lag for lag in lags if norms[lag] < LITTLE)
    shown = [first, last] if last > first else [first]
    numbers = ", ".join(f"{norms[lag]:.3g} at lag {lag}" for lag in shown)
    found = {"vanishes": "vanishes", "explodes": "explodes", "stable": "neither vanishes nor explodes"}[kind]
    advice = f"; {ADVICE[kind]}" if kind in ADVICE else ""
    return Verdict(kind, f"{name}: the gradient {found} (reach {numbers}){advice}")


def worst(verdicts: Mapping[str, Verdict]) -> Verdict:
    """The worst verdict: exploding, then vanishing, then stable; ties go to the first."""
    order: tuple[Kind, ...] = ("explodes", "vanishes", "stable")
    return min(verdicts.values(), key=lambda one: order.index(one.kind))


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
