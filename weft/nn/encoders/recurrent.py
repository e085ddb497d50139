"""A recurrent encoder: a stack of cells in one or both directions."""

from collections.abc import Callable

from torch import Tensor

from weft import masks
from weft.nn.cells.cell import Cell
from weft.nn.cells.lstm import LSTM
from weft.nn.encoders.encoder import Encoder, Memory
from weft.nn.padding import read_mask
from weft.nn.recurrent import Join, Stack


class RecurrentEncoder(Encoder):
    """The memory's states are the top layer's h_t, its carry the final states, and its summary the last h.

    Args:
        in_size: features of the input.
        sizes: hidden size of each layer, in each direction.
        cell: the recurrence.
        bidirectional: read in both directions.
        join: how to combine the directions; see `Stack`.
        residual: layers above the first add their input to their output.
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
        """x [B, S, D_in], mask [B, S] to a Memory; padding may be anywhere."""
        mask = read_mask(mask, x, "RecurrentEncoder")
        states, finals = self.stack(x, mask=None if masks.full(mask) else mask)
        shown = [cell.shown(final) for cell, final in zip(self._top(), finals[-1], strict=True)]
        summary = self.stack.joined(len(finals) - 1, *shown) if len(shown) == 2 else shown[0]
        return Memory(states, mask, summary, self.stack.carried(finals))

    def _top(self) -> list[Cell]:
        stack = self.stack
        return [stack.forwards[-1], stack.backwards[-1]] if stack.bidirectional else [stack.forwards[-1]]
