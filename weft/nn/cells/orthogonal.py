"""C9, the Elman network whose recurrent matrix stays orthogonal. Read next: unitary.py."""

from typing import Literal

from torch import Tensor
from torch.nn.utils.parametrizations import orthogonal

from weft.nn.cells.cell import Cell
from weft.nn.cells.elman import Elman
from weft.shapes import check_choice

Activation = Literal["tanh", "sigmoid", "relu", "leaky_relu", "elu", "modrelu"]
Begin = Literal["orthogonal", "rotations"]


class Orthogonal(Cell):
    """Elman's h_t = g(W_xh x_t + W_hh h_{t-1} + b_h) with W_hh^T W_hh = I all through training.

    W_hh = Q (I + A/2) (I - A/2)^-1 with A = X - X^T: torch.nn.utils.parametrizations.orthogonal trains X
    and keeps the start Q. To start only from an orthogonal matrix and leave it free, take the Elman cell:
    it does. Made once for a whole sequence, but anew at every step of a loop: in a decoder let attention
    enter late.

    Args:
        in_size: D, features of the input.
        size: H, features of the state.
        activation: g; maxout has two matrices and is left out. What is orthogonal keeps what it holds only
            if g does: take modrelu where memory is all, see docs/results.md.
        weights: what W_hh starts with, any orthogonal matrix or rotations of pairs of units.

    Source: Helfrich, Willmott & Ye 2018, "Orthogonal recurrent neural networks with scaled Cayley
    transform", without their scaling, modrelu as theirs.

    Example:
        >>> import torch
        >>> W = Orthogonal(3, 5).cell.weight_h
        >>> torch.allclose(W @ W.T, torch.eye(5), atol=1e-5)
        True
    """

    def __init__(
        self, in_size: int, size: int, *, activation: Activation = "tanh", weights: Begin = "orthogonal"
    ) -> None:
        super().__init__(in_size, size)
        check_choice("activation", activation, Activation)
        check_choice("weights", weights, Begin)
        self.cell = Elman(in_size, size, activation=activation, weights=weights)
        # [384, 384] with its gradient took 10 ms of a core by Cayley's map, 107 by the matrix exponential
        orthogonal(self.cell, "weight_h", orthogonal_map="cayley")

    @property
    def weight_h(self) -> Tensor:
        """W_hh, [H, H]."""
        weight: Tensor = self.cell.weight_h
        return weight

    def start(self, like: Tensor) -> tuple[Tensor]:
        """(h,), zeros [B, H]."""
        return self.cell.start(like)

    def step(self, x: Tensor, state: tuple[Tensor]) -> tuple[Tensor, tuple[Tensor]]:
        """One step of the equation."""
        return self.cell.step(x, state)

    def run(self, x: Tensor, state: tuple[Tensor], mask: Tensor | None) -> tuple[Tensor, tuple[Tensor]]:
        """All steps, by the Elman cell, which makes the matrix once."""
        return self.cell(x, state, mask)
