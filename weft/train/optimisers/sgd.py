"""Stochastic gradient descent, optionally with momentum. Read next: ../update.py."""

from dataclasses import dataclass

import torch
from torch import nn

from weft.train.optimisers.optimiser import Optimiser, can_fuse, check_settings, trainable


@dataclass(frozen=True, kw_only=True)
class SGD(Optimiser):
    """g = g + λ θ;  b = μ b + g;  θ = θ - lr (b, or g + μ b with Nesterov's momentum).

    Args:
        lr: learning rate.
        momentum: μ; 0 is plain gradient descent.
        nesterov: use Nesterov's momentum.
        weight_decay: λ, the L2 penalty λ/2 |θ|², over every parameter.
    """

    lr: float = 0.1
    momentum: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        check_settings("sgd", lr=self.lr, momentum=self.momentum, weight_decay=self.weight_decay)

    def build(self, model: nn.Module) -> torch.optim.Optimizer:
        """torch.optim.SGD over the trainable parameters."""
        return torch.optim.SGD(
            trainable(model),
            lr=self.lr,
            momentum=self.momentum,
            nesterov=self.nesterov,
            weight_decay=self.weight_decay,
            fused=can_fuse(model),
        )
