"""Recurrent layers in compiled code on the CPU. Read next: ../../../native/cells.cpp.

Internally the time axis is first, [T, B, ..]. Rows are sorted by length and dealt to the threads, so that
padding is skipped and no thread waits for another. The plain twin is the loop over a cell's `step`. Weights
are packed as the kind of products reads them:

native    panels of a few registers of units, all inputs in turn
narrow    the same in bfloat16, two inputs in a word
tiles     split into three parts for the processor's tiles (AMX)
plain     not packed, for few rows and steps
"""

from collections.abc import Callable, Sequence
from ctypes import memmove
from functools import lru_cache, partial
from typing import Any, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from weft import native
from weft.native import pointer
from weft.native.jobs import CELLS, GATES, Backward, Forward
from weft.nn.kernels.equations import LayerInput, Result
from weft.nn.kernels.linear import (
    Products,
    Shared,
    linear,
    room_arguments,
    shared,
    tiled_panel,
    tiled_room,
    weight_gradient,
    weight_sums,
)
from weft.nn.kernels.twin import layer_gradients


class Sorted(NamedTuple):
    """Rows in the order of a kernel.

    bounds: [K + 1], slab k holds rows bounds[k] to bounds[k + 1].
    active: [K, T], number of unfinished rows of the slab at step t.
    order: [B], the original index of each row; None if the order is unchanged.
    lengths: [B] in the kernel's order; None if no row is shorter than T.
    """

    bounds: Tensor
    active: Tensor
    order: Tensor | None
    lengths: Tensor | None

    def take(self, tensor: Tensor | None) -> Tensor | None:
        """[B, ..] in the kernel's order."""
        # index_select: its gradient adds whole rows, that of tensor[order] adds number by number
        return tensor if tensor is None or self.order is None else tensor.index_select(0, self.order)

    def give_back(self, tensor: Tensor | None) -> Tensor | None:
        """[B, ..] in the original order."""
        if tensor is None or self.order is None:
            return tensor
        back = torch.empty_like(self.order)
        back[self.order] = torch.arange(len(back), device=back.device)
        return tensor.index_select(0, back)

    def mask(self) -> Tensor | None:
        """[B, T] bool in the kernel's order, True = real; None if no row is shorter than T."""
        if self.lengths is None:
            return None
        return torch.arange(self.active.shape[1], device=self.lengths.device) < self.lengths[:, None]

    def real(self) -> Tensor | None:
        """Indices of the real positions in [T * B]; None if all are real."""
        if self.lengths is None:
            return None
        steps = torch.arange(self.active.shape[1], device=self.lengths.device)
        return (steps[:, None] < self.lengths).flatten().nonzero()[:, 0]


def sort(x: Tensor, mask: Tensor | None, slabs: int = 1) -> Sorted:
    """Sort rows by length, longest first, and deal them to the slabs so that each gets all lengths."""
    rows, steps = x.shape[:2]
    whole = (_kept_whole if type(x) is Tensor else _whole)(rows, steps, slabs)
    lengths = None if mask is None else mask.sum(1)
    if lengths is None or bool((lengths == steps).all()):
        return whole
    bounds, sizes = whole.bounds, whole.bounds.diff().tolist()
    order: Tensor | None = None
    if slabs > 1 or bool((lengths[1:] > lengths[:-1]).any()):  # packed sequences are already sorted
        falling = lengths.argsort(descending=True, stable=True)
        order = torch.cat([falling[slab::slabs] for slab in range(slabs)])
        lengths = lengths[order]
    at = torch.arange(steps, device=lengths.device)
    active = torch.stack([(part[:, None] > at).sum(0) for part in lengths.split(sizes)])
    return Sorted(bounds, active, order, lengths)


def _whole(rows: int, steps: int, slabs: int) -> Sorted:
    """The plan of rows without padding; its tensors are only read."""
    sizes = [len(range(slab, rows, slabs)) for slab in range(slabs)]
    bounds = torch.tensor([0, *sizes], device="cpu").cumsum(0)
    active = torch.tensor(sizes, device="cpu")[:, None].expand(slabs, steps).contiguous()
    return Sorted(bounds, active, None, None)


_kept_whole = lru_cache(512)(_whole)


PLAIN_TILE = 4  # rows, FEW in cells.cpp


def _panel_forward(cell: str, kind: str, weight: Tensor, size: int) -> Tensor:
    """W_x or W_h [G H, K] for the _panel_forward pass."""
    match kind:
        case "plain":
            return weight
        case "tiles":
            return tiled_panel(GATES[cell], size, weight)
    library, inputs = native.loaded().library, weight.shape[1]
    panel = weight.new_empty(_units(size) * GATES[cell] * inputs)
    library.weft_pack_forward(CELLS[cell], size, inputs, pointer(weight), pointer(panel))
    return _words(panel, GATES[cell], size, inputs) if kind == "narrow" else panel


def _panel_backward(kind: str, weight: Tensor, size: int) -> Tensor:
    """W_h [G H, H] for the _panel_backward pass."""
    match kind:
        case "plain":
            return weight
        case "tiles":
            return tiled_panel(1, size, weight, back=True)
    panel = weight.new_empty(_units(size) * len(weight))
    native.loaded().library.weft_pack_backward(size, len(weight), pointer(weight), pointer(panel))
    return _words(panel, 1, size, len(weight)) if kind == "narrow" else panel


def _room(kind: str, plan: Sorted, deep: int) -> Tensor | None:
    """A buffer for the rows of each slab [slabs, ..] of 16-bit elements, or None."""
    match kind:
        case "tiles":
            return tiled_room(_most(plan), deep, len(plan.active))
        case "narrow":  # in words of two numbers
            words = native.loaded().library.weft_row_words(deep)
            return torch.empty(len(plan.active), 2 * _most(plan) * words, dtype=torch.int16)
    return None


def _words(panel: Tensor, gates: int, size: int, inputs: int) -> Tensor:
    words = torch.empty(len(panel) // inputs * -(-inputs // 2), dtype=torch.int32)
    native.loaded().library.weft_pack_words(gates, size, inputs, pointer(panel), pointer(words))
    return words


def _units(size: int) -> int:
    """Units in whole registers."""
    width = native.loaded().width
    return -(-size // width) * width


def _most(plan: Sorted) -> int:
    """Number of rows of the largest slab."""
    return int(plan.bounds.diff().max())


ROWS = 4  # a slab of fewer rows is not worth a thread
APART = 1 << 19  # from this many elements of W_x on, batches of few rows multiply all steps of x beforehand
FEW = 24  # rows
FLOAT_BYTES = 4
MOSTLY_REAL = 0.9  # share of the positions
PLAIN_ROWS, PLAIN_STEPS = 4, 5  # up to here packing weights would take longer than the products
FUNCTIONS = {
    "plain": ("weft_forward_plain", "weft_backward_plain"),
    "native": ("weft_forward", "weft_backward"),
    "tiles": ("weft_forward", "weft_backward"),
    "narrow": ("weft_forward_words", "weft_backward_words"),
}


Kind = Literal["native", "narrow", "tiles"]
Held = tuple[Shared[Products], Shared[Products]]
"""W_x with its bias, and W_h, of a loop whose steps are layers of one step (`repeating` of ../linear.py)."""
Tensors = tuple[Tensor, Tensor, Tensor | None, Tensor, Tensor, Tensor, Tensor | None]
"""x, h, c, weight_x, weight_h, bias, extra, rows in the kernel's order."""


def run(cell: str, layer: LayerInput, *, kind: Kind = "native") -> Result:
    """Compute a layer; the results are in float32."""
    *tensors, mask = layer
    if not torch.is_autocast_enabled("cpu"):
        return _run(cell, kind, tuple(tensors), mask)  # type: ignore[arg-type]
    with torch.autocast("cpu", enabled=False):
        wide = [None if tensor is None else tensor.float() for tensor in tensors]
        wide[0] = layer.x.bfloat16() if kind == "narrow" else wide[0]
        return _run(cell, kind, tuple(wide), mask)  # type: ignore[arg-type]


def _run(cell: str, kind: Kind, given: Tensors, mask: Tensor | None) -> Result:
    rows = sort(given[0], mask, native.slabs(given[0].shape[0] // ROWS))
    dense = (None if t is None else t.contiguous() for t in given[3:])
    given = *(rows.take(t) for t in given[:3]), *dense  # type: ignore[assignment]
    if torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in given):
        held = None if kind == "narrow" else _held(given)
        if held is not None:
            given = *given[:3], held[0].tensor, held[1].tensor, held[0].bias, given[6]  # type: ignore[assignment]
        y, h, c = _Layer.apply(cell, kind, rows, held, *given)
    else:
        y, h, c = _forward(cell, kind, rows, None, given, training=False)[0]
    if rows.order is None:
        return y, h, c
    return rows.give_back(y), rows.give_back(h), rows.give_back(c)  # type: ignore[return-value]


def _held(given: Tensors) -> Held | None:
    """The weights, where the steps of a loop share them."""
    _, _, _, weight_x, weight_h, bias, _ = given
    x, h = shared(weight_x, bias, weight_sums), shared(weight_h, None, weight_sums)
    return None if x is None or h is None else (x, h)


def _made(held: Shared[Products] | None, key: str, make: Callable[[], Tensor]) -> Tensor:
    """A panel, which the steps of a loop share."""
    return make() if held is None else held.sums.made(key, make)


def one_step(
    cell: str, x: Tensor, state: Sequence[Tensor] | None, weights: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    """The output and the next state of a few rows without gradients, with as few operations as can be.

    `run` computes the same; each operation of torch takes as long as the products of a small step. The
    weights W_ih [G H, D], W_hh [G H, H], and both biases [G H] or none, are contiguous; y and h are equal.
    """
    (_, rows, inputs), size = x.shape, weights[1].shape[1]
    x = x if x.stride(2) == 1 else x.contiguous()
    if state is None:
        held = x.new_zeros(3, rows, size)
        c = x.new_zeros(1, rows, size) if cell == "lstm" else None
    else:
        held = torch.cat((state[0], state[0], state[0]))  # y and h are overwritten
        c = state[1].clone(memory_format=torch.contiguous_format) if cell == "lstm" else None
    form, bounds, active = _one_step_form(cell, rows, size, inputs)
    room = torch.empty(form.halves, dtype=torch.int16)
    job = Forward.from_buffer_copy(form)
    job.x_row, job.bounds, job.active, job.x = x.stride(1), pointer(bounds), pointer(active), pointer(x)
    job.panel_x, job.panel_h = pointer(weights[0]), pointer(weights[1])
    bias = _one_step_bias(cell, weights, size)
    job.bias = pointer(bias)
    if cell == "gru":
        start, units = (job.bias, 3 * size) if len(weights) == 2 else (weights[3].data_ptr(), 2 * size)
        job.bias_n = start + units * FLOAT_BYTES  # the candidate's [H] of W_h
    first = held.data_ptr()
    job.h, job.c, job.room = first, pointer(c), pointer(room)
    native.call("weft_forward_plain", job)
    count = rows * size * FLOAT_BYTES
    memmove(first + 2 * count, first + count, count)
    _, y, h = held.unsafe_split(1)  # not views of each other: either may be changed in place
    return (y, h) if c is None else (y, h, c)


def _one_step_bias(cell: str, weights: Sequence[Tensor], size: int) -> Tensor:
    """[G H], of a GRU that of W_x for the candidate; without biases zeros, followed by [H] more."""
    if len(weights) == 2:
        return torch.zeros((GATES[cell] + 1) * size)
    if cell != "gru":
        return weights[2] + weights[3]
    bias = weights[2].clone()
    bias[: 2 * size].add_(weights[3][: 2 * size])
    return bias


@lru_cache(256)
def _one_step_form(cell: str, rows: int, size: int, inputs: int) -> tuple[Forward, Tensor, Tensor]:
    """The arguments that all calls of these sizes share; copied, and so only read."""
    bounds, active = torch.tensor([0, rows]), torch.tensor([[rows]])
    job = Forward(CELLS[cell], 1, rows, size, inputs, 1, 0, 0, inputs)
    job.halves = 2 * PLAIN_TILE * GATES[cell] * size * 2
    return job, bounds, active


class Kept(NamedTuple):
    """What a forward pass keeps for the backward pass."""

    hs: Tensor
    cs: Tensor | None
    gates: Tensor | None
    inner: Tensor | None


def _forward(
    cell: str, kind: Kind, plan: Sorted, held: Held | None, given: Tensors, *, training: bool
) -> tuple[Result, Kept]:
    """Results, and what the backward pass needs."""
    x, h, c, weight_x, weight_h, bias, extra = given
    (rows, steps, inputs), (wide, size) = x.shape, weight_h.shape
    plain = kind == "native" and rows <= PLAIN_ROWS and steps <= PLAIN_STEPS
    large = rows < FEW and weight_x.numel() >= APART
    apart = large if kind == "narrow" else not plain and (kind == "tiles" or rows <= ROWS or large)
    new = h.new_empty if plan.lengths is None else h.new_zeros
    gates = None
    if apart:
        gates = linear(x.float().transpose(0, 1), weight_x, bias)
    elif training and cell not in ("elman", "relu"):
        gates = h.new_empty(steps, rows, wide)
    inner = h.new_empty(steps, rows, size) if cell == "gru" and training else None
    hs = new(steps + 1, rows, size)
    hs[0] = h
    cs = None
    if c is not None and training:
        cs = h.new_empty(steps + 1, rows, size)
        cs[0] = c
    elif c is not None:
        cs = c.clone(memory_format=torch.contiguous_format)  # updated in place
    packing = "plain" if plain else kind
    read, (row, step) = (None, (0, 0)) if apart else _readable(x, kind)
    held_x, held_h = (None, None) if held is None or plain else held
    key, pack = f"forward {cell} {packing}", partial(_panel_forward, cell, packing, size=size)
    panel_x = None if apart else _made(held_x, key, lambda: pack(weight_x))
    panel_h = _made(held_h, key, lambda: pack(weight_h))
    room = _room(packing, plan, size)
    if plain:
        room = torch.empty(len(plan.active), 2 * PLAIN_TILE * wide * 2, dtype=torch.int16)
    job = Forward(
        CELLS[cell], steps, rows, size, inputs, plan.active.shape[0], training, row, step,
        pointer(plan.bounds), pointer(plan.active), pointer(read), pointer(panel_x),
        pointer(panel_h), pointer(bias), pointer(extra) if cell == "gru" else None,
        pointer(extra) if cell == "peephole" else None, pointer(gates), pointer(inner), pointer(hs),
        pointer(cs), *room_arguments(room),
    )  # fmt: skip
    native.call(FUNCTIONS[packing][0], job)
    kept, y = Kept(hs, cs, gates, inner), hs[1:].transpose(0, 1)
    if plan.lengths is None:
        return (y, hs[-1].clone(), cs[-1].clone() if training and cs is not None else cs), kept
    each = torch.arange(rows)
    last_c = cs[plan.lengths, each] if training and cs is not None else cs
    return (y, hs[plan.lengths, each], last_c), kept


def _readable(x: Tensor, kind: Kind) -> tuple[Tensor, tuple[int, int]]:
    """x as compiled code reads it, and how far apart its rows and steps are, in words of 32 bits."""
    if kind != "narrow":
        x = x if x.stride(2) == 1 else x.contiguous()
        return x, (x.stride(0), x.stride(1))
    if x.shape[2] % 2:
        x = F.pad(x, (0, 1))
    if x.stride(2) != 1 or x.stride(0) % 2 or x.stride(1) % 2:
        x = x.contiguous()
    return x, (x.stride(0) // 2, x.stride(1) // 2)


class _Layer(torch.autograd.Function):
    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, cell: str, kind: Kind, plan: Sorted, held: Held | None, *given: Tensor | None
    ) -> Result:
        outs, kept = _forward(cell, kind, plan, held, given, training=True)  # type: ignore[arg-type]
        ctx.save_for_backward(*given, *kept)
        ctx.cell, ctx.kind, ctx.plan = cell, kind, plan
        ctx.sums = None if held is None else (held[0].sums, held[1].sums)
        ctx.set_materialize_grads(False)
        return outs

    @staticmethod
    def backward(  # type: ignore[override]
        ctx: Any, dy: Tensor | None, dh_last: Tensor | None, dc: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        saved, cell, plan = ctx.saved_tensors, ctx.cell, ctx.plan
        if torch.is_grad_enabled():  # for a second derivative
            return (None, None, None, None, *layer_gradients(cell, plan.mask(), saved[:7], (dy, dh_last, dc)))
        with torch.autocast("cpu", enabled=False):
            # Saved tensors are read only once: under recomputation they can be unpacked once.
            return (None, None, None, None, *_backward(ctx, saved[:7], Kept(*saved[7:]), dy, dh_last, dc))


def _backward(
    ctx: Any, given: Tensors, kept: Kept, dy: Tensor | None, dh_last: Tensor | None, dc: Tensor | None
) -> tuple[Tensor | None, ...]:
    """The gradients of `given`."""
    x, _, _, weight_x, weight_h, _, extra = given
    cell, kind, plan, (hs, cs, gates, inner) = ctx.cell, ctx.kind, ctx.plan, kept
    (rows, steps, _), (wide, size) = x.shape, weight_h.shape
    gru = cell == "gru"
    dy = None if dy is None else dy.transpose(0, 1).contiguous()
    dh_last = None if dh_last is None else dh_last.contiguous()
    if cs is not None:
        dc = hs.new_zeros(rows, size) if dc is None else dc.clone(memory_format=torch.contiguous_format)
    d = (hs.new_empty if plan.lengths is None else hs.new_zeros)(steps, rows, 4 * size if gru else wide)
    dh = hs.new_empty(rows, size) if ctx.needs_input_grad[5] else None
    carry = hs.new_empty(rows, size) if gru else None
    dextra = hs.new_zeros(len(plan.active), 3, size) if cell == "peephole" else None
    unused = dh is None and steps == 1  # the weights of the recurrence
    plain = unused or (kind == "native" and rows <= PLAIN_ROWS and steps <= PLAIN_STEPS)
    packing = "plain" if plain else kind
    pack = partial(_panel_backward, packing, weight_h, size)
    panel = pack() if ctx.sums is None or plain else ctx.sums[1].made(f"backward {packing}", pack)
    room = _room(packing, plan, wide)
    job = Backward(
        CELLS[cell], steps, rows, size, len(plan.active), pointer(plan.bounds),
        pointer(plan.active), pointer(panel), pointer(gates), pointer(inner), pointer(hs), pointer(cs),
        pointer(extra) if cell == "peephole" else None, pointer(dy), pointer(dh_last), pointer(dc),
        pointer(dh), pointer(carry), pointer(d), pointer(dextra),
        *room_arguments(room),
    )  # fmt: skip
    native.call(FUNCTIONS[packing][1], job)
    real = plan.real()
    if real is not None and len(real) > MOSTLY_REAL * rows * steps:
        real = None  # d is zero at padding, and a product of all rows is faster than leaving a few out
    return _products(ctx, (x, weight_x, hs), d, dh, dc, dextra, real)


def _products(
    ctx: Any,
    saved: tuple[Tensor, Tensor, Tensor],
    d: Tensor,
    dh: Tensor,
    dc: Tensor | None,
    dextra: Tensor | None,
    real: Tensor | None,
) -> tuple[Tensor | None, ...]:
    """The gradients of `forward`'s arguments; each weight's is one product over all real steps."""
    x, weight_x, hs = saved
    steps, rows, size = d.shape[0], d.shape[1], hs.shape[2]
    needs = dict(
        zip(("x", "h", "c", "weight_x", "weight_h", "bias", "extra"), ctx.needs_input_grad[4:], strict=True)
    )
    flat = d.view(steps * rows, -1)
    alone = ctx.sums is None  # else W_x, its bias and W_h get theirs after the loop
    sums = flat.sum(0) if (needs["bias"] and alone) or needs["extra"] else flat[0]
    if ctx.kind == "narrow":
        flat, weight_x, hs = flat.bfloat16(), weight_x.bfloat16(), hs.bfloat16()
    inputs, states = x.transpose(0, 1), hs[:-1].flatten(0, 1)
    if real is not None:
        flat, states = flat[real], states[real]
        inputs = inputs[torch.div(real, rows, rounding_mode="floor"), real % rows]
    inputs = inputs.reshape(-1, x.shape[2])
    before, after, gru = flat, flat, ctx.cell == "gru"
    dextra = sums[3 * size :] if gru and needs["extra"] else None if dextra is None else dextra.sum(0)
    moved = gru and alone and len(flat) > x.shape[2]  # the smaller matrix is put in order: the weights or d
    if gru:  # columns: candidate's W_x side, r, u, candidate's W_h side
        before, after = flat[:, : 3 * size], flat[:, size:]
        before = before if moved else torch.cat([before[:, size:], before[:, :size]], 1)
    dx = dwx = dwh = db = None
    if needs["x"]:
        dx = linear(before, (_moved(weight_x, 2 * size) if moved else weight_x).mT)
        if real is not None:
            dx = x.new_zeros(steps * rows, x.shape[2]).index_copy_(0, real, dx)
        dx = dx.view(steps, rows, -1).transpose(0, 1)
    if not alone:
        ctx.sums[0].add(before, inputs)
        ctx.sums[1].add(after, states)
        return dx, dh, dc, None, None, None, dextra
    if needs["weight_x"]:
        dwx = weight_gradient(before, inputs).float()
        dwx = _moved(dwx, size) if moved else dwx
    if needs["weight_h"]:
        dwh = weight_gradient(after, states).float()
    if needs["bias"]:
        db = _moved(sums[: 3 * size], size) if gru else sums
    return dx, dh, dc, dwx, dwh, db, dextra


def _moved(rows: Tensor, first: int) -> Tensor:
    """The rows before `first` behind the others."""
    return torch.cat([rows[first:], rows[:first]])
