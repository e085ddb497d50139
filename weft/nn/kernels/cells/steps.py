"""Recurrent layers as a plain loop over steps: the twin of every other way, used where torch traces.

It can be differentiated any number of times. Read next: ../equations.py, compiled.py.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from weft.nn.activations import activate, modrelu
from weft.nn.kernels import equations
from weft.nn.kernels.cells.form import FORMS, LayerInput, Norms, Recurrence, Result
from weft.nn.kernels.exported import Tensors, repeated
from weft.nn.kernels.linear import linear
from weft.nn.kernels.twin import twin_gradients
from weft.probe import exporting

EPSILON = 1e-5  # as in nn/cells/initial.py


def run(cell: str, given: LayerInput, through: Callable[..., Result] | None = None) -> Result:
    """Compute a layer of one of FORMS (form.py) from its input's products, by `loop` or another function."""
    x, h, c, weight_x, weight_h, bias, extra, mask = given
    inside = cell == "elman_modrelu"
    z = linear(x, weight_x, None if inside else bias)
    return (through or loop)(FORMS[cell], z, h, c, weight_h, bias if inside else extra, None, mask)


def loop(
    form: Recurrence,
    z: Tensor,
    h: Tensor,
    c: Tensor | None,
    weight: Tensor,
    extra: Tensor | None,
    norms: Norms | None,
    mask: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Compute a layer from the products with its inputs; see triton/layer.run.

    Args:
        z: [B, T, G H] W x + b of all gates.
        h, c: [B, H] the initial state.
        weight: [G H, H].
        mask: [B, T] bool, or None.
    """
    if exporting():  # one node of a graph, for cells without an operator in ONNX

        def step(at: Tensors, state: Tensors, fixed: Tensors) -> tuple[Tensor, Tensors]:
            old, more = (*state, None)[:2], (*fixed, None)[:2]
            new_h, new_c = _step(form, at[0], *old, *more, None)  # type: ignore[arg-type]
            return new_h, (new_h,) if new_c is None else (new_h, new_c)

        fixed = (weight,) if extra is None else (weight, extra)
        y, last = repeated(step, (z,), (h,) if c is None else (h, c), mask, fixed)
        return y, last[0], None if c is None else last[1]
    ys = []
    for t, inputs in enumerate(z.unbind(1)):
        new_h, new_c = _step(form, inputs, h, c, weight, extra, norms)
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
    """The gradients of a layer as a graph, for second derivatives of a kernel.

    Args:
        mask: [B, T] in the kernel's order of rows.
        given: x [B, T, D], h, c, weight_x, weight_h, bias, extra; rows in the kernel's order.
    """
    return twin_gradients(lambda *tensors: run(cell, LayerInput(*tensors, mask)), given, grads)


def _step(
    form: Recurrence,
    inputs: Tensor,
    h: Tensor,
    c: Tensor | None,
    weight: Tensor,
    extra: Tensor | None,
    norms: Norms | None,
) -> tuple[Tensor, Tensor | None]:
    gain, other = (None, None) if norms is None else norms
    if c is None:
        return _without_c(form, inputs, h, weight, extra, gain, other), None
    count = 3 if form.kind == "coupled" else 4
    gates = (inputs + _normed(linear(h, weight), gain, count)).chunk(count, -1)

    def norm(c: Tensor) -> Tensor:
        return _normed(c, other, 1)

    if form.kind == "coupled":
        new = equations.coupled(*gates, c, activation=form.name, norm=norm)
    elif extra is None:
        new = equations.lstm(*gates, c, activation=form.name, norm=norm)
    else:
        (i, f, candidate, o), (p_i, p_f, p_o) = gates, extra
        new = equations.lstm(
            i + p_i * c, f + p_f * c, candidate, o, c, activation=form.name, peep=lambda c: p_o * c, norm=norm
        )
    return new.hidden, new.cell


def _without_c(
    form: Recurrence,
    inputs: Tensor,
    h: Tensor,
    weight: Tensor,
    extra: Tensor | None,
    gain: Tensor | None,
    other: Tensor | None,
) -> Tensor:
    if form.kind == "elman":
        energy = inputs + linear(h, weight)
        return activate(energy, form.name) if extra is None else modrelu(energy, extra)
    size = h.shape[1]
    gates, candidate = inputs.split([2 * size, size], -1)
    weight_g, weight_n = weight.split([2 * size, size])
    if form.kind == "gru" and gain is not None:
        product, inner = _normed(linear(h, weight), gain, 3).split([2 * size, size], -1)
    else:
        product, inner = _normed(linear(h, weight_g), gain, 2), None

    def reset(r: Tensor) -> Tensor:
        if form.kind == "gru_before":
            return _normed(linear(r * h, weight_n), other, 1)
        return r * (linear(h, weight_n, extra) if inner is None or extra is None else inner + extra)

    return equations.gru(gates + product, candidate, reset, h, activation=form.name).hidden


def _normed(z: Tensor, gain: Tensor | None, gates: int) -> Tensor:
    """Layer normalisation of each gate; z itself without gains."""
    if gain is None:
        return z
    apart = z.unflatten(-1, (gates, -1))
    centred = apart - apart.mean(-1, keepdim=True)
    return (centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + EPSILON)).flatten(-2) * gain
