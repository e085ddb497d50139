"""Maximum likelihood: the model's own loss. Read next: minimum_risk.py."""

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import nn

from weft.nn.border import called
from weft.nn.heads.head import Loss
from weft.rooms import wrong_result
from weft.tasks.task import Pipeline
from weft.train.objectives.objective import Criterion, Objective


class OwnLoss(Criterion):
    """The loss that the model computes itself: a sum and its count."""

    def loss(self, batch: Any, **forced: Any) -> Loss:
        loss: Loss = self.model.loss(batch, **forced)  # type: ignore[operator]
        if not isinstance(loss, Loss):
            raise wrong_result(self.model, "loss", "a Loss of weft.nn.heads.head", called(loss))
        return loss


@dataclass(frozen=True, kw_only=True)
class MaximumLikelihood(Objective):
    """-Σ_t log P(y_t | y_<t, x), or any other loss that the model's head defines.

    Example:
        >>> MaximumLikelihood().plain
        True
    """

    plain: ClassVar[bool] = True

    def build(self, pipeline: Pipeline, model: nn.Module) -> Criterion:
        return OwnLoss(model)
