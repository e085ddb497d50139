"""The base of cells with gates: LSTM, GRU, coupled and peephole cells. Read next: lstm.py, gru.py."""

from abc import abstractmethod
from typing import Literal

from torch import Tensor

from weft.nn.cells.cell import Cell, VectorCell
from weft.nn.cells.initial import recurrent_weights
from weft.nn.ops import LayerInput, linear, run_layer
from weft.probe import watching
from weft.shapes import check_choice
from weft.tree import State

Candidate = Literal["tanh", "sigmoid"]


class Gated(VectorCell):
    """Gates of W_x x + W_h h + b, each perhaps layer-normalised, and a kernel for all steps."""

    def __init__(
        self, in_size: int, size: int, *, gates: int, candidate: Candidate, normalised: bool
    ) -> None:
        super().__init__(in_size, size)
        check_choice("candidate", candidate, Candidate)
        self.candidate = candidate
        self.normalised = normalised
        self.weight_x, self.weight_h, self.bias = recurrent_weights(in_size, size, gates=gates)

    @property
    def usual(self) -> bool:
        """Whether kernels have the equation of the gates."""
        return not self.normalised and self.candidate == "tanh"

    @abstractmethod
    def kernel(self) -> str | None:
        """The name of the usual cell in the kernels; None if it runs step by step."""

    def kernel_weights(self) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """W_x, W_h, b and further weights, as the kernels take them."""
        return self.weight_x, self.weight_h, self.bias, None

    def energies(self, x: Tensor) -> Tensor:
        """W x + b of all gates, [.., G H]."""
        if self.normalised:
            return self.norm_x(linear(x, self.weight_x)) + self.bias  # type: ignore[no-any-return]
        return linear(x, self.weight_x, self.bias)

    def run(self, x: Tensor, state: State, mask: Tensor | None) -> tuple[Tensor, State]:
        """All steps with the kernel; step by step under a probe, to record the gates."""
        name = self.kernel() if self.usual and not watching() else None
        if name is None:
            return Cell.run(self, x, state, mask)
        h, c = (*state, None)[:2]
        weight_x, weight_h, bias, extra = self.kernel_weights()
        y, *after = run_layer(name, LayerInput(x, h, c, weight_x, weight_h, bias, extra, mask))
        return y, tuple(after[: len(state)])
