"""The contract of an encoder, which turns a sequence into a Memory.

Read next: recurrent.py, transformer.py; ../decoders/decoder.py, which reads the memory.
"""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from torch import Tensor, nn

from weft.errors import ShapeError
from weft.nn.padding import arrangement, harmless, read_mask
from weft.tree import State


class Memory(NamedTuple):
    """The output of an encoder, for attention and pooling."""

    states: Tensor  # [B, S, D]
    mask: Tensor  # [B, S] bool, True = real; at least one True per row
    summary: Tensor  # [B, D] the whole sequence: the final state or the mean
    carry: State = None  # per layer a tuple of final cell states, one per direction; None without recurrence
    read: Any = None  # the source itself, [B, S] tokens for text, from which a pointer copies


class Encoder(nn.Module, ABC):
    """Reads [B, S, D_in] into a Memory of width `size`.

    Attributes:
        size: D, the width of memory.states and memory.summary.
        carry_sizes: the sizes of the final state's tensors for each layer and direction, used to build a
            bridge; empty without recurrence.
        stride: input positions per state of the memory; S positions give ceil(S / stride) states.
    """

    size: int
    stride: int = 1
    carry_sizes: tuple[tuple[tuple[int, ...], ...], ...] = ()

    @abstractmethod
    def forward(self, x: Tensor, mask: Tensor) -> Memory:
        """Encode x [B, S, D_in] with mask [B, S] bool, real positions first."""

    def check(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The input of `forward` with harmless padding, and its mask as bool.

        Raises:
            ShapeError: the mask has a wrong shape, is floating point, or has padding before a real position.
        """
        name = type(self).__name__
        mask = read_mask(mask, x, name)
        known = arrangement(mask) or "first"
        if known == "full":
            return x, mask
        if known == "scattered":
            raise ShapeError(
                f"{name}: expected a mask with the real positions first, got padding before a real one; "
                "pad on the right, or use a recurrent encoder, which accepts both"
            )
        return harmless(x, mask), mask
