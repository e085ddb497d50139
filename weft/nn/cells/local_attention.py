"""Attention to the last W positions, as a cell, so that stacks can mix it with recurrences."""

import math

import torch
from torch import Tensor

from weft.errors import ConfigError
from weft.nn.attention import split_heads
from weft.nn.cells.cell import Cell
from weft.nn.cells.convolution import last_inputs
from weft.nn.distances import Rotary, turned
from weft.nn.ops import Linear, shown_last
from weft.probe import exporting, record_all, watching
from weft.setting_types import Count, Size

State = tuple[Tensor, Tensor, Tensor]


class LocalAttention(Cell):
    """y_t = W_o [softmax(q_t K^T / sqrt(k)) V] + b over the positions t - W + 1 .. t, in each head.

    Args:
        in_size: D, features of the input.
        size: H, features of the output.
        num_heads: of the queries.
        key_value_heads: heads of keys and values, each shared by a group of query heads.
        head_size: k, features of a head, even; None takes H / heads rounded up to an even number.
        window: W, including the position itself.
        rotary: leading features of a head that rotary positions rotate; None for all.

    The state is (y, the keys and values of the last W - 1 positions, 1 where there was one), so its size does
    not grow with the text. Positions are relative: a stored key is rotated by its distance when it is read.

    Raises:
        ConfigError: key_value_heads does not divide num_heads, or the window is below 2.

    Source: De et al. 2024, "Griffin", section 2.3; Beltagy et al. 2020, "Longformer", section 3.1.

    Example:
        >>> import torch
        >>> cell = LocalAttention(3, 5, num_heads=1, window=4)
        >>> cell(torch.zeros(2, 7, 3), cell.start(torch.zeros(2, 3)))[0].shape
        torch.Size([2, 7, 5])
    """

    multiplies = False
    bridges = False
    keeps_output = True

    def __init__(
        self,
        in_size: int,
        size: int,
        *,
        num_heads: Count = 4,
        key_value_heads: int = 1,
        head_size: Size | None = None,
        window: int = 128,
        rotary: int | None = None,
    ) -> None:
        super().__init__(in_size, size)
        width = head_size or 2 * math.ceil(size / num_heads / 2)
        if key_value_heads < 1 or num_heads % key_value_heads:
            raise ConfigError(
                f"key_value_heads: expected a divisor of num_heads, {num_heads}, got {key_value_heads}"
            )
        if window < 2:
            raise ConfigError(f"window: expected at least 2 positions, got {window}")
        self.num_heads = num_heads
        self.key_value_heads = key_value_heads
        self.head_size = width
        self.window = window
        self.distance = Rotary(rotary or width)
        self.query = Linear(in_size, num_heads * width, bias=False)
        self.key_value = Linear(in_size, 2 * key_value_heads * width, bias=False)
        self.out = Linear(num_heads * width, size)

    def start(self, like: Tensor) -> State:
        """(y, keys and values, whether real), zeros [B, H], [B, W - 1, 2 G k], [B, W - 1]."""
        rows, before, wide = like.shape[0], self.window - 1, self.key_value.out_features
        return (
            like.new_zeros(rows, self.size),
            like.new_zeros(rows, before, wide),
            like.new_zeros(rows, before),
        )

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        y, state = self._attended(x[:, None], state, None)
        record_all(hidden=y[:, 0])
        return y[:, 0], state

    def run(self, x: Tensor, state: State, mask: Tensor | None) -> tuple[Tensor, State]:
        """All steps, W queries at a time, so that the cost is linear in T."""
        if watching() or exporting():
            return super().run(x, state, mask)
        ys, before = [], state[0]
        for at in range(0, x.shape[1], self.window):
            inside = None if mask is None else mask[:, at : at + self.window]
            y, state = self._attended(x[:, at : at + self.window], state, inside)
            ys.append(y)
        y, shown = shown_last(torch.cat(ys, 1), before, mask)
        return y, (shown, *state[1:])

    def _attended(self, x: Tensor, state: State, mask: Tensor | None) -> tuple[Tensor, State]:
        """At most W steps x [B, T, D]."""
        _, past, real = state
        rows, steps, before = x.shape[0], x.shape[1], self.window - 1
        seen = torch.cat([past, self.key_value(x).to(past.dtype)], 1)  # [B, W - 1 + T, 2 G k]
        new = real.new_ones(rows, steps) if mask is None else mask.to(real.dtype)
        there = torch.cat([real, new], 1)
        turn = self.distance(range(before, before + steps), range(0), x).turn
        query = turned(split_heads(self.query(x), self.num_heads), turn)  # [B, heads, T, k]
        key, value = (split_heads(part, self.key_value_heads) for part in seen.chunk(2, -1))
        key = turned(key, self.distance(range(before + steps), range(0), x).turn)
        group = self.num_heads // self.key_value_heads
        key, value = (part.repeat_interleave(group, 1) for part in (key, value))
        energy = query @ key.mT.to(query.dtype) / math.sqrt(self.head_size)
        lag = torch.arange(steps, device=x.device)[:, None] + before
        lag = lag - torch.arange(before + steps, device=x.device)
        inside = (lag >= 0) & (lag < self.window) & (there[:, None] > 0.5) | (lag == 0)  # padding sees itself
        weights = energy.masked_fill(~inside[:, None], -torch.inf).softmax(-1)
        y = self.out((weights @ value.to(weights.dtype)).transpose(1, 2).flatten(2))
        kept = last_inputs(torch.cat([seen, there[..., None]], -1), before, mask)
        return y, (y[:, -1], kept[..., :-1], kept[..., -1])
