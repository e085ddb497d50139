"""Softmax and cross-entropy over a large vocabulary, together with the output product.

The logits [N, V] are the largest tensor of a sequence model. Here only a few rows of them exist at a time.
The forward pass computes their loss and their gradient together, and keeps only the gradients of h, W and b.
The plain twin is `plain_cross_entropy`, with which the tests compare it.

native   compiled code does what follows the product, row by row; float32 and bfloat16 on the CPU
torch    the same in torch operations

Nothing is measured: compiled code does less work. Read next: linear.py; ../../native/losses.cpp.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

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
