"""Whole layers of RWKV-7 as one cell, because upper layers read the values of the first one.

Read next: rwkv7.py, the recurrence of a layer; ../recurrent.py, stacks of cells that read the layer below.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weft.errors import ConfigError
from weft.nn.cells.cell import Cell
from weft.nn.cells.matrix import last_of
from weft.nn.cells.rwkv7 import RWKV7, change
from weft.nn.ops import Dropout, Linear, shown_last
from weft.probe import exporting
from weft.setting_types import Count, DropoutRate, Size
from weft.tree import State

EPSILON = 64e-5  # of the norm of the heads, in the authors' code
PARTS = 4  # of a layer's state: those of its RWKV7, and the last input of its network


class RWKV7Layers(Cell):
    """z = x + T(norm(x)), x' = z + C(norm(z)) in each layer, with RWKV-7's time mixing T and network C.

    C(u_t) = W_2 relu(W_1 (u_t + m * (u_{t-1} - u_t)))^2. The first layer reads norm(W x_t); y_t is the norm
    of the last x'. T of the other layers mixes its values with those of the first: see RWKV7.

    Args:
        in_size: D, features of the input; if it is H, W is left out.
        size: H, features of every layer.
        num_layers: number of layers.
        num_heads, key_size, value_size, rank: of T.
        network: hidden features of C; None takes 4 H.
        dropout: of the outputs of T and C.

    The state is (y, ...) with the state of T and u of C for each layer. As in the authors' code, the last map
    of T and that of C start with zeros.
    Source: Peng et al. 2025, "RWKV-7 'Goose' with expressive dynamic state evolution", section 4, figure 1.

    Raises:
        ConfigError: there are no layers.

    Example:
        >>> import torch
        >>> cell = RWKV7Layers(3, 8, num_layers=3)
        >>> y, state = cell(torch.zeros(2, 7, 3), cell.start(torch.zeros(2, 3)))
        >>> y.shape, len(state)
        (torch.Size([2, 7, 8]), 13)
    """

    multiplies = False
    layered = True

    def __init__(
        self,
        in_size: int,
        size: int,
        *,
        num_layers: Count = 2,
        num_heads: Count = 4,
        key_size: Size = 0,
        value_size: Size = 0,
        rank: int = 16,
        network: int | None = None,
        dropout: DropoutRate = 0.0,
    ) -> None:
        super().__init__(in_size, size)
        if num_layers < 1:
            raise ConfigError(f"num_layers: expected at least 1, got {num_layers}")
        self.entry = nn.Identity() if in_size == size else Linear(in_size, size, bias=False)
        self.first_norm, self.last_norm = nn.LayerNorm(size), nn.LayerNorm(size)
        self.layers = nn.ModuleList()
        reads = size
        for _ in range(num_layers):
            cell = RWKV7(
                reads,
                size,
                num_heads=num_heads,
                key_size=key_size,
                value_size=value_size,
                rank=rank,
                first_values=reads > size,
                norm_epsilon=EPSILON,
            )
            self.layers.append(Rwkv7Layer(cell, network or 4 * size, dropout))
            reads = size + num_heads * cell.value_size

    def start(self, like: Tensor) -> State:
        return self._begun(like, [layer.cell.start(like) for layer in self.layers])

    def carried(self, state: State) -> tuple[Tensor, ...]:
        """What the fixed key finds in each layer."""
        return tuple(
            layer.cell.carried(one)[0] for layer, one in zip(self.layers, _apart(state), strict=True)
        )

    def begin(self, carried: tuple[Tensor, ...]) -> State:
        """The initial state with the carried values under the fixed key of each layer."""
        pairs = zip(self.layers, carried, strict=True)
        return self._begun(carried[0], [layer.cell.begin((one,)) for layer, one in pairs])

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        y, after = self._through(x[:, None], state, None)
        return y[:, 0], after

    def run(self, x: Tensor, state: State, mask: Tensor | None) -> tuple[Tensor, State]:
        """All steps of one layer after the other."""
        return super().run(x, state, mask) if exporting() else self._through(x, state, mask)

    def _begun(self, like: Tensor, inner: list[State]) -> State:
        zeros = like.new_zeros(like.shape[0], self.size)
        return zeros, *(part for one in inner for part in (*one, zeros))

    def _through(self, x: Tensor, state: State, mask: Tensor | None) -> tuple[Tensor, State]:
        x, first, after = self.first_norm(self.entry(x)), None, []
        for layer, one in zip(self.layers, _apart(state), strict=True):
            x, first, new = layer(x, first, one, mask)
            after += new
        y, shown = shown_last(self.last_norm(x), state[0], mask)
        return y, (shown, *after)


class Rwkv7Layer(nn.Module):
    """Time mixing and a network of `hidden` features, each after a norm and with a residual connection."""

    def __init__(self, cell: RWKV7, hidden: int, dropout: float) -> None:
        super().__init__()
        self.cell = cell
        self.cell_norm, self.network_norm = nn.LayerNorm(cell.size), nn.LayerNorm(cell.size)
        self.mix = nn.Parameter(torch.full((cell.size,), 0.5))
        self.enter = Linear(cell.size, hidden, bias=False)
        self.leave = Linear(hidden, cell.size, bias=False)
        self.dropout = Dropout(dropout)
        for last in (cell.out, self.leave):
            nn.init.zeros_(last.weight)

    def forward(
        self, x: Tensor, first: Tensor | None, state: State, mask: Tensor | None
    ) -> tuple[Tensor, Tensor, State]:
        """All steps: the output [B, T, H], the first layer's values [B, T, heads V], and the next state.

        `first` has these values, and is None in the first layer; the mask has real positions first.
        """
        *inner, before = state
        u = self.cell_norm(x)
        read = u if first is None else torch.cat([u, first], -1)
        if first is None:
            first = self.cell.values(u, inner[2])
        if x.shape[1] == 1 and mask is None:
            y, inner = self.cell.step(read[:, 0], tuple(inner))
            y = y[:, None]
        else:
            y, inner = self.cell(read, tuple(inner), mask)
        x = x + self.dropout(y)
        u = self.network_norm(x)
        hidden = self.enter(u + change(u, before) * self.mix.to(u.dtype))
        x = x + self.dropout(self.leave(F.relu(hidden).square()))
        return x, first, (*inner, last_of(u, before, mask))


def _apart(state: State) -> list[State]:
    return [state[at : at + PARTS] for at in range(1, len(state), PARTS)]
