"""Recurrences without a matrix over all steps: minGRU, minLSTM, SSRU, SRU. Gates depend only on x.

native   gates and state in one pass of compiled code, float32 on the CPU        compiled.py
triton   the same in one kernel, on a GPU                                        triton.py
torch    gates for all steps at once, then one operation per step (recurrence.py), or a scan on a GPU without
         Triton (../scan.py); SRU with peepholes runs step by step
steps    the plain loop, only if forced

Nothing is measured: the ways are ordered by the work that they do, least first.
"""

from functools import partial

import torch
from torch import Tensor, nn

from weft import native
from weft.nn.kernels import choice
from weft.nn.kernels.cells import triton
from weft.nn.kernels.choice import Way, pick
from weft.nn.kernels.light import compiled
from weft.nn.kernels.light.plain import by_torch

KINDS = tuple(native.LIGHT)

Result = tuple[Tensor, Tensor]


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
    """Compute a layer.

    Args:
        kind: one of KINDS.
        z: [B, T, G H], W x + b: u, candidate (mingru); f, i, candidate (minlstm); f, candidate (ssru);
            candidate, f, r (sru).
        c: [B, H], the initial state.
        past: [B, T, H], the highway input of SRU.
        peep: [2, H], SRU's v of f and r, or None.
        mask: [B, T] bool; where False, the state is unchanged and y is zero.
        backend: forces a way; None uses the switch (choice.py).

    Returns:
        y [B, T, H], c [B, H].

    Raises:
        ConfigError: the forced way cannot compute this layer.

    Example:
        >>> import torch
        >>> light("mingru", torch.tensor([[[0.0, 1.0], [0.0, 1.0]]]), torch.zeros(1, 1))[0].flatten().tolist()
        [0.5, 0.75]
    """
    asked = choice.check("backend", backend or choice.forced("cells"), "cells")
    given = kind, z, c, past, peep, mask
    ways = _ways(asked, on_gpu=z.device.type == "cuda")
    return pick(kind, ways, given, asked=ASKED.get(asked, asked)).run(*given)


ASKED = {"tiles": "native", "torch": "auto", "operation": "torch"}
"""The ways that values of the switch "cells" mean here; "torch" allows every way that is not compiled."""


def _ways(asked: str, *, on_gpu: bool) -> list[Way[Result]]:
    ways = [TORCH, STEPS]
    if on_gpu or asked == "triton":
        ways.insert(0, TRITON)
    if asked in ("auto", "native", "tiles"):
        ways.insert(0, NATIVE)
    return ways


def _native(
    kind: str, z: Tensor, c: Tensor, past: Tensor | None, peep: Tensor | None, mask: Tensor | None
) -> Result:
    wide = [None if t is None else t.float() for t in (z, c, past, peep)]
    return compiled.run(kind, *wide, mask)  # type: ignore[arg-type]


def _why_not_native(_: str, *tensors: Tensor | None) -> str:
    given = [tensor for tensor in tensors[:-1] if tensor is not None]
    if native.loaded("light").library is None:
        return native.loaded("light").reason
    autocast = torch.is_autocast_enabled("cpu")  # only the product uses its dtype, as in the other cells
    low = (torch.bfloat16, torch.float16) if autocast else ()
    if any(t.device.type != "cpu" or t.dtype not in (torch.float32, *low) for t in given):
        return (
            f"the compiled cells compute in float32 on the CPU, not in {given[0].dtype} on {given[0].device}"
        )
    plain = all(type(t) in (Tensor, nn.Parameter) and t.numel() for t in given)
    return "" if plain else "the compiled cells take plain tensors that are not empty"


def _triton(
    kind: str, z: Tensor, c: Tensor, past: Tensor | None, peep: Tensor | None, mask: Tensor | None
) -> Result:
    from weft.nn.kernels.light.triton import run

    return run(kind, z, c, past, peep, mask)


def _why_not_triton(_: str, z: Tensor, *__: Tensor | None) -> str:
    return triton.why_not(z.device)


NATIVE = Way("native", _native, _why_not_native)
TRITON = Way("triton", _triton, _why_not_triton)
TORCH = Way("torch", by_torch, plain=True)
STEPS = Way("steps", partial(by_torch, loop=True), plain=True)
