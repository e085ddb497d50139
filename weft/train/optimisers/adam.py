"""Adam, with weight decay as an L2 penalty inside the gradient. Read next: adamw.py."""

from dataclasses import dataclass

import torch
from torch import nn

from weft.train.optimisers.optimiser import Optimiser, can_fuse, check_betas, check_settings, trainable


@dataclass(frozen=True, kw_only=True)
class Adam(Optimiser):
    """m = β1 m + (1-β1) g;  v = β2 v + (1-β2) g²;  θ = θ - lr m̂ / (√v̂ + ε), with m̂ and v̂ bias-corrected.

    Args:
        lr: learning rate.
        betas: β1, β2.
        eps: ε.
        weight_decay: λ; λ θ is added to the gradient of every parameter.

    Source: Kingma and Ba 2015, algorithm 1.
    """

    lr: float = 0.001
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        check_settings("adam", lr=self.lr, eps=self.eps, weight_decay=self.weight_decay)
        check_betas("adam", self.betas)

    def build(self, model: nn.Module) -> torch.optim.Optimizer:
        """torch.optim.Adam over the trainable parameters."""
        return torch.optim.Adam(
            trainable(model),
            lr=self.lr,
            betas=(self.betas[0], self.betas[1]),
            eps=self.eps,
            weight_decay=self.weight_decay,
            fused=can_fuse(model),
        )
