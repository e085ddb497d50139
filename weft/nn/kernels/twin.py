"""The plain twins of kernels: their gradients as a graph, and recurrences as a scan in an exported graph.

The kernels' own backward passes have no graph. If a caller wants one (`create_graph`), the twin is run again
and differentiated by autograd. While torch exports a graph, a recurrence is a scan over the steps, as a loop
in Python would fix their number; cells that ONNX has an operator for are one node instead (cells/layer.py).
Read next: cells/compiled.py, light.py, which come here.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

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
