"""The contract of an encoder, which turns a sequence into a Memory.

Small encoders are here too: a bag of words, n-grams, convolutions, and a pyramid of recurrent layers, each of
which merges neighbours to shorten the memory.
Read next: recurrent.py, transformer.py; ../decoders/decoder.py, which reads the memory.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weft import masks
from weft.errors import ConfigError, ShapeError
from weft.masks import arrangement, harmless
from weft.nn.border import Explained, called, check_mask, check_tensor, read_mask, weight_of
from weft.nn.cells.cell import Cell
from weft.nn.cells.lstm import LSTM
from weft.nn.ops import Dropout, Linear
from weft.nn.positions import counted, positions_of
from weft.nn.recurrent import Stack
from weft.setting_types import Count, DropoutRate, Size, Sizes
from weft.shapes import check_choice
from weft.tree import State


class Memory(NamedTuple):
    """The output of an encoder, for attention and pooling.

    Example:
        >>> import torch
        >>> states, mask = torch.zeros(2, 7, 5), torch.ones(2, 7) > 0  # [B, S, D], [B, S]
        >>> Memory(states, mask, summary=states.mean(1)).summary.shape
        torch.Size([2, 5])
    """

    states: Tensor  # [B, S, D]
    mask: Tensor  # [B, S] bool, True = real; at least one True per row
    summary: Tensor  # [B, D] the whole sequence: the final state or the mean
    carry: State = None  # per layer a tuple of final cell states, one per direction; None without recurrence
    read: Any = None  # the source itself, [B, S] tokens for text, from which a pointer copies


def check_memory(place: str, memory: Any, size: int | None, like: Tensor | None = None) -> None:
    """Check that a layer is given an encoder's memory, of its width D (None for any)."""
    if not isinstance(memory, Memory):
        raise ShapeError(
            f"{place}: expected a Memory, as encoder(x, mask) returns, got {called(memory)}; of states "
            "[rows, steps, D] give Memory(states, mask, summary)"
        )
    check_tensor(place, "memory.states", memory.states, ("rows", "steps", size or "D"), like)
    check_mask(place, memory.mask, memory.states)
    read_mask(memory.mask, memory.states, place, some=True)


class Encoder(Explained, nn.Module, ABC):
    """Reads [B, S, D_in] into a Memory of width `size`.

    Attributes:
        in_size: D_in, the features that it reads.
        size: D, the width of memory.states and memory.summary.
        carry_sizes: the sizes of the final state's tensors for each layer and direction, used to build a
            bridge; empty without recurrence.
        stride: input positions per state of the memory; S positions give ceil(S / stride) states.

    Example:
        >>> import torch
        >>> from weft.nn import BagEncoder
        >>> memory = BagEncoder(5)(torch.zeros(2, 7, 5), torch.ones(2, 7) > 0)
        >>> memory.states.shape, memory.summary.shape  # [B, S, D], [B, D]
        (torch.Size([2, 7, 5]), torch.Size([2, 5]))
    """

    checks: ClassVar[Mapping[str, str]] = {"forward": "check_inputs"}
    returns: ClassVar[Mapping[str, str | type]] = {"forward": Memory}
    in_size: int
    size: int
    stride: int = 1
    carry_sizes: tuple[tuple[tuple[int, ...], ...], ...] = ()

    def __init__(self, in_size: int = 0) -> None:
        super().__init__()
        if in_size:
            self.in_size = in_size

    @abstractmethod
    def forward(self, x: Tensor, mask: Tensor | None = None) -> Memory:
        """Encode x [B, S, D_in] with mask [B, S] bool, real positions first; without one all are real."""

    def check_inputs(self, x: Tensor, mask: Tensor | None = None) -> None:
        """Check the inputs of `forward`."""
        name = type(self).__name__
        check_tensor(name, "x", x, ("rows", "steps", self.in_size), weight_of(self))
        if mask is not None:
            check_mask(name, mask, x)

    def check(self, x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """The input of `forward` with harmless padding, and its mask as bool."""
        name = type(self).__name__
        mask = read_mask(mask, x, name, some=True)
        known = arrangement(mask) or "first"
        if known == "full":
            return x, mask
        if known == "scattered":
            raise ShapeError(
                f"{name}: expected a mask with the real positions first, got padding before a real one; "
                "pad on the right, or use a recurrent encoder, which accepts both"
            )
        return harmless(x, mask), mask


Reduce = Literal["mean", "sum"]


class BagEncoder(Encoder):
    """States x_j and the order-independent summary (1/S) sum_j x_j or sum_j x_j.

    With `Weighted` of embed/tokens.py the words have weights, for example idf.

    Args:
        in_size: features of the input.
        size: project to this width, W x_j; None uses the embeddings unchanged.
        reduce: "mean" or "sum".

    Raises:
        ConfigError: an unknown `reduce`.

    Source: Iyyer et al. 2015, eq. 1 (mean, a deep averaging network's first layer).

    Example:
        >>> import torch
        >>> x, mask = torch.tensor([[[1.0], [3.0], [50.0]]]), torch.tensor([[True, True, False]])
        >>> BagEncoder(1, reduce="sum")(x, mask).summary.tolist()
        [[4.0]]
    """

    def __init__(self, in_size: int, *, size: Size | None = None, reduce: Reduce = "mean") -> None:
        super().__init__(in_size)
        check_choice("reduce", reduce, Reduce)
        self.size = size or in_size
        self.reduce = reduce
        self.project = Linear(in_size, size, bias=False) if size else nn.Identity()

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Memory:
        x, mask = self.check(x, mask)
        x = self.project(x)
        if self.reduce == "mean":
            return Memory(x, mask, masks.mean(x, mask))
        return Memory(x, mask, (x * mask[..., None].to(x.dtype)).sum(1))


class NgramEncoder(Encoder):
    """States [x_{t-n+1}; ..; x_t], or tanh(W [x_{t-n+1}; ..; x_t] + b); the summary is the last state.

    Positions before the first are zeros.

    Args:
        in_size: features of the input.
        length: n.
        size: width of tanh(W [..] + b); None keeps the concatenated embeddings, of width n times in_size.

    Raises:
        ConfigError: n is below 1.

    Source: Bengio et al. 2003, section 2 (its x and hidden layer), here as an encoder.

    Example:
        >>> import torch
        >>> x, mask = torch.tensor([[[1.0], [2.0], [3.0]]]), torch.ones(1, 3) > 0
        >>> NgramEncoder(1, length=2)(x, mask).states.tolist()
        [[[0.0, 1.0], [1.0, 2.0], [2.0, 3.0]]]
    """

    def __init__(self, in_size: int, *, length: int = 3, size: Size | None = None) -> None:
        super().__init__(in_size)
        if length < 1:
            raise ConfigError(f"length: expected a window of at least 1 position, got {length}")
        self.length = length
        self.size = size or length * in_size
        self.hidden = nn.Sequential(Linear(length * in_size, size), nn.Tanh()) if size else nn.Identity()

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Memory:
        x, mask = self.check(x, mask)
        states = self.hidden(windows(x, x.new_zeros(x.shape[0], self.length - 1, x.shape[2])))
        return Memory(states, mask, masks.last(states, mask))


def windows(x: Tensor, before: Tensor) -> Tensor:
    """x [B, T, D] with the n - 1 inputs before each, oldest first: [B, T, n D]; `before` is [B, n - 1, D]."""
    return torch.cat([before, x], 1).unfold(1, before.shape[1] + 1, 1).transpose(2, 3).flatten(2)


EntryPositions = Literal["sinusoidal", "concatenated", "learned", "none"]


class ConvolutionEncoder(Encoder):
    """x + (a * sigmoid(b)) with [a; b] = conv(x), times sqrt(1/2), in each layer; the summary is the mean.

    Args:
        in_size: features of the input; projected if they differ from the width.
        size: D, the width.
        num_layers: L; with kernel k the context is L (k - 1) + 1 positions.
        kernel: k, odd and centred.
        positions: added to the embeddings or concatenated with them.
        max_length: number of learned positions.
        dropout: on embeddings and before each convolution.

    Raises:
        ConfigError: the kernel is even.

    Source: Gehring et al. 2017, section 3. Our default positions are sinusoidal, theirs `learned`; and
    attention uses the states without adding the embeddings (their eq. 2).

    Example:
        >>> import torch
        >>> encoder = ConvolutionEncoder(3, size=8, num_layers=2)
        >>> encoder(torch.zeros(2, 7, 3), torch.ones(2, 7) > 0).states.shape
        torch.Size([2, 7, 8])
    """

    def __init__(
        self,
        in_size: int,
        *,
        size: Size = 256,
        num_layers: Count = 4,
        kernel: int = 3,
        positions: EntryPositions = "sinusoidal",
        max_length: int = 1024,
        dropout: DropoutRate = 0.1,
    ) -> None:
        super().__init__(in_size)
        check_choice("positions", positions, EntryPositions)
        if kernel < 1 or kernel % 2 == 0:
            raise ConfigError(f"kernel: expected an odd number of positions such as 3 or 5, got {kernel}")
        self.size = size
        self.project = nn.Identity() if in_size == size else Linear(in_size, size)
        self.positions = positions_of(positions, size, max_length)
        self.dropout = Dropout(dropout)
        self.layers = nn.ModuleList(
            nn.Conv1d(size, 2 * size, kernel, padding=kernel // 2) for _ in range(num_layers)
        )

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Memory:
        x, mask = self.check(x, mask)
        real = mask[..., None]
        x = self.positions(self.project(x), counted(0, x.shape[1], x))
        x = self.dropout(x).masked_fill(~real, 0.0)
        for layer in self.layers:
            h = F.glu(layer(self.dropout(x).transpose(-1, -2)).transpose(-1, -2), -1)
            x = ((x + h) * math.sqrt(0.5)).masked_fill(~real, 0.0)
        return Memory(x, mask, masks.mean(x, mask))


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
