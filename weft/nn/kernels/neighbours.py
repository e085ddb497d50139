"""The loss of word2vec with negative samples, and the gradients of both tables.

native   compiled code multiplies real neighbours alone; float32 on the CPU
torch    the neighbours as a band of an [L, L] matrix, so that all scores are matrix products

Nothing is measured: compiled code does less work. Read next: ../embed/neighbours.py, the model;
../../native/neighbours.cpp.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from weft import native
from weft.errors import ShapeError
from weft.native import jobs, pointer
from weft.nn.kernels.choice import compiles


class Places(NamedTuple):
    """Rows of text as places in two tables.

    inner: [B, L] rows of u.
    outer: [B, L] rows of v.
    lines: [B, L] neighbours are in the same line; below 0 is padding.
    reach: [B, L] window size of each word.
    noise: [B, N] rows of v, the negative samples.
    """

    inner: Tensor
    outer: Tensor
    lines: Tensor
    reach: Tensor
    noise: Tensor


def word2vec(
    u: Tensor, v: Tensor, places: Places, negatives: int, *, cbow: bool, sparse: bool = False
) -> tuple[Tensor, Tensor]:
    """Skip-gram or CBOW with negative samples, each with weight K / N per neighbour.

    Returns the loss in nats, summed [], and the number of pairs (skip-gram) or words (CBOW) [].
    """
    run = _native if compiles("word2vec", u, v) else _torch
    return run(u, v, places, negatives / places.noise.shape[1], cbow, sparse)


def _torch(
    u: Tensor, v: Tensor, places: Places, share: float, cbow: bool, sparse: bool
) -> tuple[Tensor, Tensor]:
    near = _near(places, v.dtype)
    number = near.sum(2)  # [B, L]
    inner, outer = functional.embedding(places.inner, u), functional.embedding(places.outer, v)
    noise = functional.embedding(places.noise, v)
    if cbow:
        inner = (near / number.clamp(min=1)[..., None]) @ inner
        number = (number > 0).to(inner.dtype)
        true = (functional.softplus(-(inner * outer).sum(2)) * number).sum()
    else:
        true = (functional.softplus(-(inner @ outer.mT)) * near).sum()
    drawn = (functional.softplus(inner @ noise.mT).sum(2) * number * share).sum()
    return true + drawn, number.sum()


def _near(places: Places, dtype: torch.dtype) -> Tensor:
    """[B, L, L] 1 if s is a neighbour of t, else 0."""
    at = torch.arange(places.lines.shape[1], device=places.lines.device)
    apart = (at[:, None] - at).abs()
    near = (apart <= places.reach[..., None]) & (apart > 0)
    same = (places.lines[..., None] == places.lines[:, None]) & (places.lines >= 0)[..., None]
    return (near & same).to(dtype)


def _native(
    u: Tensor, v: Tensor, places: Places, share: float, cbow: bool, sparse: bool
) -> tuple[Tensor, Tensor]:
    grads = torch.is_grad_enabled() and (u.requires_grad or v.requires_grad)
    return _Word2vec.apply(u, v, places, share, cbow, grads, [sparse and each.is_leaf for each in (u, v)])


class _Gradient(NamedTuple):
    """The gradient of a table.

    rows: [R] the rows that it holds, in order; None if it holds all of them.
    values: [R, D].
    places: rows of `values` for each of the given places.
    """

    rows: Tensor | None
    values: Tensor
    places: list[Tensor]

    def tensor(self, table: Tensor) -> Tensor:
        """As a tensor like the table, sparse if it holds only some rows."""
        if self.rows is None:
            return self.values
        return torch.sparse_coo_tensor(
            self.rows[None], self.values, table.shape, is_coalesced=True, check_invariants=False
        )


def _empty(table: Tensor, places: list[Tensor], sparse: bool) -> _Gradient:
    if not sparse:
        return _Gradient(None, torch.zeros_like(table), places)
    read = torch.zeros(len(table), dtype=torch.bool)
    for each in places:
        read.index_fill_(0, each.flatten(), True)
    rows = read.nonzero()[:, 0]
    to = torch.empty(len(table), dtype=torch.int64)
    to[rows] = torch.arange(len(rows))
    return _Gradient(rows, table.new_zeros(len(rows), table.shape[1]), [to[each] for each in places])


class _Word2vec(torch.autograd.Function):
    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any,
        u: Tensor,
        v: Tensor,
        places: Places,
        share: float,
        cbow: bool,
        grads: bool,
        sparse: list[bool],
    ) -> tuple[Tensor, Tensor]:
        _check(u, v, places)
        u, v = u.contiguous(), v.contiguous()
        (rows, length), drawn, size = places.inner.shape, places.noise.shape[1], u.shape[1]
        texts = Places(*(part.contiguous() for part in places))
        to: list[Tensor | None] = [None] * 5
        if grads:
            du = _empty(u, [texts.inner], sparse[0])
            dv = _empty(v, [texts.outer, texts.noise], sparse[1])
            to = [*du.places, *dv.places, du.values, dv.values]
            ctx.gradients = [gradient.tensor(table) for gradient, table in ((du, u), (dv, v))]
        slabs = native.slabs(rows)
        width = native.loaded("neighbours").width
        wide, many = (-(-each // width) * width for each in (size, drawn))
        floats = (6 * length + 2 * many) * wide + (size + length) * many + -(-length // width) * width
        room = torch.empty(slabs * floats, dtype=torch.float32)
        sums = torch.zeros(rows, 2, dtype=torch.float64)
        job = jobs.NeighboursJob(
            rows, length, drawn, size, cbow, slabs, share,
            *map(pointer, (*texts, *to[:3], u, v, *to[3:], room, sums)),
        )  # fmt: skip
        native.call("weft_neighbours", job)
        total, count = sums.sum(0).float()
        ctx.mark_non_differentiable(count)
        return total, count

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        by = grad.item()  # 1 in training; the tables are large
        du, dv = ctx.gradients
        return *((du, dv) if by == 1 else (du * by, dv * by)), None, None, None, None, None


def _check(u: Tensor, v: Tensor, places: Places) -> None:
    """Check all places: compiled code would read past the end of a table."""
    tables = (
        ("inner", places.inner, len(u)),
        ("outer", places.outer, len(v)),
        ("noise", places.noise, len(v)),
    )
    for name, rows, size in tables:
        least, most = (int(each) for each in rows.aminmax()) if rows.numel() else (0, 0)
        if rows.dtype != torch.int64 or not 0 <= least <= most < size:
            raise ShapeError(
                f"{name}: expected places of torch.int64 from 0 to {size - 1}, "
                f"got {least} to {most} of {rows.dtype}"
            )
    shapes = {tuple(each.shape) for each in places[:4]}
    if len(shapes) > 1 or u.shape[1] != v.shape[1] or len(places.noise) != len(places.inner):
        raise ShapeError(
            f"expected places [B, L], noise [B, N] and tables of one width, got {sorted(shapes)}, "
            f"{list(places.noise.shape)}, {u.shape[1]} and {v.shape[1]}"
        )
