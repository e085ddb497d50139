"""Recurrent layers with back-propagation through time written by hand in torch operations.

One product computes the inputs of all steps. Each step then costs the recurrent product and a few in-place
operations. The backward pass computes in advance what it can for all steps at once, and each weight's
gradient is one product at the end. This way is used where there is no compiled code and torch has no faster
operation: also in float64, on any device, and under autocast, where only the products use autocast's dtype.
The plain twin is the loop over a cell's `step`. Read next: rows.py.
"""

from typing import Any

import torch
from torch import Tensor

from weft.nn.activations import SLOPE, activate
from weft.nn.kernels.cells.form import ACTIVATIONS
from weft.nn.kernels.cells.products import Products, graph_or, plain_forward
from weft.nn.kernels.cells.rows import Sorted, sort

CELLS = (*ACTIVATIONS, "gru", "gru_before", "peephole")

sigmoid_slope = torch.ops.aten.sigmoid_backward.grad_input  # (grad, y, grad_input=out): grad y (1 - y)
tanh_slope = torch.ops.aten.tanh_backward.grad_input  # grad (1 - y^2)
relu_slope = torch.ops.aten.threshold_backward.grad_input


def run(
    cell: str,
    x: Tensor,
    h: Tensor,
    c: Tensor | None,
    weight_x: Tensor,
    weight_h: Tensor,
    bias: Tensor,
    extra: Tensor | None,
    mask: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Compute a layer; see compiled.run. cell: one of CELLS."""
    kind = {"gru": _GRU, "gru_before": _GRUBefore, "peephole": _Peephole}.get(cell, _Elman)
    rows = sort(x, mask)
    low = torch.get_autocast_dtype(x.device.type) if torch.is_autocast_enabled(x.device.type) else None
    wide = weight_h.dtype
    given = [rows.take(x).to(wide).transpose(0, 1), rows.take(h).to(wide)]  # type: ignore[union-attr]
    given += [] if c is None else [rows.take(c).to(wide)]  # type: ignore[union-attr]
    outs = kind.apply(rows, low, cell, *given, weight_x, weight_h, bias, *(() if extra is None else (extra,)))
    y, h, *rest = outs
    back = rows.give_back
    return back(y.transpose(0, 1)), back(h), back(rest[0]) if rest else None  # type: ignore[return-value]


class _Elman(torch.autograd.Function):
    @staticmethod
    @plain_forward
    def forward(  # type: ignore[override]
        ctx: Any, rows: Sorted, low: Any, cell: str, x: Tensor, h: Tensor, wx: Tensor, wh: Tensor, b: Tensor
    ) -> tuple[Tensor, Tensor]:
        p = Products(rows, low, wh.dtype)
        name = ACTIVATIONS[cell]
        inputs = torch.zeros_like(b) if name == "modrelu" else b
        gates, hs, weight = p.inputs(x, wx, inputs), p.states(h, len(x)), p.cast(wh)
        for n, g, before, after in zip(
            p.counts, gates.unbind(), hs[:-1].unbind(), hs[1:].unbind(), strict=True
        ):
            g = g[:n]
            if low is None:
                g.addmm_(before[:n], weight.mT)
            else:
                g.add_(p.times(before[:n], weight))
            _activate(name, g, b, after[:n])
        ctx.save_for_backward(x, h, wx, wh, b, hs)
        ctx.p, ctx.cell = p, cell
        return hs[1:], p.last(hs)

    @staticmethod
    @graph_or
    def backward(ctx: Any, dy: Tensor, dh: Tensor) -> tuple[Any, ...]:  # type: ignore[override]
        x, _, wx, wh, _, hs = ctx.saved_tensors
        p, dh = ctx.p, dh.clone()
        d, weight = dy.new_zeros(dy.shape), p.cast(wh).mT
        for t in reversed(range(len(dy))):
            n = p.counts[t]
            whole = dh[:n].add_(dy[t, :n])
            _slope(ACTIVATIONS[ctx.cell], whole, hs[t + 1, :n], d[t, :n])
            dh[:n] = p.times(d[t, :n], weight)
        dx = p.back(d, wx) if ctx.needs_input_grad[3] else None
        db = (d * hs[1:].sign() if ctx.cell == "elman_modrelu" else d).sum((0, 1))
        return None, None, None, dx, dh, p.gradient(d, x), p.gradient(d, hs[:-1]), db


def _activate(name: str, z: Tensor, bias: Tensor, out: Tensor) -> None:
    """Write g(z) to `out`; z is overwritten."""
    match name:
        case "tanh":
            torch.tanh(z, out=out)
        case "relu":
            torch.clamp(z, min=0.0, out=out)
        case "sigmoid":
            torch.sigmoid(z, out=out)
        case "modrelu":
            torch.mul(z.sign(), z.abs_().add_(bias).clamp_(min=0.0), out=out)
        case _:
            out.copy_(activate(z, name))


def _slope(name: str, grad: Tensor, y: Tensor, out: Tensor) -> None:
    """Write grad * g'(z) to `out`, from y = g(z)."""
    match name:
        case "tanh":
            tanh_slope(grad, y, grad_input=out)
        case "relu":
            relu_slope(grad, y, 0, grad_input=out)
        case "sigmoid":
            sigmoid_slope(grad, y, grad_input=out)
        case "modrelu":
            torch.mul(grad, y != 0, out=out)
        case "leaky_relu":
            torch.ops.aten.leaky_relu_backward.grad_input(grad, y, SLOPE, True, grad_input=out)
        case "elu":
            torch.ops.aten.elu_backward.grad_input(grad, 1.0, 1.0, 1.0, True, y, grad_input=out)


class _GRU(torch.autograd.Function):
    @staticmethod
    @plain_forward
    def forward(  # type: ignore[override]
        ctx: Any,
        rows: Sorted,
        low: Any,
        cell: str,
        x: Tensor,
        h: Tensor,
        wx: Tensor,
        wh: Tensor,
        b: Tensor,
        bn: Tensor,
    ) -> tuple[Tensor, Tensor]:
        p, size = Products(rows, low, wh.dtype), h.shape[1]
        gates, hs, weight = p.inputs(x, wx, b), p.states(h, len(x)), p.cast(wh)
        inner = hs.new_zeros(len(x), *h.shape)
        for t, n in enumerate(p.counts):
            g, before, q = gates[t, :n], hs[t, :n], inner[t, :n]
            u = p.times(before, weight)
            g[:, : 2 * size].add_(u[:, : 2 * size]).sigmoid_()
            torch.add(u[:, 2 * size :], bn, out=q)
            r, z, candidate = g.chunk(3, 1)
            candidate.addcmul_(r, q).tanh_()
            torch.lerp(candidate, before, z, out=hs[t + 1, :n])
        ctx.save_for_backward(x, h, wx, wh, b, bn, hs, inner, gates)
        ctx.p, ctx.cell = p, cell
        return hs[1:], p.last(hs)

    @staticmethod
    @graph_or
    def backward(ctx: Any, dy: Tensor, dh: Tensor) -> tuple[Any, ...]:  # type: ignore[override]
        x, _, wx, wh, _, _, hs, inner, gates = ctx.saved_tensors
        p, dh, size = ctx.p, dh.clone(), hs.shape[2]
        r, z, candidate = gates.chunk(3, 2)
        d = torch.empty_like(gates)  # first d/dh, then times dh: r, z and the candidate's W_h side
        dr, dz, dn = d.chunk(3, 2)
        before_n = torch.ops.aten.tanh_backward(1 - z, candidate)  # the candidate's W_x side
        sigmoid_slope(hs[:-1] - candidate, z, grad_input=dz)
        torch.mul(torch.ops.aten.sigmoid_backward(inner, r), before_n, out=dr)
        torch.mul(before_n, r, out=dn)
        weight = p.cast(wh).mT
        for t in reversed(range(len(dy))):
            n = p.counts[t]
            whole = dh[:n].add_(dy[t, :n])
            d[t, :n].view(n, 3, size).mul_(whole[:, None])
            before_n[t, :n].mul_(whole)
            torch.addcmul(p.times(d[t, :n], weight), whole, z[t, :n], out=dh[:n])
        p.clear(d, before_n)
        dwh, db = p.gradient(d, hs[:-1]), d.sum((0, 1))
        dbn = db[2 * size :].clone()
        dn.copy_(before_n)  # from here on, dn is the W_x side
        db[2 * size :] = before_n.sum((0, 1))
        dx = p.back(d, wx) if ctx.needs_input_grad[3] else None
        return None, None, None, dx, dh, p.gradient(d, x), dwh, db, dbn


class _GRUBefore(torch.autograd.Function):
    @staticmethod
    @plain_forward
    def forward(  # type: ignore[override]
        ctx: Any, rows: Sorted, low: Any, cell: str, x: Tensor, h: Tensor, wx: Tensor, wh: Tensor, b: Tensor
    ) -> tuple[Tensor, Tensor]:
        p, size = Products(rows, low, wh.dtype), h.shape[1]
        gates, hs = p.inputs(x, wx, b), p.states(h, len(x))
        weight_g, weight_n = p.cast(wh).split([2 * size, size])
        read = hs.new_zeros(len(x), *h.shape)  # r h
        for t, n in enumerate(p.counts):
            g, before, rh = gates[t, :n], hs[t, :n], read[t, :n]
            g[:, : 2 * size].add_(p.times(before, weight_g)).sigmoid_()
            r, z, candidate = g.chunk(3, 1)
            torch.mul(r, before, out=rh)
            candidate.add_(p.times(rh, weight_n)).tanh_()
            torch.lerp(candidate, before, z, out=hs[t + 1, :n])
        ctx.save_for_backward(x, h, wx, wh, b, hs, read, gates)
        ctx.p, ctx.cell = p, cell
        return hs[1:], p.last(hs)

    @staticmethod
    @graph_or
    def backward(ctx: Any, dy: Tensor, dh: Tensor) -> tuple[Any, ...]:  # type: ignore[override]
        x, _, wx, wh, _, hs, read, gates = ctx.saved_tensors
        p, dh, size = ctx.p, dh.clone(), hs.shape[2]
        r, z, candidate = gates.chunk(3, 2)
        d = torch.empty_like(gates)
        dr, dz, dn = d.chunk(3, 2)
        sigmoid_slope(hs[:-1], r, grad_input=dr)
        sigmoid_slope(hs[:-1] - candidate, z, grad_input=dz)
        tanh_slope(1 - z, candidate, grad_input=dn)
        weight_g, weight_n = p.cast(wh).split([2 * size, size])
        for t in reversed(range(len(dy))):
            n = p.counts[t]
            whole = dh[:n].add_(dy[t, :n])
            d[t, :n, size:].view(n, 2, size).mul_(whole[:, None])
            through = p.times(dn[t, :n], weight_n.mT)
            dr[t, :n].mul_(through)
            kept = torch.mul(whole, z[t, :n]).addcmul_(through, r[t, :n])
            torch.add(kept, p.times(d[t, :n, : 2 * size], weight_g.mT), out=dh[:n])
        p.clear(d)
        dwh = torch.cat([p.gradient(d[..., : 2 * size], hs[:-1]), p.gradient(dn, read)])
        dx = p.back(d, wx) if ctx.needs_input_grad[3] else None
        return None, None, None, dx, dh, p.gradient(d, x), dwh, d.sum((0, 1))


class _Peephole(torch.autograd.Function):
    @staticmethod
    @plain_forward
    def forward(  # type: ignore[override]
        ctx: Any, rows: Sorted, low: Any, cell: str, x: Tensor, h: Tensor, c: Tensor, wx: Tensor, wh: Tensor,
        b: Tensor, peep: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
        p = Products(rows, low, wh.dtype)
        gates, hs, cs, weight = p.inputs(x, wx, b), p.states(h, len(x)), p.states(c, len(x)), p.cast(wh)
        size = h.shape[1]
        for t, n in enumerate(p.counts):
            g, before, now = gates[t, :n], cs[t, :n], cs[t + 1, :n]
            g.add_(p.times(hs[t, :n], weight))
            i, f, candidate, o = g.chunk(4, 1)
            i.addcmul_(before, peep[0])
            f.addcmul_(before, peep[1])
            g[:, : 2 * size].sigmoid_()
            candidate.tanh_()
            torch.mul(f, before, out=now).addcmul_(i, candidate)
            o.addcmul_(now, peep[2]).sigmoid_()
            torch.mul(o, now.tanh(), out=hs[t + 1, :n])
        ctx.save_for_backward(x, h, c, wx, wh, b, peep, hs, cs, gates)
        ctx.p, ctx.cell = p, cell
        return hs[1:], p.last(hs), p.last(cs)

    @staticmethod
    @graph_or
    def backward(ctx: Any, dy: Tensor, dh: Tensor, dc: Tensor) -> tuple[Any, ...]:  # type: ignore[override]
        x, _, _, wx, wh, _, peep, hs, cs, gates = ctx.saved_tensors
        p, dh, dc = ctx.p, dh.clone(), dc.clone()
        i, f, candidate, o = gates.chunk(4, 2)
        d = torch.empty_like(gates)  # first d/dc (d/dh for o), then times dc (dh)
        di, df, dn, do = d.chunk(4, 2)
        shown = cs[1:].tanh()
        sigmoid_slope(candidate, i, grad_input=di)
        sigmoid_slope(cs[:-1], f, grad_input=df)
        tanh_slope(i, candidate, grad_input=dn)
        sigmoid_slope(shown, o, grad_input=do)
        into = torch.ops.aten.tanh_backward(o, shown).addcmul_(do, peep[2])  # dc/dh
        weight = p.cast(wh).mT
        for t in reversed(range(len(dy))):
            n = p.counts[t]
            whole, cell = dh[:n].add_(dy[t, :n]), dc[:n]
            cell.addcmul_(whole, into[t, :n])
            do[t, :n].mul_(whole)
            d[t, :n].view(n, 4, dh.shape[1])[:, :3].mul_(cell[:, None])
            cell.mul_(f[t, :n]).addcmul_(di[t, :n], peep[0]).addcmul_(df[t, :n], peep[1])
            dh[:n] = p.times(d[t, :n], weight)
        p.clear(d)
        dpeep = torch.stack(
            [(di * cs[:-1]).sum((0, 1)), (df * cs[:-1]).sum((0, 1)), (do * cs[1:]).sum((0, 1))]
        )
        dx = p.back(d, wx) if ctx.needs_input_grad[3] else None
        return None, None, None, dx, dh, dc, p.gradient(d, x), p.gradient(d, hs[:-1]), d.sum((0, 1)), dpeep
