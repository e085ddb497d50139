"""c_t = a_t c_{t-1} + b_t over all steps, elementwise, one operation per step forward and backward.

The remaining products of the backward pass, da_t = dc_t c_{t-1}, are one operation over all steps. The plain
twin is scan.py's `sequence`, whose graph has a node for every step. Read next: ../scan.py.
"""

from typing import Any

import torch
from torch import Tensor


def recurrence(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """Run the recurrence.

    Args:
        a, b: [B, T, H], factors and summands, real or complex.
        c: [B, H], c_0.

    Returns:
        c_1 .. c_T, [B, T, H].

    Example:
        >>> import torch
        >>> half = torch.full((1, 3, 1), 0.5)
        >>> recurrence(half, half, torch.zeros(1, 1)).flatten().tolist()
        [0.5, 0.75, 0.875]
    """
    wide = torch.promote_types(a.dtype, c.dtype)
    return _Recurrence.apply(a.to(wide), b.to(wide), c.to(wide))


class _Recurrence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, c: Tensor) -> Tensor:  # type: ignore[override]
        states = c.new_empty(a.shape[1] + 1, *c.shape)
        states[0] = c
        every = states.unbind(0)
        with torch.no_grad():
            for t, (a_t, b_t) in enumerate(zip(a.unbind(1), b.unbind(1), strict=True)):
                torch.addcmul(b_t, a_t, every[t], out=every[t + 1])
        ctx.save_for_backward(a, b, c, states)
        return states[1:].transpose(0, 1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        a, b, c, states = ctx.saved_tensors
        if torch.is_grad_enabled():  # for a second derivative
            return _gradients_as_graph(a, b, c, grad)
        # Reversed, the gradient is the same recurrence: g_t = dy_t + a_{t+1} g_{t+1}, conjugated if complex.
        sums = torch.empty_like(states[1:])
        every, factors = sums.unbind(0), a.conj().unbind(1)
        every[-1].copy_(grad[:, -1])
        for t in range(len(every) - 2, -1, -1):
            torch.addcmul(grad[:, t], factors[t + 1], every[t + 1], out=every[t])
        db = sums.transpose(0, 1)
        da = (sums * states[:-1].conj()).transpose(0, 1) if ctx.needs_input_grad[0] else None
        return da, db, factors[0] * every[0]


def _gradients_as_graph(a: Tensor, b: Tensor, c: Tensor, grad: Tensor) -> tuple[Tensor | None, ...]:
    given = (a, b, c)
    wanted = [tensor for tensor in given if tensor.requires_grad]
    with torch.enable_grad():
        ys, state = [], c
        for a_t, b_t in zip(a.unbind(1), b.unbind(1), strict=True):
            state = torch.addcmul(b_t, a_t, state)
            ys.append(state)
        found = iter(torch.autograd.grad(torch.stack(ys, 1), wanted, grad, create_graph=True))
    return tuple(next(found) if tensor.requires_grad else None for tensor in given)
