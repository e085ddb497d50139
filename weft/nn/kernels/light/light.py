"""Recurrences without a matrix over all steps: minGRU, minLSTM, SSRU, SRU (C10), whose gates read x alone.

native   gates and state in one pass of compiled code, float32 on the CPU        compiled.py
triton   the same in one kernel, on a GPU                                        triton.py
torch    gates for all steps at once, then one operation a step (recurrence.py), or a scan on a GPU without
         Triton (../scan.py); SRU with peepholes step by step

Nothing is measured: the first that can run does the least. The plain twin is the loop over a cell's `step`.
"""

import torch
from torch import Tensor, nn

from weft import native
from weft.errors import ConfigError
from weft.nn import scan
from weft.nn.kernels import choice
from weft.nn.kernels.cells import triton

KINDS = tuple(native.LIGHT)


def light(
    kind: str,
    z: Tensor,
    c: Tensor,
    *,
    past: Tensor | None = None,
    peep: Tensor | None = None,
    mask: Tensor | None = None,
    backend: choice.Cells | None = None,
) -> tuple[Tensor, Tensor]:
    """A layer.

    Args:
        kind: one of KINDS.
        z: [B, T, G H], W x + b: u, candidate (mingru); f, i, candidate (minlstm); f, candidate (ssru);
            candidate, f, r (sru).
        c: [B, H], the state before.
        past: [B, T, H], what SRU's highway carries.
        peep: [2, H], SRU's v of f and r, or None.
        mask: [B, T] bool; where False the state is held and y is zero.
        backend: forces a way (choice.py); None as `choice.use` says.

    Returns:
        y [B, T, H], c [B, H].

    Raises:
        ConfigError: the way that is forced cannot compute this.

    Example:
        >>> import torch
        >>> light("mingru", torch.tensor([[[0.0, 1.0], [0.0, 1.0]]]), torch.zeros(1, 1))[0].flatten().tolist()
        [0.5, 0.75]
    """
    asked = choice.check("backend", backend or choice.forced("cells"), "cells")
    given = [t for t in (z, c, past, peep) if t is not None]
    if asked in choice.COMPILED:
        reason = suits_native(given)
        if not reason:
            from weft.nn.kernels.light import compiled as compiled_light

            wide = [None if t is None else t.float() for t in (z, c, past, peep)]
            return compiled_light.run(kind, *wide, mask)  # type: ignore[arg-type]
        if asked != "auto":
            raise ConfigError(f"{kind}: cannot use {asked}: {reason}; force torch instead")
    if asked == "triton" or (asked in ("auto", "torch") and z.device.type == "cuda"):
        reason = "it cannot be traced" if choice.traced() else triton.why_not(z.device)
        if not reason:
            from weft.nn.kernels.light.triton import run

            return run(kind, z, c, past, peep, mask)
        if asked == "triton":
            raise ConfigError(f"{kind}: cannot use triton: {reason}; force torch instead")
    return by_torch(kind, z, c, past, peep, mask, loop=asked == "steps")


def suits_native(given: list[Tensor]) -> str:
    """Why the compiled code cannot compute this; "" if it can."""
    if native.loaded("light").library is None:
        return native.loaded("light").reason
    autocast = torch.is_autocast_enabled("cpu")  # the product alone takes its dtype, as in the other cells
    low = (torch.bfloat16, torch.float16) if autocast else ()
    if any(t.device.type != "cpu" or t.dtype not in (torch.float32, *low) for t in given):
        return (
            f"the compiled cells compute in float32 on the CPU, not in {given[0].dtype} on {given[0].device}"
        )
    if any(type(t) not in (Tensor, nn.Parameter) or not t.numel() for t in given):
        return "the compiled cells take plain tensors that are not empty"
    return "they cannot be traced" if choice.traced() else ""


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
    """`light` by torch's operations; with `loop` every step is a node of the graph."""
    if peep is not None:
        return _peeping(z, c, past, peep, mask)
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


def _peeping(
    z: Tensor, c: Tensor, past: Tensor | None, peep: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor]:
    assert past is not None
    ys = []
    for t, (step, carried) in enumerate(zip(z.unbind(1), past.unbind(1), strict=True)):
        candidate, f, r = step.chunk(3, -1)
        f, r = (f + peep[0] * c).sigmoid(), (r + peep[1] * c).sigmoid()
        new = f * c + (1 - f) * candidate
        y = r * new + (1 - r) * carried
        if mask is not None:
            real = mask[:, t, None]
            y, new = y.masked_fill(~real, 0.0), torch.where(real, new, c.to(new.dtype))
        c = new
        ys.append(y)
    return torch.stack(ys, 1), c
