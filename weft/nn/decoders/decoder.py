"""The contract of a decoder: one step at a time, from a state to the next state.

Read next: recurrent.py, transformer.py; ../../search/beam.py, which calls it.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor, nn

from weft.errors import ShapeError
from weft.native import WholeStep
from weft.nn.border import Explained, check_mask, check_state, check_tensor, weight_of
from weft.nn.encoders.encoder import Encoder, Memory, check_memory
from weft.nn.ops import Ends
from weft.tree import State


class Decoder(Explained, nn.Module, ABC):
    """Turns embedded tokens into features for the head, using the memory of a source if there is one.

    Attributes:
        in_size: features of the embedded tokens.
        memory_size: width of the memory that it reads; None without one.
        size: D, the width of its output.
        reach: number of inputs it uses, including the current one; None for all.
        skips: number of initial inputs, such as the line end before a text, used only as the current input.
        weighted: whether the last feature of its input is a weight of the token, such as its idf.
        copies: whether its output is for a head that copies from the source (pointer.py).
        converts: whether it converts a memory of another dtype to that of its weights.

    Example:
        >>> import torch
        >>> from weft.nn import RecurrentDecoder
        >>> decoder = RecurrentDecoder(5, sizes=(6,))
        >>> state = decoder.start(None, 2)
        >>> y, state = decoder(torch.zeros(2, 1, 5), state)  # T = 1 is one step
        >>> y.shape  # [B, T, D]
        torch.Size([2, 1, 6])
    """

    checks: ClassVar[Mapping[str, str]] = {"forward": "check_inputs", "start": "check_start"}
    checks_first: ClassVar[tuple[str, ...]] = ("start",)
    returns: ClassVar[Mapping[str, str | type]] = {"start": "state", "forward": "tensor, state"}
    in_size: int
    memory_size: int | None
    size: int
    reach: int | None = None
    skips: int = 0
    weighted: bool = False
    converts: bool = False
    copies: bool = False

    def __init__(self, in_size: int = 0, encoder: Encoder | None = None) -> None:
        super().__init__()
        if in_size:
            self.in_size = in_size
        self.memory_size = None if encoder is None else encoder.size

    @abstractmethod
    def start(self, memory: Memory | None, rows: int) -> State:
        """The initial state for `rows` rows, those of the memory if there is one."""

    @abstractmethod
    def forward(self, x: Tensor, state: State, mask: Tensor | None = None) -> tuple[Any, State]:
        """Run T >= 1 steps; T steps at once give the same as T single steps.

        Args:
            x: [B, T, D_in] embedded tokens.
            state: from `start` or an earlier call.
            mask: [B, T] bool, real positions first; where False the state does not change.

        Returns:
            y: [B, T, D], or a tree of [B, T, ..] if it copies; and the state after the last real position.
        """

    def check_inputs(self, x: Tensor, state: State, mask: Tensor | None = None) -> None:
        """Check the inputs of `forward`."""
        name = type(self).__name__
        check_tensor(name, "x", x, ("rows", "steps", self.in_size), weight_of(self))
        check_state(name, state, len(x), "start(memory, rows)")
        if mask is not None:
            check_mask(name, mask, x)

    def check_start(self, memory: Memory | None, rows: int) -> None:
        """Check the inputs of `start`."""
        if memory is None and self.memory_size is None:
            return
        name = type(self).__name__
        check_memory(name, memory, self.memory_size, None if self.converts else weight_of(self))
        if memory is not None and len(memory.states) != rows:
            raise ShapeError(f"{name}: expected a memory of {rows} rows, got {len(memory.states)}")

    def whole_step(self, state: State, ends: Ends) -> WholeStep | None:
        """A search step from token to log-probabilities in compiled code; None if this decoder has none now.

        Args:
            state: the state before the first step, one row per source; stays as it is.
            ends: what stands before and after the decoder, and the size of the search.
        """
        return None

    def fixed(self, state: State, width: int, steps: int) -> tuple[State, int] | None:
        """As `fixed` of a model; this one serves a decoder whose steps change no shape of the state."""
        return state, steps
