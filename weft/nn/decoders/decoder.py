"""The contract of a decoder: one step at a time, from a state to the next state.

Read next: recurrent.py, transformer.py; ../../search/beam.py, which calls it.
"""

from abc import ABC, abstractmethod
from typing import Any

from torch import Tensor, nn

from weft.native import WholeStep
from weft.nn.encoders.encoder import Memory
from weft.nn.ops import Ends
from weft.tree import State


class Decoder(nn.Module, ABC):
    """Turns embedded tokens into features for the head, using the memory of a source if there is one.

    Attributes:
        size: D, the width of its output.
        reach: number of inputs it uses, including the current one; None for all.
        skips: number of initial inputs, such as the line end before a text, used only as the current input.
        weighted: whether the last feature of its input is a weight of the token, such as its idf.
        copies: whether its output is for a head that copies from the source (pointer.py).
    """

    size: int
    reach: int | None = None
    skips: int = 0
    weighted: bool = False
    copies: bool = False

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

    def whole_step(self, state: State, ends: Ends) -> WholeStep | None:
        """A search step from token to log-probabilities in compiled code; None if this decoder has none now.

        Args:
            state: the state before the first step, one row per source; stays as it is.
            ends: what stands before and after the decoder, and the size of the search.
        """
        return None
