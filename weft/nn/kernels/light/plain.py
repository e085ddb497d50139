"""Recurrences without a matrix in torch operations: the plain twin of compiled.py and triton.py.

It can be differentiated any number of times. Read next: ../scan.py.
"""

import torch
from torch import Tensor

from weft.nn.kernels import scan
from weft.nn.kernels.exported import Tensors, repeated
from weft.shapes import exporting


def by_torch(
    kind: str,
    z: Tensor,
    c: Tensor,
    past: Tensor | None,
    peep: Tensor | None,
    mask: Tensor | None,
    *,
    loop: bool = False,
) -> tuple[Tensor, Tensor]:
    """`light` in torch operations; with `loop` every step is a node of the graph."""
    if peep is not None:
        return _with_peepholes(z, c, past, peep, mask)
    first, *rest = z.split(c.shape[1], -1)
    if kind == "mingru" or kind == "ssru":
        keep, candidate, r = first.sigmoid(), rest[0], None
    elif kind == "minlstm":
        f, i = first.sigmoid(), rest[0].sigmoid()
        keep, candidate, r = f / (f + i), rest[1], None
    else:
        keep, candidate, r = rest[0].sigmoid(), first, rest[1].sigmoid()
    run = scan.looped if loop else scan.recur
    states = run(keep, (1 - keep) * candidate, c, mask)
    y = states
    if kind == "ssru":
        y = torch.relu(states)
    elif r is not None and past is not None:
        y = r * states + (1 - r) * past
    return y if mask is None else y.masked_fill(~mask[..., None], 0.0), states[:, -1]


def _with_peepholes(
    z: Tensor, c: Tensor, past: Tensor | None, peep: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor]:
    assert past is not None
    if exporting():
        return _exported(z, c, past, peep, mask)
    ys = []
    for t, (step, carried) in enumerate(zip(z.unbind(1), past.unbind(1), strict=True)):
        y, new = _peeping(step, carried, c, peep)
        if mask is not None:
            real = mask[:, t, None]
            y, new = y.masked_fill(~real, 0.0), torch.where(real, new, c.to(new.dtype))
        c = new
        ys.append(y)
    return torch.stack(ys, 1), c


def _peeping(z: Tensor, past: Tensor, c: Tensor, peep: Tensor) -> tuple[Tensor, Tensor]:
    candidate, f, r = z.chunk(3, -1)
    f, r = (f + peep[0] * c).sigmoid(), (r + peep[1] * c).sigmoid()
    new = f * c + (1 - f) * candidate
    return r * new + (1 - r) * past, new


def _exported(z: Tensor, c: Tensor, past: Tensor, peep: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    def step(at: Tensors, state: Tensors, fixed: Tensors) -> tuple[Tensor, Tensors]:
        y, new = _peeping(*at, *state, *fixed)
        return y, (new,)

    y, (last,) = repeated(step, (z, past), (c,), mask, (peep,))
    return y, last


def gradients_as_graph(
    kind: str, given: tuple[Tensor | None, ...], mask: Tensor | None, dy: Tensor | None, dc: Tensor | None
) -> tuple[Tensor | None, ...]:
    """The gradients of z, c, past and peep as a graph, for second derivatives."""
    wanted = [t for t in given if t is not None and t.requires_grad]
    with torch.enable_grad():
        outs = by_torch(kind, *given, mask, loop=True)  # type: ignore[arg-type]
        pairs = [(out, grad) for out, grad in zip(outs, (dy, dc), strict=True) if grad is not None]
        ends, by = zip(*pairs, strict=True)
        found = iter(torch.autograd.grad(ends, wanted, by, create_graph=True, allow_unused=True))
    return tuple(next(found) if t is not None and t.requires_grad else None for t in given)
