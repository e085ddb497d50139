"""Recurrent layers as a plain loop over steps: the twin of every other way, used where torch traces.

It can be differentiated any number of times. Read next: ../equations.py, compiled.py.
"""

import torch
from torch import Tensor

from weft.nn.activations import activate, modrelu
from weft.nn.kernels import equations
from weft.nn.kernels.equations import ACTIVATIONS, LayerInput, Result
from weft.nn.kernels.linear import linear
from weft.nn.kernels.twin import Tensors, repeated, twin_gradients
from weft.probe import exporting


def run(cell: str, given: LayerInput) -> Result:
    """Compute a layer of a cell."""
    x, h, c, weight_x, weight_h, bias, extra, mask = given
    inside = cell == "elman_modrelu"
    z = linear(x, weight_x, None if inside else bias)  # [B, T, G H]
    extra = bias if inside else extra
    if exporting():  # one node of a graph, for cells without an operator in ONNX

        def step(at: Tensors, state: Tensors, fixed: Tensors) -> tuple[Tensor, Tensors]:
            old, more = (*state, None)[:2], (*fixed, None)[:2]
            new_h, new_c = _step(cell, at[0], *old, *more)  # type: ignore[arg-type]
            return new_h, (new_h,) if new_c is None else (new_h, new_c)

        fixed = (weight_h,) if extra is None else (weight_h, extra)
        y, last = repeated(step, (z,), (h,) if c is None else (h, c), mask, fixed)
        return y, last[0], None if c is None else last[1]
    ys = []
    for t, inputs in enumerate(z.unbind(1)):
        new_h, new_c = _step(cell, inputs, h, c, weight_h, extra)
        y = new_h
        if mask is not None:
            real = mask[:, t, None]
            y = torch.where(real, y, torch.zeros_like(y))
            new_h = torch.where(real, new_h, h.to(new_h.dtype))
            new_c = new_c if new_c is None or c is None else torch.where(real, new_c, c.to(new_c.dtype))
        h, c = new_h, new_c
        ys.append(y)
    return torch.stack(ys, 1), h, c


def derived(
    cell: str, mask: Tensor | None, given: tuple[Tensor | None, ...], grads: tuple[Tensor | None, ...]
) -> tuple[Tensor | None, ...]:
    """The gradients of a layer, rows in the kernel's order, as a graph for second derivatives."""
    return twin_gradients(lambda *tensors: run(cell, LayerInput(*tensors, mask)), given, grads)


def _step(
    cell: str, inputs: Tensor, h: Tensor, c: Tensor | None, weight: Tensor, extra: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """The next h and c, from a step's W x + b [B, G H]."""
    if c is None:
        return _gru(cell, inputs, h, weight, extra) if cell.startswith("gru") else _elman(
            cell, inputs, h, weight, extra
        ), None
    gates = (inputs + linear(h, weight)).chunk(3 if cell == "coupled" else 4, -1)
    if cell == "coupled":
        new = equations.coupled(*gates, c)
    elif extra is None:
        new = equations.lstm(*gates, c)
    else:
        (i, f, candidate, o), (p_i, p_f, p_o) = gates, extra
        new = equations.lstm(i + p_i * c, f + p_f * c, candidate, o, c, peep=lambda c: p_o * c)
    return new.hidden, new.cell


def _elman(cell: str, inputs: Tensor, h: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    energy = inputs + linear(h, weight)
    return activate(energy, ACTIVATIONS[cell]) if bias is None else modrelu(energy, bias)


def _gru(cell: str, inputs: Tensor, h: Tensor, weight: Tensor, bias_n: Tensor | None) -> Tensor:
    size = h.shape[1]
    gates, candidate = inputs.split([2 * size, size], -1)
    weight_g, weight_n = weight.split([2 * size, size])

    def inner(r: Tensor) -> Tensor:
        return linear(r * h, weight_n) if cell == "gru_before" else r * linear(h, weight_n, bias_n)

    return equations.gru(gates + linear(h, weight_g), candidate, inner, h).hidden
