"""c_t = a_t c_{t-1} + b_t over all steps, elementwise, the common part of minGRU, minLSTM, SSRU and SRU.

`recurrence` runs step by step, with one operation each; on a CPU a scan over logarithms took five times as
long. `scan`, for GPUs, combines neighbours in ceil(log2 T) operations. Read next: cells/mingru.py.
"""

import torch
from torch import Tensor

from weft.nn.kernels import choice
from weft.nn.kernels.choice import Way, pick
from weft.nn.kernels.exported import Tensors, repeated
from weft.nn.kernels.light.recurrence import recurrence
from weft.shapes import exporting


def recur(a: Tensor, b: Tensor, c: Tensor, mask: Tensor | None = None) -> Tensor:
    """c_1 .. c_T, computed in the way that suits the device.

    Args:
        a, b: [B, T, H].
        c: [B, H], c_0.
        mask: [B, T] bool; where False c does not change at all.

    Returns:
        [B, T, H].
    """
    if mask is not None:
        a, b = a.masked_fill(~mask[..., None], 1.0), b.masked_fill(~mask[..., None], 0.0)
    if exporting():
        return repeated(_one, (a, b), (c,), None)[0]
    way = "steps" if a.device.type == "cpu" and choice.forced("cells") == "steps" else "auto"
    return pick("scan", WAYS, (a,), asked=way).run(a, b, c)


def _one(at: Tensors, state: Tensors, _: Tensors) -> tuple[Tensor, Tensors]:
    a, b = at
    c = torch.addcmul(b, a, state[0])
    return c, (c,)


def looped(a: Tensor, b: Tensor, c: Tensor, mask: Tensor | None = None) -> Tensor:
    """`recur` with one graph node per step."""
    if mask is not None:
        a, b = a.masked_fill(~mask[..., None], 1.0), b.masked_fill(~mask[..., None], 0.0)
    return sequence(a, b, c)


def sequence(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """One operation per step, the reference for kernels/light/recurrence.py."""
    cs = []
    for a_t, b_t in zip(a.unbind(1), b.unbind(1), strict=True):
        c = torch.addcmul(b_t, a_t, c)
        cs.append(c)
    return torch.stack(cs, 1)


def scan(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """Recursive doubling: after k rounds a_t, b_t map c_{t - 2^k} to c_t. Works for any sign.

    Source: Hillis & Steele 1986, "Data parallel algorithms".

    Example:
        >>> import torch
        >>> half = torch.full((1, 3, 1), 0.5)
        >>> scan(half, half, torch.zeros(1, 1)).flatten().tolist()
        [0.5, 0.75, 0.875]
    """
    b = torch.cat([(b[:, 0] + a[:, 0] * c)[:, None], b[:, 1:]], 1)
    reach, steps = 1, a.shape[1]
    while reach < steps:
        b = torch.cat([b[:, :reach], b[:, reach:] + a[:, reach:] * b[:, :-reach]], 1)
        a = torch.cat([a[:, :reach], a[:, reach:] * a[:, :-reach]], 1)
        reach *= 2
    return b


WAYS = (
    Way("scan", scan, lambda a: "it is slower on the CPU" if a.device.type == "cpu" else "", plain=True),
    Way("recurrence", recurrence),
    Way("steps", sequence, plain=True),
)
