"""The contract of an encoder: a sequence becomes a Memory.

Read next: recurrent.py, transformer.py; ../decoders/decoder.py, which reads the memory.
"""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from torch import Tensor, nn

from weft.errors import ShapeError
from weft.nn.padding import arrangement, harmless, looked_at, read_mask
from weft.tree import State


class Memory(NamedTuple):
    """What an encoder leaves for whoever looks back."""

    states: Tensor  # [B, S, D]
    mask: Tensor  # [B, S] bool, True = real; at least one True a row
    summary: Tensor  # [B, D] the encoder's own idea of the whole: final state, or mean
    carry: State = None  # per layer a tuple of final cell states, one a direction; None without recurrence
    read: Any = None  # what was read itself, [B, S] tokens where it is text: a pointer copies from it


class Encoder(nn.Module, ABC):
    """Reads [B, S, D_in] into a Memory of width `size`.

    Attributes:
        size: D, the width of memory.states and memory.summary.
        carry_sizes: for each layer, for each direction, the sizes of the tensors of its final state;
            empty where there is no recurrence. A bridge is built from it.
        stride: input positions that a state of the memory stands for; S of them leave ceil(S / stride).
    """

    size: int
    stride: int = 1
    carry_sizes: tuple[tuple[tuple[int, ...], ...], ...] = ()

    @abstractmethod
    def forward(self, x: Tensor, mask: Tensor) -> Memory:
        """x [B, S, D_in], mask [B, S] bool with the real positions first."""

    def check(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The input of `forward` with nothing in its padding that could spread, and its mask as bool.

        Raises:
            ShapeError: a mask of another shape, in floating point, or with padding before a real position.
        """
        name = type(self).__name__
        mask = read_mask(mask, x, name)
        if looked_at(mask) and arrangement(mask) == "scattered":
            raise ShapeError(
                f"{name}: expected a mask with the real positions first, got padding before a real one; "
                "pad on the right, or take a recurrent encoder, which reads either"
            )
        return harmless(x, mask), mask
