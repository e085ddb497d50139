"""The step of Muon: AdamW, with the matrices of hidden layers orthogonalised.

Read next: optimisers.py, which has its settings and its formula.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from weft.nn.cells.cell import Cell
from weft.nn.heads.head import Head

POLYNOMIALS = ((8.0934, -23.6204, 17.4462), (3.6366, -2.7219, 0.5365), (2.6613, -1.9772, 0.4526))
"""a, b, c of X = a X + b X Xᵀ X + c (X Xᵀ)² X, one after the other, each the best for its interval (method
of Amsel et al. 2025, "The Polar Express"). They take 0.01..1 to 0.73..1.27, as five of Jordan et al. do."""
FEWEST = 16
"""A matrix with a shorter side is not cut into squares."""


def cut_matrices(model: nn.Module) -> dict[Tensor, int]:
    """The matrices to orthogonalise, with the number of rows per gate of each."""
    found: dict[Tensor, int] = {}
    outer: set[Tensor] = set()
    for module in model.modules():
        if isinstance(module, (Head, nn.Embedding)):
            outer.update(module.parameters())
        elif isinstance(module, nn.Linear):
            wide = module.in_features
            found[module.weight] = wide if wide >= FEWEST else len(module.weight)
        elif isinstance(module, Cell):
            weights = (getattr(module, name, None) for name in ("weight_x", "weight_h"))
            found |= {weight: module.size for weight in weights if isinstance(weight, nn.Parameter)}
    return {
        weight: rows if len(weight) % rows == 0 else len(weight)
        for weight, rows in found.items()
        if weight.dim() == 2 and weight not in outer
    }


class MuonStep(torch.optim.AdamW):
    """AdamW, with Muon's step for the groups that are marked `hidden`.

    Args:
        groups: parameter groups.
        cuts: rows per gate of each matrix of those groups.
        momentum: μ.
    """

    def __init__(self, groups: list[dict[str, Any]], cuts: Mapping[Tensor, int], momentum: float) -> None:
        super().__init__(groups)
        self.cuts, self.momentum = cuts, momentum

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        held = []
        for group in self.param_groups:
            if group["hidden"]:
                matrices: list[Tensor] = [one for one in group["params"] if one.grad is not None]
                held += [(one, one.grad) for one in matrices]
                self._turn(matrices, group["lr"], group["weight_decay"])
        for matrix, _ in held:
            matrix.grad = None
        loss = super().step(closure)
        for matrix, gradient in held:
            matrix.grad = gradient
        return loss

    def _turn(self, matrices: list[Tensor], rate: float, decay: float) -> None:
        waiting: dict[torch.Size, list[tuple[Tensor, Tensor]]] = {}
        for matrix in matrices:
            state, gradient = self.state[matrix], matrix.grad
            assert gradient is not None
            if not state:
                state["step"], state["momentum_buffer"] = torch.zeros(()), torch.zeros_like(matrix)
            state["step"] += 1
            moved = state["momentum_buffer"].lerp_(gradient, 1 - self.momentum)
            matrix.mul_(1 - rate * decay)
            rows = self.cuts[matrix]
            ahead = gradient.lerp(moved, self.momentum).split(rows)
            for part, direction in zip(matrix.split(rows), ahead, strict=True):
                waiting.setdefault(part.shape, []).append((part, direction))
        for shape, pairs in waiting.items():
            steps = orthogonal(torch.stack([direction for _, direction in pairs]))
            torch._foreach_add_(
                [part for part, _ in pairs], list(steps), alpha=-0.2 * max(shape) ** 0.5 * rate
            )


def orthogonal(matrices: Tensor) -> Tensor:
    """U Vᵀ of matrices U S Vᵀ [N, A, B], roughly: S from 0.01 of its norm on becomes 0.73 to 1.27."""
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.mT if tall else matrices
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp_min(1e-7)
    for a, b, c in POLYNOMIALS:
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x
