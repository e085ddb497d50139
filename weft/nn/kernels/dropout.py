"""Dropout with 16 random bits per element, and the sum that often follows it.

Each element's number is a hash of its place and of one 64-bit draw, so nothing is kept for the backward pass.
torch's dropout on the CPU draws one number at a time: 18 ms for 2.5 M elements.

native   one pass of compiled code, float32 on the CPU
torch    the same numbers in torch operations; where nothing was compiled, numbers drawn by torch

torch.nn.functional.dropout, which draws other numbers, is used on other devices and under torch.compile.
(torch.compile cannot pass a generator in; it uses torch's own, which restarts for each batch.)
Read next: ../../native/dropping.cpp.
"""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weft import native
from weft.errors import ConfigError
from weft.native import jobs, pointer
from weft.nn.kernels.choice import compiles
from weft.nn.randomness import for_rows, open_generator, open_rows

LEVELS = 1 << 16
GROUP = 32  # elements that share 16 hashes: the low halves, then the high halves
PIECE = 1 << 15  # elements worth a thread


def dropout(x: Tensor, share: float, *, training: bool, onto: Tensor | None = None) -> Tensor:
    """Set a share of the elements to zero and scale the others up, so that the mean is unchanged.

    The share is 0 to 1; on the CPU in steps of 1/65536.
    """
    if not training or share <= 0.0:
        return x if onto is None else onto + x
    if torch.compiler.is_compiling() or ((x.device.type != "cpu" or share >= 1.0) and open_rows() is None):
        return _sum(F.dropout(x, share), onto)
    if x.device.type != "cpu" or share >= 1.0:
        return _sum(x * for_rows(lambda shape: F.dropout(x.new_ones(shape), share), x.shape), onto)
    dropped = min(LEVELS - 1, max(1, round(share * LEVELS)))
    key = int(torch.empty((), dtype=torch.int64).random_(-(2**63), None, generator=open_generator()))
    same = onto is None or onto.shape == x.shape
    if same and open_rows() is None and compiles("dropout", x, onto):  # a part draws the numbers of the whole
        return _Drop.apply(x, onto, dropped, key)  # type: ignore[no-any-return]
    return by_torch(x, onto, dropped, key)


def by_torch(x: Tensor, onto: Tensor | None, dropped: int, key: int) -> Tensor:
    """`dropout` in torch operations; each element is dropped with probability `dropped` / 65536."""
    return _sum(x * for_rows(lambda shape: _factors(shape, dropped, key), x.shape).to(x.dtype), onto)


def _sum(x: Tensor, onto: Tensor | None) -> Tensor:
    return x if onto is None else onto + x


def _factors(shape: tuple[int, ...], dropped: int, key: int) -> Tensor:
    """0 where an element is dropped, else the scale; in compiled code where possible, also for bfloat16."""
    count, scale = math.prod(shape), LEVELS / (LEVELS - dropped)
    ones = torch.ones(shape, dtype=torch.float32, device="cpu")
    if compiles("dropout", ones):
        return _drop(ones, None, dropped, key)
    if (
        native.loaded("dropping").library is None
    ):  # hashing in torch operations takes twice as long as drawing
        bits = torch.empty((count + 3) // 4, dtype=torch.int64, device="cpu")
        bits = bits.random_(-(2**63), None, generator=open_generator()).view(torch.int16)
        return (bits[:count] >= dropped - LEVELS // 2).view(shape).float().mul_(scale)
    n = _hashes(-(-count // GROUP) * 16, key).view(-1, 1, 16)
    kept = torch.cat([n << 16, n], 1) >= (dropped - LEVELS // 2) * LEVELS  # low halves, then high ones
    return kept.view(-1)[:count].view(shape).float().mul_(scale)


def _hashes(count: int, key: int) -> Tensor:
    """Hashes of 0 .. count - 1, [count] int32: Chris Wellons' triple32 with a key, as in dropping.cpp."""
    low, high = torch.tensor([key]).view(torch.int32).tolist()
    n = torch.arange(count, dtype=torch.int32).add_(low)
    for shift, factor, added in ((17, -0x12A52B45, high), (11, -0x53B3E4AF, 0), (15, 0x31848BAB, 0)):
        n = _mixed(n, shift).mul_(factor)
        n = n.add_(added) if added else n
    return _mixed(n, 14)


def _mixed(n: Tensor, shift: int) -> Tensor:
    """n xor (n >> shift), with zeros shifted in."""
    return n.bitwise_xor_((n >> shift).bitwise_and_((1 << (32 - shift)) - 1))


def _drop(x: Tensor, onto: Tensor | None, dropped: int, key: int) -> Tensor:
    x, onto = x.contiguous(), None if onto is None else onto.contiguous()
    y = torch.empty_like(x)
    job = jobs.Drop(
        x.numel(), native.slabs(x.numel() // PIECE), key, dropped - LEVELS // 2,
        LEVELS / (LEVELS - dropped), *map(pointer, (x, onto, y)),
    )  # fmt: skip
    native.call("weft_drop", job)
    return y


class _Drop(torch.autograd.Function):
    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, x: Tensor, onto: Tensor | None, dropped: int, key: int
    ) -> Tensor:
        ctx.dropped, ctx.key = dropped, key
        return _drop(x, onto, dropped, key)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        dx = _Drop.apply(dy, None, ctx.dropped, ctx.key) if ctx.needs_input_grad[0] else None
        return dx, dy if ctx.needs_input_grad[1] else None, None, None


class Dropout(nn.Module):
    """`dropout` as a module.

    Args:
        share: share of the elements set to zero in training.

    Raises:
        ConfigError: the share is not between 0 and 1.

    Example:
        >>> import torch
        >>> x = torch.ones(2, 3)
        >>> torch.equal(Dropout(0.5).eval()(x), x)  # nothing is dropped in use
        True
    """

    def __init__(self, share: float = 0.1) -> None:
        super().__init__()
        if not 0.0 <= share <= 1.0:
            raise ConfigError(f"dropout: expected a share between 0 and 1, got {share}")
        self.share = share

    def forward(self, x: Tensor, onto: Tensor | None = None) -> Tensor:
        """Of x [...], with the same shape; `onto` [...] is added to the result."""
        return dropout(x, self.share, training=self.training, onto=onto)

    def extra_repr(self) -> str:
        """The settings shown by print."""
        return f"share={self.share}"
