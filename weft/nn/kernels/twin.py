"""The plain twins of kernels: the loop of recurrent layers, gradients as a graph, and a scan in an export.

The kernels' own backward passes have no graph. If a caller wants one (`create_graph`), the twin is run again
and differentiated by autograd. While torch exports a graph, a recurrence is a scan over the steps, as a loop
in Python would fix their number; cells that ONNX has an operator for are one node instead (cells/layer.py).
Read next: cells/compiled.py, light.py, which come here.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from weft.nn.activations import activate, modrelu
from weft.nn.kernels import equations
from weft.nn.kernels.equations import ACTIVATIONS, LayerInput, Result
from weft.nn.kernels.linear import linear
from weft.probe import exporting
from weft.tree import State, leaves, like, where

Tensors = tuple[Tensor, ...]
Step = Callable[[Tensors, Tensors, Tensors], tuple[Tensor, Tensors]]


def twin_gradients(
    twin: Callable[..., Tensor | Sequence[Tensor | None]],
    given: Sequence[Tensor | None],
    grads: Sequence[Tensor | None],
) -> tuple[Tensor | None, ...]:
    """The gradients of `given`, with a graph.

    Example:
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> (slope,) = twin_gradients(lambda x: x ** 2, [x], [torch.tensor(1.0)])
        >>> torch.autograd.grad(slope, x)
        (tensor(2.),)
    """
    wanted = [each for each in given if each is not None and each.requires_grad]
    with torch.enable_grad():
        outs = twin(*given)
        outs = [outs] if isinstance(outs, Tensor) else outs
        pairs = [
            (out, grad) for out, grad in zip(outs, grads, strict=True) if out is not None and grad is not None
        ]
        ends, weights = zip(*pairs, strict=True)
        found = iter(torch.autograd.grad(ends, wanted, weights, create_graph=True, allow_unused=True))
    return tuple(next(found) if each is not None and each.requires_grad else None for each in given)


def repeated(
    step: Step, xs: Tensors, state: Tensors, mask: Tensor | None, fixed: Tensors = ()
) -> tuple[Tensor, Tensors]:
    """Apply `step` to each position of xs [B, T, ..]: y [B, T, H], and the last state.

    `step` maps the inputs [B, ..] of a position, the state and `fixed` to y [B, H] and the next state. Where
    the mask [B, T] is False the state stays, and y is zero.
    """
    from torch._higher_order_ops.scan import scan_op

    real = torch.ones(xs[0].shape[:2], dtype=torch.bool, device=xs[0].device) if mask is None else mask
    inputs = [each.transpose(0, 1).contiguous() for each in (*xs, real)]
    count, read = len(state), len(inputs)

    def combine(*flat: Tensor) -> list[Tensor]:
        old, (*at, now) = flat[:count], flat[count : count + read]
        y, new = step(tuple(at), old, flat[count + read :])
        return [*where(now, new, old), y * now[:, None].to(y.dtype)]

    *last, ys = scan_op(combine, [each.clone() for each in state], inputs, fixed)
    return ys.transpose(0, 1), tuple(last)


class Stepping(nn.Module):
    """A cell's step as `forward`, so that it can be called with other tensors as its weights."""

    def __init__(self, cell: nn.Module) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """One step."""
        return self.cell.step(x, state)  # type: ignore[no-any-return]


def stepped(cell: nn.Module, x: Tensor, start: State, mask: Tensor | None) -> tuple[Tensor, State]:
    """A cell's step at each position of x [B, T, D]."""
    stepping = Stepping(cell)
    weights = {**dict(stepping.named_parameters()), **dict(stepping.named_buffers())}

    def step(at: Tensors, state: Tensors, fixed: Tensors) -> tuple[Tensor, Tensors]:
        given = dict(zip(weights, fixed, strict=True))
        y, new = torch.func.functional_call(stepping, given, (at[0], like(start, state)))
        return y, tuple(leaves(new))

    y, last = repeated(step, (x,), tuple(leaves(start)), mask, tuple(weights.values()))
    return y, like(start, last)


def layer_by_steps(cell: str, given: LayerInput) -> Result:
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


def layer_gradients(
    cell: str, mask: Tensor | None, given: tuple[Tensor | None, ...], grads: tuple[Tensor | None, ...]
) -> tuple[Tensor | None, ...]:
    """The gradients of a layer, rows in the kernel's order, as a graph for second derivatives."""
    return twin_gradients(lambda *tensors: layer_by_steps(cell, LayerInput(*tensors, mask)), given, grads)


def _step(
    cell: str, inputs: Tensor, h: Tensor, c: Tensor | None, weight: Tensor, extra: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """The next h and c, from a step's W x + b [B, G H]."""
    if cell.startswith("gru"):
        return _gru(cell, inputs, h, weight, extra), None
    if c is None:
        energy = inputs + linear(h, weight)
        return activate(energy, ACTIVATIONS[cell]) if extra is None else modrelu(energy, extra), None
    gates = (inputs + linear(h, weight)).chunk(3 if cell == "coupled" else 4, -1)
    if cell == "coupled":
        new = equations.coupled(*gates, c)
    elif extra is None:
        new = equations.lstm(*gates, c)
    else:
        (i, f, candidate, o), (p_i, p_f, p_o) = gates, extra
        new = equations.lstm(i + p_i * c, f + p_f * c, candidate, o, c, peep=lambda c: p_o * c)
    return new.hidden, new.cell


def _gru(cell: str, inputs: Tensor, h: Tensor, weight: Tensor, bias_n: Tensor | None) -> Tensor:
    size = h.shape[1]
    gates, candidate = inputs.split([2 * size, size], -1)
    weight_g, weight_n = weight.split([2 * size, size])

    def inner(r: Tensor) -> Tensor:
        return linear(r * h, weight_n) if cell == "gru_before" else r * linear(h, weight_n, bias_n)

    return equations.gru(gates + linear(h, weight_g), candidate, inner, h).hidden
