"""A recurrent encoder: a stack of cells in one or both directions."""

from torch import Tensor

from weft import masks
from weft.nn.border import read_mask
from weft.nn.cells.lstm import LSTM
from weft.nn.encoders.encoder import Encoder, Memory
from weft.nn.recurrent import Cells, Join, LastNorm, Stack
from weft.setting_types import DropoutRate, Sizes


class RecurrentEncoder(Encoder):
    """The memory's states are the top layer's h_t, its carry the final states, and its summary the last h.

    Args:
        in_size: features of the input.
        sizes: hidden size of each layer, in each direction.
        cell: the recurrence; several take turns, layer by layer.
        bidirectional: read in both directions.
        join: how to combine the directions; see `Stack`.
        residual: layers above the first add their input to their output.
        dropout: after every layer.
        last_norm: of the states and the summary; see `Stack`.

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
        sizes: Sizes = (256, 256),
        cell: Cells = LSTM,
        bidirectional: bool = False,
        join: Join = "concatenate",
        residual: bool = False,
        dropout: DropoutRate = 0.0,
        last_norm: LastNorm = "none",
    ) -> None:
        super().__init__(in_size)
        self.stack = Stack(
            in_size,
            sizes,
            cell=cell,
            bidirectional=bidirectional,
            join=join,
            residual=residual,
            dropout=dropout,
            last_norm=last_norm,
        )
        self.size = self.stack.size
        self.carry_sizes = self.stack.state_sizes

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Memory:
        """x [B, S, D_in], mask [B, S] to a Memory; padding may be anywhere."""
        mask = read_mask(mask, x, "RecurrentEncoder", some=True)
        states, finals = self.stack(x, mask=None if masks.full(mask) else mask)
        return Memory(states, mask, self.stack.shown(finals[-1]), self.stack.carried(finals))
