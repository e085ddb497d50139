"""Recurrent layers over all time steps: an LSTM, GRU, Elman network and their kin.

A layer is computed by one of several ways; choice.py has the rule, and the plain twin of each is the loop
over its cell's `step`:

native      compiled code, in float32 on the CPU                           compiled.py
narrow      compiled code that multiplies in bfloat16, under autocast      compiled.py
operation   torch's own operation: oneDNN, MKL, cuDNN
tiles       compiled code whose products use the processor's tiles (AMX)   compiled.py
steps       the plain loop                                                 ../twin.py

Forms and meaning of the arguments: LayerInput in ../equations.py.

In torch's operations the mask is one more input feature: it is 1 at padding, where its fixed weights close
the input gate and open the forget gate (sigmoid(-+1e4) is exactly 0 and 1), so c stays bit-identical; in a
GRU they open the update gate. h is then taken from the last real step. torch's packed sequences would not use
the fused path on the CPU. 1 - sigmoid(z) = sigmoid(-z), so a coupled cell is an LSTM with W_i = -W_f and
b_i = -b_f.

cuDNN computes gradients only of calls that announce them (`train`), and reads all weights of a layer from
one piece of memory: the matrices, then the biases. Where they lie apart, torch copies them and warns.
The GRU whose reset gate acts before the product has no operation of torch's, nor compiled code:
`gru_before` is back-propagation through time written by hand. One product computes the inputs of all steps;
each step costs two recurrent products and a few in-place operations, and each weight's gradient is one
product at the end: training 32 rows of 10 steps took 2.4 ms instead of 2.8 with 64 units, 9.4 instead of 12.1
with 256 (Xeon with AMX). Read next: compiled.py.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from weft.nn.kernels import choice, twin
from weft.nn.kernels.cells import compiled
from weft.nn.kernels.cells.compiled import Sorted, sort
from weft.nn.kernels.equations import WITH_C, LayerInput, Operation, Result
from weft.nn.kernels.linear import cast_weight, linear, opened
from weft.probe import exporting


def recurrent(
    function: Callable[..., Any],
    x: Tensor,
    state: Sequence[Tensor],
    weights: Sequence[Tensor],
    sizes: Tensor | None = None,
) -> Any:
    """One layer in one direction, with rows first: y, h, and c for an LSTM.

    With `sizes`, those of packed rows [T], x is their data [N, D].
    """
    training = False
    if x.is_cuda and sizes is None and x.shape[1] == 1 and len(weights) in (2, 4):
        return one_step(function, x, state, weights)
    if x.is_cuda:
        training = torch.is_grad_enabled() and any(each.requires_grad for each in (x, *state, *weights))
        state, weights = [each.contiguous() for each in state], together(weights)
    started = list(state) if len(state) > 1 else state[0]
    how = list(weights), len(weights) > 3, 1, 0.0, training, False
    if sizes is not None:
        return function(x, sizes, started, *how)
    return function(x, started, *how, True)


ONE_STEP = {
    torch.gru: torch.gru_cell,
    torch.rnn_tanh: torch.rnn_tanh_cell,
    torch.rnn_relu: torch.rnn_relu_cell,
}


def one_step(
    function: Callable[..., Any], x: Tensor, state: Sequence[Tensor], weights: Sequence[Tensor]
) -> Any:
    """`recurrent` for x [B, 1, D] on a GPU by torch's cells.

    cuDNN would first copy all weights into one piece of memory, at every step of a decoder.
    """
    if function is torch.lstm:
        h, c = torch.lstm_cell(x[:, 0], [each[0] for each in state], *weights)
        return h[:, None], h[None], c[None]
    h = ONE_STEP[function](x[:, 0], state[0][0], *weights)
    return h[:, None], h[None]


def together(weights: Sequence[Tensor]) -> list[Tensor]:
    """The same weights as parts of one tensor: matrices before biases, in the order of `weights` within each.

    Example:
        >>> parts = together([torch.ones(4, 2), torch.ones(4), torch.ones(3, 2)])
        >>> [list(part.shape) for part in parts], [part.storage_offset() for part in parts]
        ([[4, 2], [4], [3, 2]], [0, 14, 8])
    """
    order = sorted(range(len(weights)), key=lambda number: -weights[number].dim())
    flat = torch.cat([weights[number].reshape(-1) for number in order])
    parts = flat.split([weights[number].numel() for number in order])
    placed = {number: part.view_as(weights[number]) for number, part in zip(order, parts, strict=True)}
    return [placed[number] for number in range(len(weights))]


MULTIPLE = 16  # oneDNN's bfloat16 LSTM took 44 ms with 257 features, 16 ms with 272 (and 15 with 256)


def pad_feature(
    x: Tensor, weight: Tensor, mask: Tensor, holds: tuple[float, ...], size: int
) -> tuple[Tensor, Tensor]:
    """Add a feature that is 1 at padding, with fixed weights for each gate.

    x [B, T, D] and weight [G H, D] get the next multiple of 16 beyond D features, filled with zeros.
    """
    extra = MULTIPLE - x.shape[2] % MULTIPLE
    x = x * mask[..., None].to(x.dtype)  # a large enough value at padding would outweigh the hold
    flag = F.pad((~mask).to(x.dtype)[..., None], (0, extra - 1))
    # filled where it is needed: a recorded graph must not wait for a copy from the CPU
    column = torch.cat([weight.new_full((size,), hold) for hold in holds])
    return torch.cat([x, flag], -1), torch.cat([weight, F.pad(column[:, None], (0, extra - 1))], 1)


def hold_last(y: Tensor, before: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Zero y [B, T, H] at padding; and the output at each row's last real step, or the state before if none.

    The real positions of the mask come first.
    """
    y = y.masked_fill(~mask[..., None], 0.0)
    count = mask.sum(1)
    index = (count - 1).clamp(min=0).view(-1, 1, 1).expand(-1, 1, y.shape[2])
    last = y.gather(1, index).squeeze(1)
    return y, torch.where((count > 0)[:, None], last, before.to(y.dtype))


def shown_last(y: Tensor, before: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """`hold_last`, also without a mask."""
    return (y, y[:, -1]) if mask is None else hold_last(y, before, mask)


HOLD = 1e4
ROWS_MULTIPLE = (
    8  # oneDNN's bfloat16 LSTM: a training step took 59 ms for 107 rows, 24 ms for 112; equal below 48
)


def lstm(given: LayerInput) -> Result:
    """`torch.lstm`."""
    x, h, c, weight_x, weight_h, bias, _, mask = given
    assert c is not None
    if mask is not None:
        size = weight_h.shape[1]
        x, weight_x = pad_feature(x, weight_x, mask, (-HOLD, HOLD, 0.0, 0.0), size)
    weights = [weight_x, weight_h, bias, torch.zeros_like(bias)]
    rows = len(x)
    extra = added_rows(x)
    if extra:
        x, h, c = F.pad(x, (0, 0, 0, 0, 0, extra)), F.pad(h, (0, 0, 0, extra)), F.pad(c, (0, 0, 0, extra))
    y, last_h, last_c = torch_lstm(x, (h[None], c[None]), weights)
    y, last_h, last_c, h = y[:rows], last_h[0, :rows], last_c[0, :rows], h[:rows]
    if mask is not None:
        y, last_h = hold_last(y, h, mask)
    return y, last_h, last_c


def torch_lstm(
    x: Tensor, state: Sequence[Tensor], weights: Sequence[Tensor], sizes: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """`torch.lstm`; under autocast in float32 where `lacks_bfloat16`, because torch then raises an error."""
    if x.device.type != "cpu" or not torch.is_autocast_enabled("cpu") or not lacks_bfloat16():
        return recurrent(torch.lstm, x, state, weights, sizes)  # type: ignore[no-any-return]
    with torch.autocast("cpu", enabled=False):
        return recurrent(torch.lstm, *map(_wide, (x, state, weights)), sizes)  # type: ignore[no-any-return]


def lacks_bfloat16() -> bool:
    """Whether oneDNN has no LSTM in bfloat16 for this processor: it needs AVX-512 (torch 2.13)."""
    return not torch.ops.mkldnn._is_mkldnn_bf16_supported()


def _wide(given: Any) -> Any:
    """In float32: tensors of floating-point numbers, and those in a list."""
    if isinstance(given, list | tuple):
        return [_wide(each) for each in given]
    return given.float() if isinstance(given, Tensor) and given.is_floating_point() else given


def added_rows(x: Tensor) -> int:
    """Number of zero rows that make oneDNN fast, up to a ROWS_MULTIPLE; 0 in float32 or on a GPU."""
    autocast = torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") == torch.bfloat16
    if x.device.type != "cpu" or len(x) < 48 or not (autocast or x.dtype == torch.bfloat16):
        return 0
    return -len(x) % ROWS_MULTIPLE


def gru(given: LayerInput) -> Result:
    """`torch.gru`."""
    x, h, _, weight_x, weight_h, bias, bias_n, mask = given
    assert bias_n is not None
    size = weight_h.shape[1]
    if mask is not None:
        x, weight_x = pad_feature(x, weight_x, mask, (0.0, HOLD, 0.0), size)
    inner = torch.cat([torch.zeros_like(bias[: 2 * size]), bias_n])
    weights = [weight_x, cast_weight(weight_h), bias, inner]  # weight_h is used once per step
    y, last = recurrent(torch.gru, x, (h[None],), weights)
    last = last[0]
    if mask is not None:
        y, last = hold_last(y, h, mask)
    return y, last, None


def elman(function: Callable[..., Any], given: LayerInput) -> Result:
    """`torch.rnn_tanh` or `torch.rnn_relu`."""
    x, h, _, weight_x, weight_h, bias, _, mask = given
    if mask is not None:
        x = x * mask[..., None].to(x.dtype)  # else ReLU could grow without bound at padding
    weights = [weight_x, cast_weight(weight_h), bias, torch.zeros_like(bias)]
    y, last = recurrent(function, x, (h[None],), weights)
    if mask is None:
        return y, last[0], None
    y, held = hold_last(y, h, mask)
    return y, held, None


def coupled(given: LayerInput) -> Result:
    """`coupled` with torch's LSTM."""
    x, h, c, weight_x, weight_h, bias, _, mask = given
    size = weight_h.shape[1]
    tied = [torch.cat([-weight[:size], weight]) for weight in (weight_x, weight_h, bias)]
    return lstm(LayerInput(x, h, c, *tied, None, mask))


class _Products:
    """The products of a layer, in autocast's dtype `low` if there is one; they give numbers of `wide`."""

    def __init__(self, low: torch.dtype | None, wide: torch.dtype) -> None:
        self.low, self.wide = low, wide

    def cast(self, tensor: Tensor) -> Tensor:
        """The tensor in autocast's dtype; unchanged without autocast."""
        return tensor if self.low is None else tensor.to(self.low)

    def times(self, a: Tensor, weight: Tensor) -> Tensor:
        """a W^T of one step, for W already cast by `cast`."""
        return F.linear(self.cast(a), weight).to(self.wide)

    def whole(self, a: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """a W^T + b of all steps."""
        bias = None if bias is None else self.cast(bias)
        return linear(self.cast(a), self.cast(weight), bias).to(self.wide)

    def gradient(self, d: Tensor, a: Tensor) -> Tensor:
        """Sum over steps and rows of d a^T."""
        return self.whole(d.flatten(0, 1).mT, a.flatten(0, 1).mT)


sigmoid_slope = torch.ops.aten.sigmoid_backward.grad_input  # (grad, y, grad_input=out): grad y (1 - y)
tanh_slope = torch.ops.aten.tanh_backward.grad_input  # grad (1 - y^2)


def gru_before(given: LayerInput) -> Result:
    """A GRU whose reset gate acts before the product."""
    x, h, _, weight_x, weight_h, bias, _, mask = given
    rows = sort(x, mask)
    low = torch.get_autocast_dtype(x.device.type) if torch.is_autocast_enabled(x.device.type) else None
    wide = weight_h.dtype
    sorted_ = rows.take(x).to(wide).transpose(0, 1), rows.take(h).to(wide)  # type: ignore[union-attr]
    with torch.autocast(x.device.type, enabled=False):  # it would change the dtype of in-place operations
        y, h = _GRUBefore.apply(rows, low, *sorted_, weight_x, weight_h, bias)
    return rows.give_back(y.transpose(0, 1)), rows.give_back(h), None  # type: ignore[return-value]


class _GRUBefore(torch.autograd.Function):
    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, rows: Sorted, low: Any, x: Tensor, h: Tensor, wx: Tensor, wh: Tensor, b: Tensor
    ) -> tuple[Tensor, Tensor]:
        p, size = _Products(low, wh.dtype), h.shape[1]
        gates = p.whole(x, wx, b)
        hs = (h.new_empty if rows.lengths is None else h.new_zeros)(len(x) + 1, *h.shape)  # zeros if skipped
        hs[0] = h
        weight_g, weight_n = p.cast(wh).split([2 * size, size])
        read = hs.new_zeros(len(x), *h.shape)  # r h
        counts = rows.active[0].tolist()
        for t, n in enumerate(counts):
            g, before, rh = gates[t, :n], hs[t, :n], read[t, :n]
            g[:, : 2 * size].add_(p.times(before, weight_g)).sigmoid_()
            r, z, candidate = g.chunk(3, 1)
            torch.mul(r, before, out=rh)
            candidate.add_(p.times(rh, weight_n)).tanh_()
            torch.lerp(candidate, before, z, out=hs[t + 1, :n])
        ctx.save_for_backward(x, h, wx, wh, b, hs, read, gates)
        ctx.p, ctx.rows, ctx.counts = p, rows, counts
        if rows.lengths is None:
            return hs[1:], hs[-1].clone()
        return hs[1:], hs[rows.lengths, torch.arange(len(h), device=h.device)]

    @staticmethod
    def backward(ctx: Any, dy: Tensor, dh: Tensor) -> tuple[Any, ...]:  # type: ignore[override]
        saved = ctx.saved_tensors  # read only once: under recomputation they can be unpacked once
        if torch.is_grad_enabled():  # for a second derivative
            x, h, *weights = saved[:5]
            given, grads = (x.transpose(0, 1), h, None, *weights, None), (dy.transpose(0, 1), dh, None)
            dx, dbefore, _, *others = twin.layer_gradients("gru_before", ctx.rows.mask(), given, grads)
            return None, None, None if dx is None else dx.transpose(0, 1), dbefore, *others[:3]
        with torch.autocast(dy.device.type, enabled=False):
            return _gru_before_gradients(ctx, saved, dy, dh)


def _gru_before_gradients(ctx: Any, saved: Any, dy: Tensor, dh: Tensor) -> tuple[Any, ...]:
    """The gradients of the arguments of `_GRUBefore.forward`."""
    x, _, wx, wh, _, hs, read, gates = saved
    p, dh, size = ctx.p, dh.clone(), hs.shape[2]
    r, z, candidate = gates.chunk(3, 2)
    d = torch.empty_like(gates)
    dr, dz, dn = d.chunk(3, 2)
    sigmoid_slope(hs[:-1], r, grad_input=dr)
    sigmoid_slope(hs[:-1] - candidate, z, grad_input=dz)
    tanh_slope(1 - z, candidate, grad_input=dn)
    weight_g, weight_n = p.cast(wh).split([2 * size, size])
    for t in reversed(range(len(dy))):
        n = ctx.counts[t]
        whole = dh[:n].add_(dy[t, :n])
        d[t, :n, size:].view(n, 2, size).mul_(whole[:, None])
        through = p.times(dn[t, :n], weight_n.mT)
        dr[t, :n].mul_(through)
        kept = torch.mul(whole, z[t, :n]).addcmul_(through, r[t, :n])
        torch.add(kept, p.times(d[t, :n, : 2 * size], weight_g.mT), out=dh[:n])
    mask = ctx.rows.mask()
    if mask is not None:
        d.masked_fill_(~mask.T[..., None], 0.0)
    dwh = torch.cat([p.gradient(d[..., : 2 * size], hs[:-1]), p.gradient(dn, read)])
    dx = p.whole(d, wx.mT) if ctx.needs_input_grad[2] else None
    return None, None, dx, dh, p.gradient(d, x), dwh, d.sum((0, 1))


OPERATIONS: Mapping[str, Operation] = {
    "lstm": lstm,
    "coupled": coupled,
    "gru": gru,
    "gru_before": gru_before,
    "elman": partial(elman, torch.rnn_tanh),
    "relu": partial(elman, torch.rnn_relu),
}
"""What computes the cells of choice.OPERATIONS."""


def run_layer(cell: str, given: LayerInput) -> Result:
    """A layer of a cell ."""
    if exporting():
        return exported(cell, given) if cell in OPERATORS else twin.layer_by_steps(cell, given)
    way = choice.layer_way(cell, given, sharing=opened())
    if way == "operation":
        return OPERATIONS[cell](given)
    if way == "steps":
        return twin.layer_by_steps(cell, given)
    return compiled.run(cell, given, kind=way)  # type: ignore[arg-type]


OPERATORS = ("lstm", "peephole", "coupled", "gru", "gru_before", "elman", "relu")
"""Cells, by their names in the kernels, that ONNX has an operator for."""


def exported(cell: str, given: LayerInput) -> Result:
    """A layer of one of OPERATORS as one node of a graph."""
    x, h, c, weight_x, weight_h, bias, extra, mask = given
    real = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device) if mask is None else mask
    size = weight_h.shape[1]
    last_c = h if c is None else c
    inner = torch.zeros_like(bias)
    if cell == "gru" and extra is not None:
        inner = torch.cat([inner[: 2 * size], extra])
    peep = extra if cell == "peephole" and extra is not None else bias.new_zeros(3, size)
    y, h, last_c = recurrent_layer(cell, x, h, last_c, weight_x, weight_h, bias, inner, peep, real.sum(1))
    return y, h, None if c is None else last_c


@torch.library.custom_op("weft::recurrent_layer", mutates_args=())
def recurrent_layer(
    cell: str,
    x: Tensor,
    h: Tensor,
    c: Tensor,
    weight_x: Tensor,
    weight_h: Tensor,
    bias: Tensor,
    inner: Tensor,
    peep: Tensor,
    lengths: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """The node of a graph that torch exports, without a gradient; export/graphs.py translates it for ONNX.

    `bias` and `inner` [G H] are those of the two products; `lengths` [B] count real positions, the first.
    """
    size, steps_ = h.shape[1], torch.arange(x.shape[1], device=x.device)
    extra = inner[2 * size :] if cell == "gru" else peep if cell == "peephole" else None
    old = c if cell in WITH_C else None
    given = LayerInput(x, h, old, weight_x, weight_h, bias, extra, steps_ < lengths[:, None])
    with torch.no_grad():
        y, h, last = run_layer(cell, given)
    return y, h.clone(), c.clone() if last is None else last.clone()


@recurrent_layer.register_fake
def _(cell: str, x: Tensor, h: Tensor, c: Tensor, *others: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return x.new_empty(x.shape[0], x.shape[1], h.shape[1]), torch.empty_like(h), torch.empty_like(c)
