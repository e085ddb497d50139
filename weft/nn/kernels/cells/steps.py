"""Recurrent layers as a plain loop over steps: twin of the other ways, and what serves where torch traces.

It may be derived any number of times. Read next: written.py.
"""

import torch
from torch import Tensor

from weft.nn.activations import activate, modrelu
from weft.nn.kernels.cells.rows import Sorted
from weft.nn.kernels.linear import linear


def run(
    cell: str,
    x: Tensor,
    h: Tensor,
    c: Tensor | None,
    weight_x: Tensor,
    weight_h: Tensor,
    bias: Tensor,
    extra: Tensor | None,
    mask: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """A layer; see compiled.run. cell: lstm, peephole, coupled, gru, gru_before, elman, relu or elman_*."""
    ys = []
    inside = cell == "elman_modrelu"
    extra = bias if inside else extra
    for t, inputs in enumerate(linear(x, weight_x, None if inside else bias).unbind(1)):
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
    cell: str, rows: Sorted, given: tuple[Tensor | None, ...], grads: tuple[Tensor | None, ...]
) -> tuple[Tensor | None, ...]:
    """The gradients of a layer as a graph: what a kernel gives back when it is to be derived twice.

    Args:
        cell: see run.
        rows: how the kernel sorted them.
        given: x [B, T, D], h, c, weight_x, weight_h, bias, extra, rows in the kernel's order.
        grads: by y, h, c.
    """
    with torch.enable_grad():
        outs = run(cell, *given, rows.mask())  # type: ignore[arg-type]
        pairs = [
            (out, grad) for out, grad in zip(outs, grads, strict=True) if out is not None and grad is not None
        ]
        wanted = [tensor for tensor in given if tensor is not None and tensor.requires_grad]
        ends, weights = zip(*pairs, strict=True)
        found = iter(torch.autograd.grad(ends, wanted, weights, create_graph=True, allow_unused=True))
    return tuple(next(found) if t is not None and t.requires_grad else None for t in given)


def _step(
    cell: str, inputs: Tensor, h: Tensor, c: Tensor | None, weight: Tensor, extra: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    if c is None:
        return _without_c(cell, inputs, h, weight, extra), None
    gates = (inputs + linear(h, weight)).chunk(3 if cell == "coupled" else 4, -1)
    if cell == "coupled":
        f, candidate, o = gates[0].sigmoid(), gates[1].tanh(), gates[2]
        c = f * c + (1 - f) * candidate
    else:
        i, f, candidate, o = gates
        if extra is not None:
            i, f = i + extra[0] * c, f + extra[1] * c
        c = f.sigmoid() * c + i.sigmoid() * candidate.tanh()
        o = o if extra is None else o + extra[2] * c
    return o.sigmoid() * c.tanh(), c


def _without_c(cell: str, inputs: Tensor, h: Tensor, weight: Tensor, extra: Tensor | None) -> Tensor:
    size = h.shape[1]
    if cell.startswith("elman") or cell == "relu":
        energy = inputs + linear(h, weight)
        if cell == "elman_modrelu" and extra is not None:
            return modrelu(energy, extra)
        return activate(energy, "tanh" if cell == "elman" else cell.removeprefix("elman_"))
    weight_g, weight_n = weight.split([2 * size, size])
    r, u = (inputs[:, : 2 * size] + linear(h, weight_g)).sigmoid().chunk(2, -1)
    inner = linear(r * h, weight_n) if cell == "gru_before" else r * linear(h, weight_n, extra)
    candidate = (inputs[:, 2 * size :] + inner).tanh()
    return u * h + (1 - u) * candidate
