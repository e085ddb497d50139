"""The contract of a decoder: it writes one step at a time, state in and state out.

Read next: recurrent.py, transformer.py; ../../search/beam.py, which drives it.
"""

from abc import ABC, abstractmethod
from typing import Any

from torch import Tensor, nn

from weft.nn.encoders.encoder import Memory
from weft.tree import State


class Decoder(nn.Module, ABC):
    """Reads embedded tokens and gives features for the head; looks back into a memory if it has one.

    Attributes:
        size: D, the width of its output.
        reach: how many inputs it sees, the newest counted; None where it sees all.
        skips: first inputs, such as the line end before a text, that are seen as the newest one only.
        weighted: whether the last feature of its input is how much the token says, such as its idf.
        copies: whether its output is what a head that copies from the source reads (pointer.py).
    """

    size: int
    reach: int | None = None
    skips: int = 0
    weighted: bool = False
    copies: bool = False

    @abstractmethod
    def start(self, memory: Memory | None, rows: int) -> State:
        """The state before the first token, for `rows` rows (those of the memory, where there is one)."""

    @abstractmethod
    def forward(self, x: Tensor, state: State, mask: Tensor | None = None) -> tuple[Any, State]:
        """Any number of steps at once; one step is T = 1, and T steps are T times one.

        Args:
            x: [B, T, D_in] embedded tokens.
            state: what `start` or an earlier call gave.
            mask: [B, T] bool, real positions first; where False the state is held.

        Returns:
            y: [B, T, D], or a tree of [B, T, ..] where it copies; and the state after the last real position.
        """
