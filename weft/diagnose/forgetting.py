"""How fast a cell forgets: eigenvalues of each step, shares that remain, half-lives, and a verdict.

A cell needs no code for this. It records what multiplies its state, as every gated cell does under the name
`forget_gate` or `update_gate`; where that is complex, a matrix, or has more numbers than there are units, it
records `transition`, and for a matrix also `written`, the key of the step. `gates`, `saturation` and
`half_life` look at the gates alone. Read next: ../probe.py, ../inspect/views/forgetting.py.
"""

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from weft.diagnose.reach import LITTLE
from weft.diagnose.recorded import CellPlace, StepTrace
from weft.probe import probe
from weft.tree import tree_map

KEEPING = ("forget_gate", "update_gate")
"""Gates that keep the old state where they are 1."""


class Saturation(NamedTuple):
    """Shares of a gate's values, 0 to 1, over rows and unpadded steps."""

    shut: Tensor  # [H] below `low`
    open: Tensor  # [H] above `high`


@torch.no_grad()
def step_values(steps: StepTrace, wanted: Callable[[str, Tensor], bool]) -> dict[str, Tensor]:
    """What a cell records at the steps of a trace, [B, T, ..] by name, and its output state: those wanted."""
    found: dict[str, list[Tensor]] = {}
    for t, state in enumerate(steps.states):
        with probe() as seen:
            _, after = steps.place.cell.step(steps.x[:, t], state)
        seen.setdefault("hidden", [steps.place.cell.shown(after)])
        for name, values in seen.items():
            if wanted(name, values[-1]):
                found.setdefault(name, []).append(values[-1])
    return {name: torch.stack(values, 1) for name, values in found.items()}


def gates(steps: StepTrace) -> dict[str, Tensor]:
    """Each gate of a cell over the steps of a trace, [B, T, H] by name; empty for a cell without gates."""
    return step_values(steps, lambda name, value: name.endswith("_gate"))


def saturation(gate: Tensor, mask: Tensor, *, low: float = 0.1, high: float = 0.9) -> Saturation:
    """How often each unit of a gate [B, T, H] is nearly shut, and nearly open."""
    real = gate[mask]  # [n, H]
    return Saturation((real < low).to(gate.dtype).mean(0), (real > high).to(gate.dtype).mean(0))


def half_life(gate: Tensor, mask: Tensor) -> Tensor:
    """Number of steps [H] after which the product of a forget gate [B, T, H] falls to one half.

    ln 2 / -mean(ln f): the half-life of a constant gate with the same product; infinite if f is always 1. For
    a GRU, the update gate.
    """
    return math.log(2) / gate[mask].log().mean(0).clamp(max=0.0).abs()


OPERATIONS = 2e10
"""Budget for eigenvalues of matrices; beyond it, only those of the last steps are computed."""

ROWS = 32
"""Outputs that are followed back one by one; of more, as many random sums."""

Kind = Literal["forgets", "mixed", "keeps"]


class Forgetting(NamedTuple):
    """How the memory of a cell fades over the T real steps of the first row, in reading order.

    A channel is a number of the state with a factor of its own, or a head whose state is multiplied by a
    matrix. The share of a write that is kept is ‖A_T .. A_{t+1} k_t‖ / ‖k_t‖ for a matrix. A half-life holds
    at the mean rate of these steps, and is infinite if nothing is forgotten.
    """

    place: CellPlace
    at: Tensor  # [T] int64, the steps of the trace
    eigenvalues: Tensor  # [T, N] of what multiplies the state; of large matrices only at the last steps
    kept: Tensor  # [T, C] share of what was written at a step that remains after the last one
    half_lives: Tensor  # [C] steps after which one half remains
    heads: bool  # whether the channels are heads


class MemoryVerdict(NamedTuple):
    """How a layer forgets, and a sentence that says it."""

    kind: Kind
    sentence: str


@torch.no_grad()
def forgetting(steps: StepTrace) -> Forgetting | None:
    """Measure a cell; None if it records no decay, as a plain recurrent network.

    Example:
        >>> from weft.diagnose.recorded import trace, watch
        >>> from weft.nn.recurrent import Stack
        >>> stack = Stack(3, (5,))  # one LSTM
        >>> with watch(stack) as runs:
        ...     _ = stack(torch.zeros(2, 7, 3))
        >>> forgetting(trace(runs[0])).half_lives.shape  # in steps, of each channel
        torch.Size([5])
    """
    found = _factors(steps)
    if found is None:
        return None
    at, each, written = found
    if written is not None:
        kept, lives = _of_matrices(each, written)
        size = each.shape[-1]
        count = max(1, int(OPERATIONS / (25.0 * each.shape[1] * size**3)))
        each = torch.linalg.eigvals(each[-count:]).flatten(1)
    else:
        each = each.flatten(1)
        kept, lives = _of_channels(each.abs())
    return Forgetting(steps.place, at, each, kept, lives, written is not None)


@torch.no_grad()
def half_lives(steps: StepTrace) -> Tensor | None:
    """Half-lives [C] of heads whose state is multiplied by a matrix; None for other cells or one step."""
    found = _factors(steps)
    if found is None or found.written is None or len(found.at) < 2:
        return None
    return _of_matrices(found.each, found.written)[1]


def output_reach(steps: StepTrace) -> Tensor:
    """‖∂y_T/∂x_t‖ [T] (Frobenius) of the real steps of the first row: how far back the last output depends.

    It does not depend on how a cell stores its state. With more than ROWS outputs it is estimated from random
    sums of them with fixed seeds.
    """
    cell, at = steps.place.cell, steps.mask[0].nonzero()[:, 0]
    rows = min(cell.size, ROWS)
    weights = torch.eye(rows)
    if cell.size > ROWS:
        signs = torch.randint(0, 2, (rows, cell.size), generator=torch.Generator().manual_seed(1))
        weights = (2.0 * signs - 1) / math.sqrt(rows)
    state = tree_map(lambda leaf: leaf[:1].repeat_interleave(rows, 0), steps.states[0])
    with torch.enable_grad():
        x = steps.x[:1, at].repeat_interleave(rows, 0).requires_grad_()
        y, _ = cell(x, state)
        (slopes,) = torch.autograd.grad((y[:, -1] * weights.to(y)).sum(), x)
    return slopes.double().square().sum((0, 2)).sqrt()


@torch.no_grad()
def matrices_at(steps: StepTrace, t: int) -> Tensor:
    """The matrices of a cell on the first row after step t, [heads, K, V]; no heads for other cells."""
    with probe() as values:
        steps.place.cell.step(steps.x[:, t], steps.states[t])
    return values["state"][-1][0] if "state" in values else steps.x.new_zeros(0, 0, 0)


def verdict_of(found: Forgetting, name: str) -> MemoryVerdict:
    """What a cell remembers, in words.

    The verdict is "keeps" if at least half of the first step remains in at least half of the channels, and
    "forgets" if less than 1 % remains in the slowest one.

    Args:
        found: from `forgetting`.
        name: of the layer.

    Example:
        >>> from weft.diagnose.recorded import trace, watch
        >>> from weft.nn.recurrent import Stack
        >>> stack = Stack(3, (5,))  # one LSTM
        >>> with watch(stack) as runs:
        ...     _ = stack(torch.zeros(2, 7, 3))
        >>> verdict_of(forgetting(trace(runs[0])), "layer 1").kind in ("keeps", "forgets", "mixed")
        True
    """
    lives, steps = found.half_lives, len(found.at)
    middle, slowest = float(lives.median()), float(lives.max())
    share = float(found.kept[0].max())
    kind: Kind = "mixed"
    if float(found.kept[0].median()) >= 0.5:
        kind = "keeps"
    elif share < LITTLE:
        kind = "forgets"
    what = "head" if found.heads else "channel"
    after = "never forgotten" if math.isinf(middle) else f"forgotten after {lasting(middle)}"
    words = f"half of what was written is {after}"
    if len(lives) > 1:
        words += f" in the median {what}; the slowest of {len(lives)} {what}s " + (
            "never forgets half" if math.isinf(slowest) else f"keeps half for {lasting(slowest)}"
        )
    if kind == "keeps":
        words += f"; most {what}s still hold at least half of the first of the {steps} positions"
    else:
        left = f"{share:.2g}" if 0 < share < 0.0001 else f"{share:.2%}"
        words += f"; at most {left} of the first of the {steps} positions remains"
    if kind == "forgets":
        words += "; if the task needs it, start with decays closer to 1, or add attention"
    return MemoryVerdict(kind, f"{name}: {words}")


def lasting(life: float) -> str:
    """A half-life in words, such as "12 steps"."""
    if math.isinf(life):
        return "never"
    return f"{life:.2f} steps" if life < 10 else f"{life:,.0f} steps"


class _Factors(NamedTuple):
    """What multiplies the state at each step, in float64 or complex128."""

    at: Tensor  # [T] int64, the real steps of the first row
    each: Tensor  # [T, ..]
    written: Tensor | None  # [T, heads, K] the keys, if `each` holds matrices


def _factors(steps: StepTrace) -> _Factors | None:
    """What a cell records at the real steps of the first row; None if it records no decay."""
    factors, written = [], []
    at = steps.mask[0].nonzero()[:, 0]
    for t in at.tolist():
        with probe() as values:
            steps.place.cell.step(steps.x[:1, t], tree_map(lambda leaf: leaf[:1], steps.states[t]))
        name = next((name for name in ("transition", *KEEPING) if name in values), None)
        if name is None:
            return None
        factors.append(values[name][-1][0])
        written += [key[0] for key in values.get("written", [])[-1:]]
    each = torch.stack(factors)
    each = each.to(torch.complex128 if each.is_complex() else torch.float64)
    return _Factors(at, each, torch.stack(written).double() if written else None)


def _of_channels(sizes: Tensor) -> tuple[Tensor, Tensor]:
    """Shares kept [T, N] and half-lives [N] for the sizes of factors [T, N]."""
    logs = sizes.clamp(min=torch.finfo(torch.float64).tiny).log()
    later = logs.flip(0).cumsum(0).flip(0) - logs
    mean = (logs[1:] if len(logs) > 1 else logs).mean(0)  # before the first step nothing was written
    return later.exp(), math.log(2) / mean.clamp(max=0.0).abs()


def _of_matrices(each: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
    """Shares kept [T, heads] of keys [T, heads, K], and half-lives [heads], the median over all writes."""
    product = torch.eye(each.shape[-1], dtype=each.dtype).expand(each.shape[1:])
    kept = torch.ones(each.shape[:2], dtype=each.dtype)
    last = len(each) - 1
    for t in range(last - 1, -1, -1):
        product = product @ each[t + 1]
        left = (product @ keys[t][..., None])[..., 0]
        kept[t] = left.norm(dim=-1) / keys[t].norm(dim=-1)
    if not last:
        return kept, torch.full_like(kept[0], math.inf)
    age = torch.arange(last, 0, -1, dtype=each.dtype)[:, None]
    lives = age * math.log(2) / kept[:-1].log().clamp(max=0.0).abs()
    return kept, lives.nanmedian(0).values
