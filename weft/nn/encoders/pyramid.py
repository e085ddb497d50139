"""A pyramid of recurrent layers, each of which merges neighbours to shorten the memory."""

from collections.abc import Callable
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from weft import masks
from weft.errors import ConfigError
from weft.nn.cells.cell import Cell
from weft.nn.cells.lstm import LSTM
from weft.nn.encoders.encoder import Encoder, Memory
from weft.nn.recurrent import Stack
from weft.setting_types import DropoutRate, Sizes


class Pyramid(Encoder):
    """h_i^j = BiLSTM(h_{i-1}^j, [h_{2i}^{j-1}; h_{2i+1}^{j-1}]): each layer but the first halves the length.

    A frame of speech carries little information and there are many; attention works better on merged groups
    of eight. An incomplete last group is padded with zeros.

    Args:
        in_size: features of the input.
        sizes: hidden size of each layer, in each direction.
        factors: positions merged before each layer, 1 for none; one value per layer, or a single value for
            all layers but the first, which then merges none.
        cell: the recurrence.
        bidirectional: read in both directions.
        dropout: after every layer.

    Raises:
        ConfigError: the number of factors is wrong, or one is below 1.

    Source: Chan, Jaitly, Le & Vinyals 2016 (Listen, Attend and Spell), eq. 5.

    Example:
        >>> import torch
        >>> encoder = Pyramid(3, sizes=(5, 5, 5))
        >>> memory = encoder(torch.zeros(2, 7, 3), torch.ones(2, 7) > 0)
        >>> memory.states.shape, encoder.stride
        (torch.Size([2, 2, 10]), 4)
    """

    def __init__(
        self,
        in_size: int,
        *,
        sizes: Sizes = (256, 256, 256, 256),
        factors: tuple[int, ...] = (2,),
        cell: Callable[[int, int], Cell] = LSTM,
        bidirectional: bool = True,
        dropout: DropoutRate = 0.0,
    ) -> None:
        super().__init__(in_size)
        if not sizes:
            raise ConfigError("sizes: a pyramid needs a size for each layer, for example [256, 256, 256]")
        if len(factors) == 1:
            factors = (1,) + factors * (len(sizes) - 1)
        if len(factors) != len(sizes) or min(factors) < 1:
            raise ConfigError(
                f"factors: expected a number of at least 1 for each of {len(sizes)} layers, "
                f"or one for all but the first, got {list(factors)}"
            )
        self.factors = factors
        self.layers = nn.ModuleList()
        stride = 1
        for size, factor in zip(sizes, factors, strict=True):
            made = Stack(in_size * factor, (size,), cell=cell, bidirectional=bidirectional, dropout=dropout)
            self.layers.append(made)
            in_size = made.size
            stride *= factor
        self.size, self.stride = in_size, stride
        self.carry_sizes = tuple(layer for stack in self.layers for layer in stack.state_sizes)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Memory:
        """x [B, S, D_in], mask [B, S] to a Memory of ceil(S / stride) positions."""
        x, mask = self.check(x, mask)
        carry: tuple[tuple[tuple[Tensor, ...], ...], ...] = ()
        shown: list[Tensor] = []
        stack: Any  # ModuleList forgets its class
        for stack, factor in zip(self.layers, self.factors, strict=True):
            x, mask = joined(x, mask, factor)
            x, finals = stack(x, mask=None if masks.full(mask) else mask)
            carry += stack.carried(finals)
            cells = [stack.forwards[0], *stack.backwards]
            shown = [cell.shown(final) for cell, final in zip(cells, finals[0], strict=True)]
        summary = self.layers[-1].joined(0, *shown) if len(shown) == 2 else shown[0]
        return Memory(x, mask, summary, carry)


def joined(x: Tensor, mask: Tensor, factor: int) -> tuple[Tensor, Tensor]:
    """Neighbours together: x [B, S, D] to [B, ceil(S / k), k D], and the mask of the new positions."""
    if factor == 1:
        return x, mask
    x = x.masked_fill(~mask[..., None], 0.0)
    x = F.pad(x, (0, 0, 0, -x.shape[1] % factor))
    return x.unflatten(1, (-1, factor)).flatten(2), masks.strided(mask, factor)
