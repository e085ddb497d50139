"""A recurrent encoder: a stack of cells, one or both directions."""

from collections.abc import Callable

from torch import Tensor

from weft.nn.cells.cell import Cell
from weft.nn.cells.lstm import LSTM
from weft.nn.encoders.encoder import Encoder, Memory
from weft.nn.padding import read_mask
from weft.nn.recurrent import Join, Stack


class RecurrentEncoder(Encoder):
    """h_t of the top layer are the memory; the final states are carried, and its summary is the last h.

    Args:
        in_size: features of the input.
        sizes: hidden size of each layer, in each direction.
        cell: the recurrence.
        bidirectional: read from both ends.
        join: how the directions become one; see `Stack`.
        residual: every layer above the first adds what it read to what it gives.
        dropout: after every layer.

    Example:
        >>> import torch
        >>> encoder = RecurrentEncoder(3, sizes=(5,), bidirectional=True)
        >>> memory = encoder(torch.zeros(2, 7, 3), torch.ones(2, 7) > 0)
        >>> memory.states.shape, memory.summary.shape
        (torch.Size([2, 7, 10]), torch.Size([2, 10]))
    """

    def __init__(
        self,
        in_size: int,
        *,
        sizes: tuple[int, ...] = (256, 256),
        cell: Callable[[int, int], Cell] = LSTM,
        bidirectional: bool = False,
        join: Join = "concatenate",
        residual: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.stack = Stack(
            in_size,
            sizes,
            cell=cell,
            bidirectional=bidirectional,
            join=join,
            residual=residual,
            dropout=dropout,
        )
        self.size = self.stack.size
        self.carry_sizes = self.stack.state_sizes

    def forward(self, x: Tensor, mask: Tensor) -> Memory:
        """x [B, S, D_in], mask [B, S] to a Memory; real positions may stand anywhere."""
        mask = read_mask(mask, x, "RecurrentEncoder")
        states, finals = self.stack(x, mask=None if bool(mask.all()) else mask)
        shown = [cell.shown(final) for cell, final in zip(self._top(), finals[-1], strict=True)]
        summary = self.stack.joined(len(finals) - 1, *shown) if len(shown) == 2 else shown[0]
        return Memory(states, mask, summary, self.stack.carried(finals))

    def _top(self) -> list[Cell]:
        stack = self.stack
        return [stack.forwards[-1], stack.backwards[-1]] if stack.bidirectional else [stack.forwards[-1]]
