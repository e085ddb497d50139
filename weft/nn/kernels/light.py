"""Recurrences without a matrix over all steps: minGRU, minLSTM, SSRU, SRU, Mamba. Gates depend only on x.

native   gates and state in one pass of compiled code, float32 on the CPU
torch    gates for all steps at once, then one operation per step (`recurrence`), or a scan on a GPU (`scan`);
         SRU with peepholes runs step by step
steps    the plain loop, only if forced

What they share is c_t = a_t c_{t-1} + b_t, elementwise (`recur`). On a CPU a scan over logarithms took five
times as long as one operation per step. Ways are ordered by the work that they do, least first.

Mamba's selective scan, h_t = exp(dt_t A) h_{t-1} + dt_t u_t B_t, s_t = C_t h_t, runs in one pass of compiled
code that never writes h for all steps, or in the plain loop.
Read next: ../cells/mingru.py, ../cells/mamba.py; ../../native/light.cpp, ../../native/selective.cpp.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from weft import native
from weft.native import dense, jobs, pointer
from weft.native.jobs import LIGHT, Light, LightBack
from weft.nn.kernels import choice
from weft.nn.kernels.cells.compiled import ROWS
from weft.nn.kernels.choice import compiles, refused
from weft.nn.kernels.twin import Tensors, repeated, twin_gradients
from weft.probe import exporting, traced


def recurrence(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """c_1 .. c_T [B, T, H], from factors a and summands b [B, T, H], real or complex, and c_0 [B, H]."""
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
            return twin_gradients(sequence, (a, b, c), (grad,))
        # Reversed, the gradient is the same recurrence: g_t = dy_t + a_{t+1} g_{t+1}, conjugated if complex.
        sums = torch.empty_like(states[1:])
        every, factors = sums.unbind(0), a.conj().unbind(1)
        every[-1].copy_(grad[:, -1])
        for t in range(len(every) - 2, -1, -1):
            torch.addcmul(grad[:, t], factors[t + 1], every[t + 1], out=every[t])
        db = sums.transpose(0, 1)
        da = (sums * states[:-1].conj()).transpose(0, 1) if ctx.needs_input_grad[0] else None
        return da, db, factors[0] * every[0]


def recur(a: Tensor, b: Tensor, c: Tensor, mask: Tensor | None = None, *, loop: bool = False) -> Tensor:
    """c_1 .. c_T [B, T, H], computed in the way that suits the device; a, b [B, T, H], c_0 [B, H].

    Where the mask [B, T] is False, c does not change at all; with `loop` every step is a node of the graph.
    """
    if mask is not None:
        a, b = a.masked_fill(~mask[..., None], 1.0), b.masked_fill(~mask[..., None], 0.0)
    if exporting() and not loop:
        return repeated(_one, (a, b), (c,), None)[0]
    if not loop and a.device.type != "cpu":
        return scan(a, b, c)
    plain = loop or traced() or choice.forced("cells") == "steps"
    return sequence(a, b, c) if plain else recurrence(a, b, c)


def _one(at: Tensors, state: Tensors, _: Tensors) -> tuple[Tensor, Tensors]:
    a, b = at
    c = torch.addcmul(b, a, state[0])
    return c, (c,)


def sequence(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """One operation per step, the reference for `recurrence`."""
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


def log_odds(f: Tensor, i: Tensor) -> Tensor:
    """log(sigmoid(f) / sigmoid(i)), whose sigmoid is minLSTM's forget gate; right where both are 0."""
    return F.logsigmoid(f) - F.logsigmoid(i)


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
        keep, candidate, r = log_odds(first, rest[0]).sigmoid(), rest[1], None
    else:
        keep, candidate, r = rest[0].sigmoid(), first, rest[1].sigmoid()
    y = states = recur(keep, (1 - keep) * candidate, c, mask, loop=loop)
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
        y, (last,) = repeated(_peeping, (z, past), (c,), mask, (peep,))
        return y, last
    ys = []
    for t, at in enumerate(zip(z.unbind(1), past.unbind(1), strict=True)):
        y, (new,) = _peeping(at, (c,), (peep,))
        if mask is not None:
            real = mask[:, t, None]
            y, new = y.masked_fill(~real, 0.0), torch.where(real, new, c.to(new.dtype))
        c = new
        ys.append(y)
    return torch.stack(ys, 1), c


def _peeping(at: Tensors, state: Tensors, fixed: Tensors) -> tuple[Tensor, Tensors]:
    """One step of SRU with peepholes, from z and the highway's input."""
    (z, past), (c,), (peep,) = at, state, fixed
    candidate, f, r = z.chunk(3, -1)
    f, r = (f + peep[0] * c).sigmoid(), (r + peep[1] * c).sigmoid()
    new = f * c + (1 - f) * candidate
    return r * new + (1 - r) * past, (new,)


class _Light(torch.autograd.Function):
    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any,
        kind: str,
        training: bool,
        mask: Tensor | None,
        z: Tensor,
        c: Tensor,
        past: Tensor | None,
        peep: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        z, past = _dense(z), None if past is None else _dense(past)
        c, peep = c.contiguous(), None if peep is None else peep.contiguous()
        (rows, steps, _), size = z.shape, c.shape[1]
        alone = kind in ("mingru", "minlstm") and mask is None  # the states are the output
        states = z.new_empty(rows, steps if training or alone else 1, size)
        y = states if alone else z.new_empty(rows, steps, size)
        _bounds, job = _job(kind, z, c, past, peep, mask, states)
        job.y = None if alone else pointer(y)
        native.call("weft_light_forward", job)
        if training:
            ctx.save_for_backward(z, c, past, peep, states)
            ctx.kind, ctx.mask = kind, mask
        ctx.set_materialize_grads(False)
        return y, states[:, -1].clone()

    @staticmethod
    def backward(ctx: Any, dy: Tensor | None, dc: Tensor | None) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        z, c, past, peep, states = ctx.saved_tensors
        if torch.is_grad_enabled():  # for a second derivative
            twin = lambda *given: by_torch(ctx.kind, *given, ctx.mask, loop=True)  # noqa: E731
            return None, None, None, *twin_gradients(twin, (z, c, past, peep), (dy, dc))
        dy = None if dy is None else dy.contiguous()
        dc = torch.zeros_like(c) if dc is None else dc.clone(memory_format=torch.contiguous_format)
        dz = z.new_empty(z.shape)
        dpast = None if past is None else past.new_empty(past.shape)
        bounds, job = _job(ctx.kind, z, c, past, peep, ctx.mask, states)
        dpeep = None if peep is None else peep.new_zeros(len(bounds) - 1, *peep.shape)
        row, step = (0, 0) if dpast is None else dpast.stride()[:2]
        back = LightBack(
            job, job.slabs, dz.stride(0), dz.stride(1), row, step,
            pointer(dy), pointer(dc), pointer(dz), pointer(dpast), pointer(dpeep),
        )  # fmt: skip
        native.call("weft_light_backward", back)
        return None, None, None, dz, dc, dpast, None if dpeep is None else dpeep.sum(0)


def _job(
    kind: str,
    z: Tensor,
    c: Tensor,
    past: Tensor | None,
    peep: Tensor | None,
    mask: Tensor | None,
    states: Tensor,
) -> tuple[Tensor, Light]:
    """The bounds and the job for the compiled code; bounds and mask must outlive the call."""
    rows, steps = z.shape[:2]
    slabs = native.slabs(rows // ROWS)
    bounds = torch.arange(slabs + 1) * rows // slabs
    mask = None if mask is None else mask.contiguous()
    job = Light(
        LIGHT[kind], steps, rows, c.shape[1], slabs, z.stride(0), z.stride(1),
        *((0, 0) if past is None else past.stride()[:2]),
        states.stride(0), states.stride(1) if states.shape[1] == steps else 0,
        pointer(bounds), pointer(z), pointer(past), pointer(peep), pointer(mask), pointer(c), pointer(states),
    )  # fmt: skip
    job.kept = mask  # type: ignore[attr-defined]
    return bounds, job


def _dense(tensor: Tensor) -> Tensor:
    """A tensor whose features are contiguous and whose positions do not overlap; copied if necessary."""
    dense = tensor.stride(2) == 1 and min(tensor.stride()[:2]) >= tensor.shape[2]
    return tensor if dense else tensor.contiguous()


KINDS = tuple(LIGHT)


def light(
    kind: str,
    z: Tensor,
    c: Tensor,
    *,
    past: Tensor | None = None,
    peep: Tensor | None = None,
    mask: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Compute a layer: y [B, T, H], c [B, H].

    Args:
        z: [B, T, G H], W x + b: u, candidate (mingru); f, i, candidate (minlstm); f, candidate (ssru);
            candidate, f, r (sru).
        c: [B, H], the initial state.
        past: [B, T, H], the highway input of SRU.
        mask: [B, T] bool; where False, the state is unchanged and y is zero.
    """
    asked = choice.forced("cells")
    given = kind, z, c, past, peep, mask
    if asked == "narrow" and not traced():
        raise refused(kind, asked, "it multiplies no matrices")
    if not compiles("light", *given[1:-1], name=kind):
        return by_torch(*given, loop=asked == "steps" and not traced())
    wide = [None if t is None else t.float() for t in (z, c, past, peep)]
    wanted = torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in wide)
    return _Light.apply(kind, wanted, mask, *wide)  # type: ignore[no-any-return]


CHUNK = 16
"""Steps of a selective scan between the states that the backward pass starts from; as in selective.cpp."""
MOST = 64
"""Maximum number of states of a feature in compiled code."""

Scan = tuple[Tensor, Tensor]


def selective(u: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, h: Tensor) -> Scan:
    """All steps: s [B, T, E], and the last h.

    Args:
        u, dt: [B, T, E], inputs and step sizes; where dt is 0, h stays.
        a: [N, E], at most 0.
        b, c: [B, T, N], what enters and what is read.
        h: [B, N, E], the initial state.
    """
    given = u, dt, a, b, c, h
    limit = f"compiled code has at most {MOST} states a feature, not {len(a)}" if len(a) > MOST else ""
    if not compiles("selective", *given, limit=limit):
        return scan_by_steps(*given)
    wide = [each.float() for each in given]
    wanted = torch.is_grad_enabled() and any(each.requires_grad for each in wide)
    y, last = _Selective.apply(wanted, *wide)
    return y, last


def scan_by_steps(u: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, h: Tensor) -> Scan:
    """`selective` with a few nodes of the graph for every step."""
    ys = []
    for at in zip(u.unbind(1), dt.unbind(1), b.unbind(1), c.unbind(1), strict=True):
        y, h = selective_step(at[0], at[1], a, at[2], at[3], h)
        ys.append(y)
    return torch.stack(ys, 1), h


def selective_step(u: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, h: Tensor) -> Scan:
    """One step: u and dt [B, E], b and c [B, N], h [B, N, E] to s [B, E] and the next h."""
    h = torch.exp(dt[:, None] * a) * h + (dt * u)[:, None] * b[:, :, None]
    return (c[:, :, None] * h).sum(1), h


class _Selective(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, training: bool, *given: Tensor) -> Scan:  # type: ignore[override]
        u, dt, a, b, c, h = given
        u, dt, b, c = map(dense, (u, dt, b, c))
        a, last = a.contiguous(), h.clone(memory_format=torch.contiguous_format)
        rows, steps, size = u.shape
        kept = h.new_empty(rows, -(-steps // CHUNK), *a.shape) if training else None
        y = u.new_empty(rows, steps, size)
        bounds, job = _scan_job(u, dt, a, b, c, last, kept, y)
        native.call("weft_selective_forward", job)
        del bounds
        if training:
            ctx.save_for_backward(u, dt, a, b, c, h, kept)
        ctx.set_materialize_grads(False)
        return y, last

    @staticmethod
    def backward(ctx: Any, dy: Tensor | None, dlast: Tensor | None) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        *given, kept = ctx.saved_tensors
        if torch.is_grad_enabled():  # for a second derivative
            return None, *twin_gradients(scan_by_steps, given, (dy, dlast))
        u, dt, a, b, c, h = given
        dy = torch.zeros_like(u, memory_format=torch.contiguous_format) if dy is None else dy.contiguous()
        dh = h.new_zeros(h.shape) if dlast is None else dlast.clone(memory_format=torch.contiguous_format)
        bounds, job = _scan_job(u, dt, a, b, c, h, kept, None)
        du, ddt = u.new_empty(u.shape), u.new_empty(u.shape)
        db, dc = b.new_empty(b.shape), b.new_empty(b.shape)
        da = a.new_zeros(len(bounds) - 1, *a.shape)
        back = jobs.SelectiveBack(job, job.slabs, *map(pointer, (dy, dh, du, ddt, db, dc, da)))
        native.call("weft_selective_backward", back)
        return None, du, ddt, da.sum(0), db, dc, dh


def _scan_job(
    u: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, h: Tensor, kept: Tensor | None, y: Tensor | None
) -> tuple[Tensor, jobs.Selective]:
    """The bounds and the job for the compiled code; the bounds must outlive the call."""
    rows, steps, size = u.shape
    slabs = native.slabs(rows)
    bounds = torch.arange(slabs + 1) * rows // slabs
    strides = [number for each in (u, dt, b, c) for number in each.stride()[:2]]
    tensors = (bounds, u, dt, a, b, c, h, kept, y)
    return bounds, jobs.Selective(steps, rows, size, len(a), slabs, *strides, *map(pointer, tensors))
