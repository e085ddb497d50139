"""Gate statistics: how often gates are shut or open, and how long a cell keeps its memory.

A cell records its gates for a probe under names that end in `_gate`. Read next: ../probe.py, paths.py.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from weft.diagnose.recorded import StepTrace
from weft.probe import probe

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
    """How often each unit of a gate is nearly shut, and nearly open.

    Args:
        gate: [B, T, H] values from 0 to 1; mask: [B, T] bool.
    """
    real = gate[mask]  # [n, H]
    return Saturation((real < low).to(gate.dtype).mean(0), (real > high).to(gate.dtype).mean(0))


def half_life(gate: Tensor, mask: Tensor) -> Tensor:
    """Number of steps [H] after which the product of a forget gate falls to one half.

    ln 2 / -mean(ln f): the half-life of a constant gate with the same product; infinite if f is always 1.

    Args:
        gate: [B, T, H] forget gate (for a GRU, the update gate); mask: [B, T] bool.
    """
    return math.log(2) / gate[mask].log().mean(0).clamp(max=0.0).abs()
