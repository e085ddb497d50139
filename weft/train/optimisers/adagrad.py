"""Adagrad: each parameter has its own learning rate, which falls as its gradients add up; for rare rows.

Read next: rows.py; adam.py.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from weft.train.optimisers import rows
from weft.train.optimisers.optimiser import Optimiser, can_fuse, check_settings, trainable


@dataclass(frozen=True, kw_only=True)
class Adagrad(Optimiser):
    """s = s + g²;  θ = θ - lr g / (√s + ε).

    A row without a gradient does not move (with Adam, its momentum would move it), which suits word vectors.

    Args:
        lr: learning rate.
        start: s before the first update.
        eps: ε.

    Source: Duchi et al. 2011, figure 1.
    """

    lr: float = 0.05
    start: float = 0.0
    eps: float = 1e-10

    def __post_init__(self) -> None:
        check_settings("adagrad", lr=self.lr, start=self.start, eps=self.eps)

    def build(self, model: nn.Module) -> torch.optim.Optimizer:
        """torch's Adagrad over the trainable parameters, which also takes gradients of a few rows."""
        module: Any
        for module in model.modules():
            if hasattr(module, "sparse_gradients"):
                module.sparse_gradients = True
        return rows.Adagrad(
            trainable(model),
            lr=self.lr,
            initial_accumulator_value=self.start,
            eps=self.eps,
            fused=can_fuse(model, ("cpu",)),  # torch has no fused Adagrad for GPUs
        )
