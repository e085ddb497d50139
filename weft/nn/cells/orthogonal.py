"""The Elman network with an orthogonal recurrent matrix. Read next: unitary.py."""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from weft.nn.cells.cell import VectorCell
from weft.nn.cells.elman import Elman
from weft.shapes import check_choice

Activation = Literal["tanh", "sigmoid", "relu", "leaky_relu", "elu", "modrelu"]
Begin = Literal["orthogonal", "rotations"]


class Orthogonal(VectorCell):
    """Elman's h_t = g(W_xh x_t + W_hh h_{t-1} + b_h) with W_hh^T W_hh = I throughout training.

    W_hh = Q (I + A/2) (I - A/2)^-1 with A = X - X^T, where the lower triangular X is trained and Q is the
    initial matrix. W_hh is computed in at least float32, once per sequence, but at every step of a
    step-by-step loop; in a decoder use late attention to avoid that loop. For an unconstrained matrix that
    only starts orthogonal, use the Elman cell.

    Args:
        in_size: D, features of the input.
        size: H, features of the state.
        activation: g; maxout is not available, because it has two matrices. The state is preserved only
            if g preserves it: use modrelu if memory matters most, see docs/appendix/adding-and-copying.md.
        weights: the initial W_hh, a random orthogonal matrix or rotations of pairs of units.

    Raises:
        ConfigError: an unknown activation, or unknown initial weights.

    Source: Helfrich, Willmott & Ye 2018, "Orthogonal recurrent neural networks with scaled Cayley
    transform", with their modrelu but without their scaling.

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
        # with gradient, [384, 384] took 10 ms by the Cayley map, 107 ms by the matrix exponential
        parametrize.register_parametrization(self.cell, "weight_h", _Cayley())

    @property
    def weight_h(self) -> Tensor:
        """W_hh, [H, H]."""
        weight: Tensor = self.cell.weight_h
        return weight

    def step(self, x: Tensor, state: tuple[Tensor]) -> tuple[Tensor, tuple[Tensor]]:
        return self.cell.step(x, state)

    def run(self, x: Tensor, state: tuple[Tensor], mask: Tensor | None) -> tuple[Tensor, tuple[Tensor]]:
        """All steps, x [B, T, D], with the Elman cell, which computes the matrix once."""
        return self.cell(x, state, mask)


class _Cayley(nn.Module):
    """torch.nn.utils.parametrizations.orthogonal with the Cayley map, also for half precision."""

    base: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("base", None)

    def forward(self, x: Tensor) -> Tensor:
        wide = torch.promote_types(x.dtype, torch.float32)  # solvers need at least float32
        lower = x.to(wide).tril()
        skew = lower - lower.mT
        eye = torch.eye(len(x), dtype=wide, device=x.device)
        # solve would wait for a GPU to say that the matrix can be inverted; this one always can
        left, right = (torch.add(eye, skew, alpha=share) for share in (-0.5, 0.5))
        turn: Tensor = torch.linalg.solve_ex(left, right).result
        return (self.base.to(wide) @ turn).to(x.dtype)

    def right_inverse(self, matrix: Tensor) -> Tensor:
        """X for an initial orthogonal matrix; another matrix is made orthogonal by QR first."""
        wide = matrix.to(torch.promote_types(matrix.dtype, torch.float32))
        eye = torch.eye(len(wide), dtype=wide.dtype, device=wide.device)
        if not torch.allclose(wide.mT @ wide, eye, atol=1e-4):
            q, r = torch.linalg.qr(wide)
            matrix = (q * r.diagonal().sign()).to(matrix.dtype)
        self.base = matrix.detach().clone()
        return -torch.eye(len(matrix), dtype=matrix.dtype, device=matrix.device)
