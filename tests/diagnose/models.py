"""Recurrent models small enough to check manually and by finite differences."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from weft.nn.cells.cell import Cell
from weft.nn.heads.head import Loss
from weft.nn.recurrent import Stack


class Batch(NamedTuple):
    x: Tensor  # [B, T, D]
    mask: Tensor  # [B, T]


class Reader(nn.Module):
    """A stack whose last outputs are summed."""

    def __init__(self, stack: Stack) -> None:
        super().__init__()
        self.stack = stack

    def loss(self, batch: Batch) -> Loss:
        y, _ = self.stack(batch.x, mask=None if bool(batch.mask.all()) else batch.mask)
        return Loss(y.sum(), batch.mask.sum())


class Linear(Cell):
    """h_t = W h_{t-1} + U x_t: a user-defined cell with `start` and `step` only."""

    def __init__(self, in_size: int, size: int) -> None:
        super().__init__(in_size, size)
        self.weight_h = nn.Parameter(torch.zeros(size, size))
        self.weight_x = nn.Parameter(torch.randn(size, in_size))

    def start(self, like: Tensor) -> tuple[Tensor]:
        return (like.new_zeros(len(like), self.size),)

    def step(self, x: Tensor, state: tuple[Tensor]) -> tuple[Tensor, tuple[Tensor]]:
        h = state[0] @ self.weight_h.T + x @ self.weight_x.T
        return h, (h,)


def ragged(rows: int, steps: int, size: int, *, seed: int = 1) -> Batch:
    """Rows of lengths from 1 to `steps`."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, steps, size, generator=generator, dtype=torch.float64)
    lengths = torch.linspace(1, steps, rows).long()
    return Batch(x, torch.arange(steps)[None] < lengths[:, None])
