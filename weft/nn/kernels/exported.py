"""Recurrences while torch exports a graph: an operator of ONNX if there is one, else a scan over the steps.

A loop in Python would fix the number of steps of the graph. Read next: cells/layer.py and light.py, which
come here; ../../export/graphs.py, which writes the operator.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from weft.nn.kernels.cells.form import LayerInput, Result
from weft.tree import State, leaves, like, where

Tensors = tuple[Tensor, ...]
Step = Callable[[Tensors, Tensors, Tensors], tuple[Tensor, Tensors]]

OPERATORS = ("lstm", "peephole", "coupled", "gru", "gru_before", "elman", "relu")
"""Cells, by their names in the kernels, that ONNX has an operator for."""


def repeated(
    step: Step, xs: Tensors, state: Tensors, mask: Tensor | None, fixed: Tensors = ()
) -> tuple[Tensor, Tensors]:
    """Apply `step` to each position.

    Args:
        step: maps the inputs [B, ..] of a position, the state and `fixed` to y [B, H] and the next state.
        xs: each [B, T, ..].
        state: the initial state, each [B, ..].
        mask: [B, T] bool; where False the state stays, and y is zero.

    Returns:
        y [B, T, H], and the last state.
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


def layer(cell: str, given: LayerInput) -> Result:
    """A layer of one of OPERATORS."""
    x, h, c, weight_x, weight_h, bias, extra, mask = given
    real = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device) if mask is None else mask
    size = weight_h.shape[1]
    last_c = h if c is None else c
    inner = torch.zeros_like(bias)
    if cell == "gru" and extra is not None:
        inner = torch.cat([inner[: 2 * size], extra])
    peep = extra if cell == "peephole" and extra is not None else bias.new_zeros(3, size)
    y, h, last_c = recurrent_layer(cell, x, h, last_c, weight_x, weight_h, bias, inner, peep, real.sum(1))
    return y, h, None if c is None else last_c


@torch.library.custom_op("weft::recurrent_layer", mutates_args=())
def recurrent_layer(
    cell: str,
    x: Tensor,
    h: Tensor,
    c: Tensor,
    weight_x: Tensor,
    weight_h: Tensor,
    bias: Tensor,
    inner: Tensor,
    peep: Tensor,
    lengths: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """One node of the graph; export/graphs.py translates it.

    Args:
        x: [B, T, D]; h, c: [B, H].
        weight_x: [G H, D]; weight_h: [G H, H]; bias, inner: [G H], the biases of the two products.
        lengths: [B] int64, number of real positions, which come first.

    Returns:
        y [B, T, H], h, c [B, H].
    """
    raise NotImplementedError("exists in exported graphs only")


@recurrent_layer.register_fake
def _(
    cell: str,
    x: Tensor,
    h: Tensor,
    c: Tensor,
    weight_x: Tensor,
    weight_h: Tensor,
    bias: Tensor,
    inner: Tensor,
    peep: Tensor,
    lengths: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    return x.new_empty(x.shape[0], x.shape[1], h.shape[1]), torch.empty_like(h), torch.empty_like(c)
