"""The contract of an encoder, which turns a sequence into a Memory.

Read next: recurrent.py, transformer.py; ../decoders/decoder.py, which reads the memory.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from torch import Tensor, nn

from weft.errors import ShapeError
from weft.masks import arrangement, harmless
from weft.nn.border import Explained, called, check_mask, check_tensor, read_mask, weight_of
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
