"""Adam with weight decay separate from the gradient. Read next: ../schedules/schedule.py."""

from dataclasses import dataclass

import torch
from torch import nn

from weft.train.optimisers.optimiser import Optimiser, can_fuse, check_betas, check_settings, decay_groups


@dataclass(frozen=True, kw_only=True)
class AdamW(Optimiser):
    """θ = θ - lr λ θ, then Adam's step.

    Args:
        lr: learning rate.
        betas: β1, β2.
        eps: ε.
        weight_decay: λ.
        decay_all: decay every parameter; by default not biases, norm gains and embeddings.

    Source: Loshchilov and Hutter 2019, algorithm 2.
    """

    lr: float = 0.001
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.01
    decay_all: bool = False

    def __post_init__(self) -> None:
        name = type(self).__name__.lower()
        check_settings(name, lr=self.lr, eps=self.eps, weight_decay=self.weight_decay)
        check_betas(name, self.betas)

    def build(self, model: nn.Module) -> torch.optim.Optimizer:
        """torch.optim.AdamW with one group with weight decay and one without."""
        return torch.optim.AdamW(
            decay_groups(model, self.weight_decay, self.decay_all),
            lr=self.lr,
            betas=(self.betas[0], self.betas[1]),
            eps=self.eps,
            fused=can_fuse(model),
        )
