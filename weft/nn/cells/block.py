"""The layer around a cell: norm, short convolution, gate, feed-forward network and residual connections.

A block is a cell itself, so it fits everything that takes cells. Read next: convolution.py; rglru.py and
mamba.py, the usual cells inside; ../recurrent.py, which stacks blocks.
"""

from collections.abc import Callable
from typing import Literal

import torch.nn.functional as F
from torch import Tensor, nn

from weft.nn.cells.cell import Cell, made
from weft.nn.cells.convolution import ShortConvolution
from weft.nn.cells.rglru import RGLRU
from weft.nn.norms import NormKind, norm_of
from weft.nn.ops import Dropout, Linear, shown_last
from weft.nn.transformer import Activation, FeedForward
from weft.probe import exporting
from weft.setting_types import DropoutRate
from weft.shapes import check_choice
from weft.tree import State

Gate = Literal["none", "input", "output"]
Squash = Literal["gelu", "silu"]


class Block(Cell):
    """z = x + M(norm(x)), y = z + F(norm(z)), with a cell in M and a feed-forward network F.

    gate none:    M(u) = cell(conv(u))
    gate input:   M(u) = W_o (cell(conv(W_1 u + b_1)) * g(W_2 u + b_2)) + b_o    (Griffin, xLSTM, RetNet)
    gate output:  M(u) = (W_1 v + b_1) * sigmoid(W_2 v + b_2), v = g(cell(conv(u)))    (S4, LRU)

    Args:
        in_size: D, features of the input; if it is not H, x stands for W_x x.
        size: H, features of the output.
        cell: the recurrence; its own settings go in a table.
        inner: features of the cell; None takes H. Other than H only with a gate.
        norm: of the input of M and F.
        norm_epsilon: of the norms.
        convolution: steps of the short convolution; 0 for none.
        gate: see above.
        gate_activation: g.
        network: hidden features of F; 0 leaves F out.
        network_activation: of F.
        dropout: of the outputs of M and F.

    The state is (y, the cell's state, the convolution's inputs); no step reads y. Cells with their own
    convolution and gate, such as mamba, need neither here.

    Raises:
        ConfigError: an unknown `gate` or `gate_activation`.

    Source: De et al. 2024, "Griffin", section 2.2 and figure 2; Gu & Dao 2023, "Mamba", section 3.4.

    Example:
        >>> import torch
        >>> cell = Block(3, 6, convolution=4, gate="input", network=12)
        >>> cell(torch.zeros(2, 7, 3), cell.start(torch.zeros(2, 3)))[0].shape
        torch.Size([2, 7, 6])
    """

    multiplies = False

    def __init__(
        self,
        in_size: int,
        size: int,
        *,
        cell: Callable[[int, int], Cell] = RGLRU,
        inner: int | None = None,
        norm: NormKind = "rms",
        norm_epsilon: float = 1e-6,
        convolution: int = 0,
        gate: Gate = "none",
        gate_activation: Squash = "gelu",
        network: int = 0,
        network_activation: Activation = "geglu",
        dropout: DropoutRate = 0.0,
    ) -> None:
        super().__init__(in_size, size)
        check_choice("gate", gate, Gate)
        check_choice("gate_activation", gate_activation, Squash)
        self.gate = gate
        self.gate_activation = gate_activation
        inner = inner or size
        read = inner if gate == "input" else size
        shown = size if gate == "none" else inner
        self.entry = nn.Identity() if in_size == size else Linear(in_size, size, bias=False)
        self.norm = norm_of(size, norm, epsilon=norm_epsilon)
        if gate == "input":
            self.enter = Linear(size, 2 * inner)  # W_1, W_2
            self.leave = Linear(inner, size)
        elif gate == "output":
            self.leave = Linear(inner, 2 * size)  # W_1, W_2
        self.convolution = ShortConvolution(read, convolution) if convolution else None
        self.cell = made(cell, read, shown)
        self.bridges = self.cell.bridges
        if network:
            self.network_norm = norm_of(size, norm, epsilon=norm_epsilon)
            self.network = FeedForward(size, network, activation=network_activation, dropout=dropout)
        self.has_network = bool(network)
        self.dropout = Dropout(dropout)

    def start(self, like: Tensor) -> State:
        """(y, the cell's own, zeros)."""
        window = () if self.convolution is None else (self.convolution.start(like),)
        return like.new_zeros(like.shape[0], self.size), *self.cell.start(like), *window

    def carried(self, state: State) -> tuple[Tensor, ...]:
        """The cell's own, and the convolution's inputs."""
        inner, window = self._apart(state)
        return *self.cell.carried(inner), *window

    def begin(self, carried: tuple[Tensor, ...]) -> State:
        """(zeros, the cell's own, the convolution's inputs)."""
        shown = carried[0].new_zeros(carried[0].shape[0], self.size)
        if self.convolution is None:
            return shown, *self.cell.begin(carried)
        return shown, *self.cell.begin(carried[:-1]), carried[-1]

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        inner, window = self._apart(state)
        x = self.entry(x)
        u, gate = self._entered(x)
        if self.convolution is not None:
            u, last = self.convolution.step(u, window[0])
            window = (last,)
        y, inner = self.cell.step(u, inner)
        y = self._left(x, y, gate)
        return y, (y, *inner, *window)

    def run(self, x: Tensor, state: State, mask: Tensor | None) -> tuple[Tensor, State]:
        if exporting():
            return super().run(x, state, mask)
        inner, window = self._apart(state)
        x = self.entry(x)
        u, gate = self._entered(x)
        if self.convolution is not None:
            u, last = self.convolution(u, window[0], mask)
            window = (last,)
        y, inner = self.cell.run(u, inner, mask)
        y, shown = shown_last(self._left(x, y, gate), state[0], mask)
        return y, (shown, *inner, *window)

    def _apart(self, state: State) -> tuple[State, tuple[Tensor, ...]]:
        """The cell's state, and the convolution's inputs if there are any."""
        return (state[1:], ()) if self.convolution is None else (state[1:-1], (state[-1],))

    def _entered(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """The input of convolution and cell, and the energy of an input gate."""
        u = self.norm(x)
        if self.gate != "input":
            return u, None
        u, gate = self.enter(u).chunk(2, -1)
        return u, gate

    def _left(self, x: Tensor, y: Tensor, gate: Tensor | None) -> Tensor:
        """The block's output from its input x [.., H] and the cell's output."""
        if gate is not None:
            y = self.leave(y * self._squashed(gate))
        elif self.gate == "output":
            y = F.glu(self.leave(self._squashed(y)), -1)
        x = x + self.dropout(y)
        return x + self.dropout(self.network(self.network_norm(x))) if self.has_network else x

    def _squashed(self, x: Tensor) -> Tensor:
        return F.silu(x) if self.gate_activation == "silu" else F.gelu(x, approximate="tanh")
