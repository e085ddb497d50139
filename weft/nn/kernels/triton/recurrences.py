"""The loops over steps around the kernels, forward and backward, for each kind of recurrence.

`forward` returns what the backward pass needs: first the states h [T + 1, B, H], second those of c for the
LSTM. `backward` returns the gradients of z, h, c, weight_h, extra and both gains. Read next: steps.py,
gru.py.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from weft.nn.kernels.cells.form import Recurrence
from weft.nn.kernels.cells.operations import MatrixProducts
from weft.nn.kernels.triton import gru, steps

Given = tuple[Tensor | None, ...]  # z, h, c, weight_h, extra, gain, gain_2
WIDE = 1024  # with more units than this, a program has eight warps instead of four


class Kind(NamedTuple):
    """The forward and backward pass of a recurrence."""

    forward: Callable[..., tuple[Tensor, ...]]
    backward: Callable[..., Given]


class _Steps:
    """The steps of a layer, and buffers with one entry per step."""

    def __init__(self, p: MatrixProducts, z: Tensor, size: int) -> None:
        self.counts, self.ragged = p.counts, p.rows.lengths is not None
        self.rows, self.size, self.z = z.shape[0], size, z
        block = triton.next_power_of_2(size)
        self.common = {"BLOCK": block, "num_warps": 4 if block <= WIDE else 8}

    def gates(self) -> Tensor:
        """A copy of z, [T, B, G H], for the kernels to overwrite."""
        return self.z.transpose(0, 1).clone(memory_format=torch.contiguous_format)

    def room(self, width: int) -> Tensor:
        """A buffer [T, B, width]; zero where steps may be skipped."""
        make = self.z.new_zeros if self.ragged else self.z.new_empty
        return make(self.z.shape[1], self.rows, width)

    def run(self, kernel: Any, t: int, *tensors: Tensor, **settings: Any) -> None:
        """Launch a kernel for the unfinished rows of step t."""
        kernel[(self.counts[t],)](*tensors, t, self.rows, self.size, **self.common, **settings)

    def onward(self) -> Iterator[tuple[int, int]]:
        """(t, number of unfinished rows) for each step with any, from the first on."""
        yield from ((t, n) for t, n in enumerate(self.counts) if n)

    def back(self) -> Iterator[tuple[int, int]]:
        yield from reversed(list(self.onward()))


def _elman_forward(p: MatrixProducts, form: Recurrence, given: Any) -> tuple[Tensor, ...]:
    z, h, _, w, b, *_ = given
    s = _Steps(p, z, h.shape[1])
    gates, hs, weight = s.gates(), p.states(h, z.shape[1]), p.cast(w)
    for t, n in s.onward():
        product = p.times(hs[t, :n], weight)
        s.run(steps.elman_forward, t, gates, product, hs, hs if b is None else b, NAME=form.name)
    return (hs, hs)


def _elman_backward(
    p: MatrixProducts, form: Recurrence, given: Any, kept: Any, dy: Tensor, dh: Tensor, _: None
) -> Given:
    (z, _, _, w, b, *_), (hs, _) = given, kept
    s = _Steps(p, z, hs.shape[2])
    d, weight = s.room(s.size), p.cast(w).mT
    for t, n in s.back():
        s.run(steps.elman_backward, t, hs, dy, dh, d, NAME=form.name)
        dh[:n] = p.times(d[t, :n], weight)
    db = None if b is None else (d * hs[1:].sign()).sum((0, 1))
    return d.transpose(0, 1), dh, None, p.gradient(d, hs[:-1]), db, None, None


def _lstm_forward(p: MatrixProducts, form: Recurrence, given: Any) -> tuple[Tensor, ...]:
    z, h, c, w, peep, gain, gain_c = given
    s = _Steps(p, z, h.shape[1])
    gates, hs, cs, weight = s.gates(), p.states(h, z.shape[1]), p.states(c, z.shape[1]), p.cast(w)
    normal = gain is not None
    norms = [s.room(4 * s.size), s.room(4), s.room(s.size), s.room(1)] if normal else [gates] * 4
    hat, rate, hat_c, rate_c = norms
    settings = {"NAME": form.name, "NORMAL": normal, "PEEPHOLE": peep is not None}
    for t, n in s.onward():
        product = p.times(hs[t, :n], weight)
        s.run(
            steps.lstm_forward, t, gates, product, hs, cs, _or(peep, hs), hat, rate, _or(gain, hs), hat_c,
            rate_c, _or(gain_c, hs), **settings,
        )  # fmt: skip
    return hs, cs, gates, *norms


def _lstm_backward(
    p: MatrixProducts, form: Recurrence, given: Any, kept: Any, dy: Tensor, dh: Tensor, dc: Tensor
) -> Given:
    z, _, _, w, peep, gain, gain_c = given
    hs, cs, gates, hat, rate, hat_c, rate_c = kept
    s, normal = _Steps(p, z, hs.shape[2]), gain is not None
    d, weight = s.room(4 * s.size), p.cast(w).mT
    through, dshown = (s.room(4 * s.size), s.room(s.size)) if normal else (d, d)
    settings = {"NAME": form.name, "NORMAL": normal, "PEEPHOLE": peep is not None}
    for t, n in s.back():
        s.run(
            steps.lstm_backward, t, gates, cs, _or(peep, hs), hat, rate, _or(gain, hs), hat_c, rate_c,
            _or(gain_c, hs), dy, dh, dc, d, through, dshown, **settings,
        )  # fmt: skip
        dh[:n] = p.times(through[t, :n], weight)
    di, df, _, do = d.chunk(4, 2)
    dpeep = None
    if peep is not None:
        seen = ((di, cs[:-1]), (df, cs[:-1]), (do, cs[1:]))
        dpeep = torch.stack([(grad * c).sum((0, 1)) for grad, c in seen])
    dgain = (d * hat).sum((0, 1)) if normal else None
    dgain_c = (dshown * hat_c).sum((0, 1)) if normal else None
    return d.transpose(0, 1), dh, dc, p.gradient(through, hs[:-1]), dpeep, dgain, dgain_c


def _gru_forward(p: MatrixProducts, form: Recurrence, given: Any) -> tuple[Tensor, ...]:
    z, h, _, w, b, gain, _ = given
    s, normal = _Steps(p, z, h.shape[1]), gain is not None
    gates, hs, weight, inner = s.gates(), p.states(h, z.shape[1]), p.cast(w), s.room(h.shape[1])
    hat, rate = (s.room(3 * s.size), s.room(3)) if normal else (gates, gates)
    for t, n in s.onward():
        product = p.times(hs[t, :n], weight)
        s.run(
            gru.after_forward,
            t,
            gates,
            product,
            hs,
            inner,
            b,
            hat,
            rate,
            _or(gain, hs),
            NAME=form.name,
            NORMAL=normal,
        )
    return hs, hs, gates, inner, hat, rate


def _gru_backward(
    p: MatrixProducts, form: Recurrence, given: Any, kept: Any, dy: Tensor, dh: Tensor, _: None
) -> Given:
    z, _, _, w, _, gain, _ = given
    hs, _, gates, inner, hat, rate = kept
    s, normal = _Steps(p, z, hs.shape[2]), gain is not None
    d, through, straight, weight = s.room(3 * s.size), s.room(3 * s.size), torch.zeros_like(dh), p.cast(w).mT
    for t, n in s.back():
        s.run(
            gru.after_backward, t, gates, hs, inner, hat, rate, _or(gain, hs), dy, dh, straight, d, through,
            NAME=form.name, NORMAL=normal,
        )  # fmt: skip
        dh[:n] = p.times(through[t, :n], weight)
    size = s.size
    dq = d[..., 2 * size :] * gates[..., :size]
    dgain = None
    if normal:
        dgain = torch.cat(
            [(d[..., : 2 * size] * hat[..., : 2 * size]).sum((0, 1)), (dq * hat[..., 2 * size :]).sum((0, 1))]
        )
    return d.transpose(0, 1), dh + straight, None, p.gradient(through, hs[:-1]), dq.sum((0, 1)), dgain, None


def _before_forward(p: MatrixProducts, form: Recurrence, given: Any) -> tuple[Tensor, ...]:
    z, h, _, w, _, gain, gain_n = given
    s, normal = _Steps(p, z, h.shape[1]), gain is not None
    gates, hs, read = s.gates(), p.states(h, z.shape[1]), s.room(h.shape[1])
    weight_g, weight_n = p.cast(w).split([2 * s.size, s.size])
    norms = [s.room(2 * s.size), s.room(2), s.room(s.size), s.room(1)] if normal else [gates] * 4
    hat, rate, hat_n, rate_n = norms
    for t, n in s.onward():
        product = p.times(hs[t, :n], weight_g)
        s.run(gru.before_gates, t, gates, product, hs, read, hat, rate, _or(gain, hs), NORMAL=normal)
        product = p.times(read[t, :n], weight_n)
        s.run(
            gru.before_state,
            t,
            gates,
            product,
            hs,
            hat_n,
            rate_n,
            _or(gain_n, hs),
            NAME=form.name,
            NORMAL=normal,
        )
    return hs, hs, gates, read, *norms


def _before_backward(
    p: MatrixProducts, form: Recurrence, given: Any, kept: Any, dy: Tensor, dh: Tensor, _: None
) -> Given:
    z, _, _, w, _, gain, gain_n = given
    hs, _, gates, read, hat, rate, hat_n, rate_n = kept
    s, normal = _Steps(p, z, hs.shape[2]), gain is not None
    weight_g, weight_n = p.cast(w).split([2 * s.size, s.size])
    d, dn, straight = s.room(2 * s.size), s.room(s.size), torch.zeros_like(dh)
    through, through_n = (s.room(2 * s.size), s.room(s.size)) if normal else (d, dn)
    for t, n in s.back():
        s.run(
            gru.before_state_backward, t, gates, dy, dh, straight, dn, through_n, hat_n, rate_n,
            _or(gain_n, hs), NAME=form.name, NORMAL=normal,
        )  # fmt: skip
        product = p.times(through_n[t, :n], weight_n.mT)
        s.run(
            gru.before_gates_backward, t, gates, hs, product, straight, d, through, hat, rate, _or(gain, hs),
            NORMAL=normal,
        )  # fmt: skip
        dh[:n] = p.times(through[t, :n], weight_g.mT)
    dw = torch.cat([p.gradient(through, hs[:-1]), p.gradient(through_n, read)])
    dgain = (d * hat).sum((0, 1)) if normal else None
    dgain_n = (dn * hat_n).sum((0, 1)) if normal else None
    return torch.cat([d, dn], 2).transpose(0, 1), dh + straight, None, dw, None, dgain, dgain_n


def _or(tensor: Tensor | None, other: Tensor) -> Tensor:
    """The tensor, or `other` as a pointer that the kernel never reads."""
    return other if tensor is None else tensor.contiguous()


KINDS = {
    "elman": Kind(_elman_forward, _elman_backward),
    "lstm": Kind(_lstm_forward, _lstm_backward),
    "gru": Kind(_gru_forward, _gru_backward),
    "gru_before": Kind(_before_forward, _before_backward),
}
