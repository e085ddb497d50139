"""Low-rank adaptation: what training adds to a matrix W of a trained model is a product of two narrow ones.

W' = W + (alpha / r) B A, with A [r, I] random and B [O, r] zero at first, so that training begins with the
model as it was. Checkpoints and the run keep W, A and B; whatever opens the run gets W' (`weights.merged`).
Read next: ready.py, which calls `adapt`; tuned.py, whose names the targets are.

Source: Hu et al. 2022, "LoRA: Low-Rank Adaptation of Large Language Models", section 4.1.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from weft.errors import ConfigError
from weft.setting_types import AtLeastOne, Positive, check_fields
from weft.store.weights import plus_low_rank
from weft.train.tuned import inside, matching, parts_of

TARGETS = "training.lora.targets"

OUTER = ("head", "pool")
"""Parts that are new in a model for another task, and are trained whole."""


@dataclass(frozen=True, kw_only=True)
class Lora:
    """W' = W + (alpha / rank) B A for some matrices W; only A, B, the head and a pool are trained.

    Args:
        rank: rows of A and columns of B.
        alpha: the product counts alpha / rank times, so that another rank needs no other learning rate.
        targets: linear layers, all of a name or a pattern: query, encoder.blocks.0, "encoder.*.out".

    Source: Hu et al. 2022, section 4.1.
    """

    rank: AtLeastOne = 8
    alpha: Positive = 16.0
    targets: tuple[str, ...] = ("query", "key_value")

    def __post_init__(self) -> None:
        check_fields(self, "training.lora.")


class LowRank(nn.Module):
    """Makes W' of W [O, I], for torch's parametrize; s = alpha / r."""

    scale: Tensor

    def __init__(self, weight: Tensor, rank: int, alpha: float) -> None:
        super().__init__()
        rows, columns = weight.shape
        self.a = nn.Parameter(weight.new_empty(rank, columns))
        self.b = nn.Parameter(weight.new_zeros(rows, rank))
        nn.init.kaiming_uniform_(self.a, a=math.sqrt(5))
        self.register_buffer("scale", weight.new_tensor(alpha / rank))
        self._merged: Tensor | None = None

    def train(self, mode: bool = True) -> "LowRank":
        self._merged = None
        return super().train(mode)

    def forward(self, weight: Tensor) -> Tensor:
        """W'; in evaluation mode it is computed once, as compiled code keeps its address."""
        with torch.autocast(weight.device.type, enabled=False):
            if self.training:
                return plus_low_rank(weight, self.a, self.b, self.scale)
            if self._merged is None:
                with torch.inference_mode(False), torch.no_grad():
                    self._merged = plus_low_rank(weight, self.a, self.b, self.scale)
            return self._merged


def adapt(model: nn.Module, how: Lora) -> None:
    """Add the narrow matrices to a model, in place; only they, the head and a pool are trained."""
    parts = parts_of(model)
    inner = [part for name, part in parts.items() if name not in OUTER]
    taken = {id(one): one for part in inner for one in part.modules()}
    chosen: dict[int, nn.Linear] = {}
    for target in how.targets:
        paths = matching(model, target, TARGETS, every=True)
        named = (one for path, one in model.named_modules() if inside(path, paths) and id(one) in taken)
        linear = {id(one): one for one in named if isinstance(one, nn.Linear)}
        if not linear:
            raise ConfigError(
                f"{TARGETS}: expected linear layers, such as query, got {target!r}, which has none"
            )
        chosen |= linear
    fixed = {id(one) for part in inner for one in part.parameters()}
    for parameter in model.parameters():
        parameter.requires_grad_(id(parameter) not in fixed)
    for module in chosen.values():
        parametrize.register_parametrization(module, "weight", LowRank(module.weight, how.rank, how.alpha))
