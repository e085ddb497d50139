"""The recurrences of layer.py as a plain loop: their twin, and what serves where they are derived twice."""

import torch
from torch import Tensor

from weft.nn.activations import activate, modrelu
from weft.nn.kernels.cells.form import Recurrence

EPSILON = 1e-5  # as nn/cells/initial.py has it


def plain(
    form: Recurrence,
    z: Tensor,
    h: Tensor,
    c: Tensor | None,
    weight: Tensor,
    extra: Tensor | None,
    gain: Tensor | None,
    gain_2: Tensor | None,
    mask: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """See layer.run; the gains stand apart."""
    ys = []
    for t, inputs in enumerate(z.unbind(1)):
        if form.kind == "lstm" and c is not None:
            new_h, new_c = _lstm(form, inputs, h, c, weight, extra, gain, gain_2)
        else:
            new_h, new_c = _without_c(form, inputs, h, weight, extra, gain, gain_2), None
        y = new_h
        if mask is not None:
            real = mask[:, t, None]
            y, new_h = torch.where(real, y, torch.zeros_like(y)), torch.where(real, new_h, h)
            new_c = new_c if new_c is None or c is None else torch.where(real, new_c, c)
        h, c = new_h, new_c
        ys.append(y)
    return torch.stack(ys, 1), h, c


def _lstm(
    form: Recurrence,
    inputs: Tensor,
    h: Tensor,
    c: Tensor,
    weight: Tensor,
    peep: Tensor | None,
    gain: Tensor | None,
    gain_c: Tensor | None,
) -> tuple[Tensor, Tensor]:
    i, f, n, o = (inputs + _normed(h @ weight.mT, gain, 4)).chunk(4, -1)
    if peep is not None:
        i, f = i + peep[0] * c, f + peep[1] * c
    c = f.sigmoid() * c + i.sigmoid() * activate(n, form.name)
    o = o if peep is None else o + peep[2] * c
    return o.sigmoid() * _normed(c, gain_c, 1).tanh(), c


def _without_c(
    form: Recurrence,
    inputs: Tensor,
    h: Tensor,
    weight: Tensor,
    extra: Tensor | None,
    gain: Tensor | None,
    gain_n: Tensor | None,
) -> Tensor:
    if form.kind == "elman":
        energy = inputs + h @ weight.mT
        return activate(energy, form.name) if extra is None else modrelu(energy, extra)
    size = h.shape[1]
    gates, n = inputs.split([2 * size, size], -1)
    if form.kind == "gru":
        assert extra is not None
        product, inner = _normed(h @ weight.mT, gain, 3).split([2 * size, size], -1)
        r, u = (gates + product).sigmoid().chunk(2, -1)
        inner = r * (inner + extra)
    else:
        r, u = (gates + _normed(h @ weight[: 2 * size].mT, gain, 2)).sigmoid().chunk(2, -1)
        inner = _normed((r * h) @ weight[2 * size :].mT, gain_n, 1)
    return u * h + (1 - u) * activate(n + inner, form.name)


def _normed(z: Tensor, gain: Tensor | None, gates: int) -> Tensor:
    if gain is None:
        return z
    apart = z.unflatten(-1, (gates, -1))
    centred = apart - apart.mean(-1, keepdim=True)
    return (centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + EPSILON)).flatten(-2) * gain
