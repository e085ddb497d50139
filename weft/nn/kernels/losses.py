"""Losses: cross-entropy over a large vocabulary with its output product, and word2vec with negative samples.

The logits [N, V] are the largest tensor of a sequence model. Here only a few rows of them exist at a time.
The forward pass computes their loss and their gradient together, and keeps only the gradients of h, W and b.
The plain twin is `plain_cross_entropy`, with which the tests compare it.

native   compiled code does what follows the product, row by row; float32 and bfloat16 on the CPU
torch    the same in torch operations

word2vec's compiled code multiplies real neighbours alone; in torch they are a band of an [L, L] matrix, so
that all scores are matrix products. Nothing is measured: compiled code does less work.
Read next: linear.py; ../embed/neighbours.py, word2vec's model; ../../native/losses.cpp.
"""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import functional

from weft import native
from weft.errors import ShapeError
from weft.native import jobs, pointer
from weft.nn.kernels.choice import compiles
from weft.nn.kernels.linear import linear

IGNORED = -100
"""The target of a position that does not count, as in torch.nn.functional.cross_entropy."""

ELEMENTS = 1 << 23  # logits that exist at a time; smaller blocks make the products slower


def cross_entropy(
    h: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    target: Tensor,
    smoothing: float = 0.0,
    *,
    padded: bool = False,
) -> tuple[Tensor, Tensor]:
    """Sum over rows of -(1 - e) log p(target) - e/V sum_v log p(v), p = softmax(W h + b), h [N, D].

    Returns the smoothed sum [], and the plain sum -log p(target) [] (without gradient), in nats.
    """
    _check(h, weight, bias, target)
    device = h.device.type
    if torch.is_autocast_enabled(device):
        h = h.to(torch.get_autocast_dtype(device))
    grads = torch.is_grad_enabled() and (h.requires_grad or weight.requires_grad)
    return _CrossEntropy.apply(h, weight, bias, target, smoothing, grads, padded)


def plain_cross_entropy(
    h: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor, smoothing: float = 0.0
) -> tuple[Tensor, Tensor]:
    """`cross_entropy` with torch's own functions, all logits at once."""
    logits = linear(h, weight, bias)
    total = F.cross_entropy(logits, target, reduction="sum", label_smoothing=smoothing)
    return total, F.cross_entropy(logits.detach(), target, reduction="sum")


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any,
        h: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        target: Tensor,
        smoothing: float,
        grads: bool,
        padded: bool,
    ) -> tuple[Tensor, Tensor]:
        size, w = len(weight), weight.to(h.dtype)
        soften: _Native | _Torch
        if not padded and compiles("cross_entropy", h):
            soften = _Native(h, size, bias, smoothing, grads)
        else:
            soften = _Torch(h, size, bias, smoothing, grads, padded=padded)
        dh = torch.empty_like(h) if grads else None
        dw: Tensor | None = None
        block = max(1, ELEMENTS // size)
        with torch.autocast(h.device.type, enabled=False):
            for at in range(0, len(h), block):
                hs = h[at : at + block]
                logits = linear(hs, w)
                soften(logits, target[at : at + block], logits if grads else None)
                if dh is None:
                    continue
                dh[at : at + block] = linear(logits, w.mT)  # they hold their gradient now
                part = linear(logits.mT, hs.mT).to(soften.wide)
                dw = part if dw is None else dw.add_(part)
        if dh is not None and dw is None:  # no rows
            dw = torch.zeros(weight.shape, dtype=soften.wide, device=h.device)
        total, plain, db = soften.ended()
        ctx.save_for_backward(*(g for g in (dh, dw, db) if g is not None))
        ctx.mark_non_differentiable(plain)
        ctx.dtypes = weight.dtype, None if bias is None else bias.dtype
        return total, plain

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        dh, dw, *db = ctx.saved_tensors
        weight_dtype, bias_dtype = ctx.dtypes
        bias = (db[0] * grad).to(bias_dtype) if db else None
        return dh * grad.to(dh.dtype), (dw * grad).to(weight_dtype), bias, *(None,) * 4


class _Torch:
    """Adds up the losses of rows of logits and writes their gradients, in torch operations.

    The input of the output layer, h, says dtype and device; with `padded` targets may be IGNORED.
    """

    def __init__(
        self, h: Tensor, size: int, bias: Tensor | None, smoothing: float, grads: bool, *, padded: bool
    ) -> None:
        self._padded = padded
        self.wide = torch.promote_types(h.dtype, torch.float32)
        self._bias = None if bias is None else bias.to(self.wide)
        self._size, self._smoothing = size, smoothing
        self._sums = h.new_zeros(2, dtype=self.wide)
        self._db = h.new_zeros(size, dtype=self.wide) if grads and bias is not None else None

    def __call__(self, logits: Tensor, target: Tensor, out: Tensor | None) -> None:
        """Logits [n, V] without the bias, targets [n]; the gradient goes into `out`, perhaps the logits."""
        size, smoothing, wanted = self._size, self._smoothing, target[:, None]
        logits = logits.to(self.wide)
        logp = torch.log_softmax(logits if self._bias is None else logits + self._bias, -1)
        padding = wanted == IGNORED if self._padded else None
        if padding is not None:
            logp, wanted = logp.masked_fill(padding, 0.0), wanted.masked_fill(padding, 0)
        nll = -logp.gather(1, wanted).sum()
        total = (1 - smoothing) * nll
        if smoothing:  # without it, 0 * log(0) of an impossible class would be NaN
            total = total - smoothing / size * logp.sum()
        self._sums += torch.stack([total, nll])
        if out is None:
            return
        grad = logp.exp_().sub_(smoothing / size)
        grad.scatter_add_(1, wanted, grad.new_full(wanted.shape, smoothing - 1))
        if padding is not None:
            grad.masked_fill_(padding, 0.0)
        if self._db is not None:
            self._db += grad.sum(0)
        out.copy_(grad)

    def ended(self) -> tuple[Tensor, Tensor, Tensor | None]:
        """The smoothed sum [], the plain sum [], and the gradient of the bias [V] or None."""
        return self._sums[0].clone(), self._sums[1].clone(), self._db


class _Native:
    """`_Torch` in compiled code."""

    wide = torch.float32

    def __init__(self, h: Tensor, size: int, bias: Tensor | None, smoothing: float, grads: bool) -> None:
        self._bias = None if bias is None else bias.float().contiguous()
        self._size, self._smoothing = size, smoothing
        self._slabs = native.slabs(len(h))
        # dtypes that the compiled code expects, independent of torch's default dtype
        self._room = torch.empty(self._slabs, size, dtype=torch.float32, device=h.device)
        self._sums = torch.zeros(self._slabs, 2, dtype=torch.float64, device=h.device)
        self._db = torch.zeros_like(self._room) if grads and bias is not None else None

    def __call__(self, logits: Tensor, target: Tensor, out: Tensor | None) -> None:
        logits, target = logits.contiguous(), target.contiguous()
        if not 0 <= int(target.min()) <= int(target.max()) < self._size:
            raise ShapeError(
                f"expected targets from 0 to {self._size - 1}, got {int(target.min())} to {int(target.max())}"
            )
        rows, half = len(logits), logits.dtype == torch.bfloat16
        job = jobs.Losses(
            rows, self._size, min(self._slabs, rows), half, self._smoothing,
            *map(pointer, (logits, self._bias, target, out, self._db, self._room, self._sums)),
        )  # fmt: skip
        native.call("weft_losses", job)

    def ended(self) -> tuple[Tensor, Tensor, Tensor | None]:
        total, plain = self._sums.sum(0).float()
        return total.clone(), plain.clone(), None if self._db is None else self._db.sum(0)


def _check(h: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor) -> None:
    """Check the shapes: compiled code would read past the end of a tensor that is too small."""
    fits = h.dim() == weight.dim() == 2 and h.shape[1] == weight.shape[1] and target.shape == h.shape[:1]
    if not fits or (bias is not None and bias.shape != weight.shape[:1]):
        biased = "" if bias is None else f", {list(bias.shape)}"
        raise ShapeError(
            "expected h [N, D], weight [V, D], bias [V] and target [N], "
            f"got {list(h.shape)}, {list(weight.shape)}{biased} and {list(target.shape)}"
        )
    if target.dtype != torch.int64 or target.device != h.device:
        raise ShapeError(
            f"expected targets of torch.int64 on {h.device}, got {target.dtype} on {target.device}"
        )


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
    share = negatives / places.noise.shape[1]
    if not compiles("word2vec", u, v):
        return _torch(u, v, places, share, cbow, sparse)
    grads = torch.is_grad_enabled() and (u.requires_grad or v.requires_grad)
    return _Word2vec.apply(u, v, places, share, cbow, grads, [sparse and each.is_leaf for each in (u, v)])


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
        _check_places(u, v, places)
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


def _check_places(u: Tensor, v: Tensor, places: Places) -> None:
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
