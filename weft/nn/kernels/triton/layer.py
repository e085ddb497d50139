"""Recurrent layers on a GPU for the cells that cuDNN does not have: one product and one kernel per step.

torch computes the products (cuBLAS), in autocast's dtype under autocast. Everything between two products is
one kernel. The caller computes the input term z = W_x x + b for all steps, with its own gradients. The plain
twin is the loop over a cell's `step`. Read next: steps.py, gru.py.
"""

from typing import Any

import torch
from torch import Tensor

from weft.nn.kernels.cells.compiled import Sorted, sort
from weft.nn.kernels.cells.form import Norms, Recurrence
from weft.nn.kernels.cells.operations import MatrixProducts
from weft.nn.kernels.cells.steps import loop
from weft.nn.kernels.triton import recurrences
from weft.nn.kernels.twin import Tensors, twin_gradients


def run(
    form: Recurrence,
    z: Tensor,
    h: Tensor,
    c: Tensor | None,
    weight_h: Tensor,
    extra: Tensor | None = None,
    norms: Norms | None = None,
    mask: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Compute a layer.

    Args:
        z: [B, T, G H], W_x x + b (for modrelu without b).
        h, c: [B, H]; c only for the LSTM.
        weight_h: [G H, H].
        extra: gru [H], the candidate's inner bias; LSTM with peepholes [3, H]; modrelu [H], its b.
        mask: [B, T] bool, real positions first, or None.

    Returns:
        y [B, T, H] (zero at padding), h [B, H], c [B, H] or None.

    Example:
        run(Recurrence("gru_before"), linear(x, weight_x, bias), h, None, weight_h)
    """
    rows = sort(z, mask)
    device = z.device.type
    low = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None
    wide = torch.promote_types(weight_h.dtype, torch.float32)
    if wide != weight_h.dtype:
        low = weight_h.dtype
    given = (
        None if t is None else rows.take(t).to(wide)
        for t in (z, h, c)  # type: ignore[union-attr]
    )
    gains = (None, None) if norms is None else norms
    more = (None if t is None else t.to(wide) for t in (extra, *gains))
    y, h, *rest = _Layer.apply(form, rows, low, *given, weight_h.to(wide), *more)
    back = rows.give_back
    return back(y.transpose(0, 1)), back(h), back(rest[0]) if rest else None  # type: ignore[return-value]


class _Layer(torch.autograd.Function):
    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, form: Recurrence, rows: Sorted, low: Any, *given: Tensor | None
    ) -> tuple[Tensor, ...]:
        z, _, c, weight = given[:4]
        assert z is not None and weight is not None
        p = MatrixProducts(rows, low, weight.dtype)
        with torch.autocast(z.device.type, enabled=False):
            kept = recurrences.KINDS[form.kind].forward(p, form, given)
        ctx.save_for_backward(*given, *kept)
        ctx.form, ctx.p = form, p
        hs, cs = kept[:2]
        lasts = (p.last(hs),) if c is None else (p.last(hs), p.last(cs))
        return hs[1:], *lasts

    @staticmethod
    def backward(  # type: ignore[override]
        ctx: Any, dy: Tensor, dh: Tensor, dc: Tensor | None = None
    ) -> tuple[Any, ...]:
        saved = ctx.saved_tensors  # read only once: under recomputation they can be unpacked once
        given, kept = saved[:7], saved[7:]
        if torch.is_grad_enabled():  # for a second derivative

            def twin(z: Tensor, h: Tensor, c: Tensor | None, weight: Tensor, *rest: Tensor | None) -> Tensors:
                extra, gain, other = rest
                norms = None if gain is None else Norms(gain, other)
                return loop(ctx.form, z, h, c, weight, extra, norms, ctx.p.rows.mask())

            return None, None, None, *twin_gradients(twin, given, (dy.transpose(0, 1), dh, dc))
        with torch.autocast(dy.device.type, enabled=False):
            grads = recurrences.KINDS[ctx.form.kind].backward(
                ctx.p, ctx.form, given, kept, dy.contiguous(), dh.clone(), None if dc is None else dc.clone()
            )
        return None, None, None, *grads
