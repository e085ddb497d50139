"""Ablation: a model without some units of its recurrent layers.

    without = silenced(model, {"encoder.stack.forwards.0": [17]})

Read next: recorded.py, which finds the cells; attention.py, which overrides attention.
"""

import copy
import functools
from collections.abc import Collection, Mapping
from itertools import chain
from typing import TypeVar

import torch
from torch import Tensor, nn

from weft.diagnose.recorded import places
from weft.errors import ConfigError
from weft.nn.cells.cell import Cell
from weft.tree import State, tree_map

M = TypeVar("M", bound=nn.Module)


def silenced(model: M, units: Mapping[str, Collection[int]]) -> M:
    """A copy, with shared parameters, in which the given units are 0 before and after every step.

    y_t = k * y(x_t, k * s_{t-1}), s_t = k * s(x_t, k * s_{t-1}) with k = 0 at the units, 1 elsewhere, for
    every tensor of the state with one number per unit (h, and c of an LSTM). The cells run step by step.
    """
    shared = {id(tensor): tensor for tensor in chain(model.parameters(), model.buffers())}
    changed = copy.deepcopy(model, shared)
    cells = {place.name: place.cell for place in places(changed)}
    for name, some in units.items():
        if name not in cells:
            raise ConfigError(f"unknown cell {name!r}; this model has: {', '.join(cells) or 'none'}")
        size = cells[name].size
        for unit in some:
            if not 0 <= unit < size:
                raise ConfigError(f"{name}: there is no unit {unit}, it has units 0 to {size - 1}")
        _silence(cells[name], sorted(some))
    return changed


def _silence(cell: Cell, units: list[int]) -> None:
    own = cell.step
    kept = torch.ones(cell.size)
    kept[units] = 0

    def hushed(state: State) -> State:
        return tree_map(lambda leaf: leaf * kept.to(leaf) if leaf.shape[-1] == cell.size else leaf, state)

    def step(x: Tensor, state: State) -> tuple[Tensor, State]:
        y, new = own(x, hushed(state))
        return y * kept.to(y), hushed(new)

    # Only on this copy; `run` becomes the contract's loop over `step` instead of the kernel.
    cell.__dict__["step"] = step
    cell.__dict__["run"] = functools.partial(Cell.run, cell)
