"""Mamba's selective scan over all steps: h_t = exp(dt_t A) h_{t-1} + dt_t u_t B_t, s_t = C_t h_t.

Read next: ../../cells/mamba.py.
"""

import torch
from torch import Tensor


def selective(u: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """All steps.

    Args:
        u, dt: [B, T, E], inputs and step sizes; where dt is 0, h stays.
        a: [N, E], negative.
        b, c: [B, T, N], what enters and what is read.
        h: [B, N, E], the initial state.

    Returns:
        s [B, T, E], and the last h.

    Example:
        >>> import torch
        >>> one = torch.ones(1, 2, 1)
        >>> s, _ = selective(one, one, torch.full((1, 1), -0.6931472), one, one, torch.zeros(1, 1, 1))
        >>> [round(value, 4) for value in s.flatten().tolist()]
        [1.0, 1.5]
    """
    return by_steps(u, dt, a, b, c, h)


def by_steps(u: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """`selective` with a few nodes of the graph for every step."""
    ys = []
    for at in zip(u.unbind(1), dt.unbind(1), b.unbind(1), c.unbind(1), strict=True):
        y, h = selective_step(at[0], at[1], a, at[2], at[3], h)
        ys.append(y)
    return torch.stack(ys, 1), h


def selective_step(
    u: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, h: Tensor
) -> tuple[Tensor, Tensor]:
    """One step: u and dt [B, E], b and c [B, N], h [B, N, E] to s [B, E] and the next h."""
    h = torch.exp(dt[:, None] * a) * h + (dt * u)[:, None] * b[:, :, None]
    return (c[:, :, None] * h).sum(1), h
