"""The contract of an objective: the quantity that training minimises.

An objective holds settings; `build` makes a Criterion, which knows the task and the model and computes the
loss of a batch. An objective may have a module of its own, such as a discriminator: it is trained by the same
optimiser and stored in checkpoints, but not in the final model. Read next: likelihood.py, the usual one;
minimum_risk.py; professor_forcing.py; ../update.py.
"""

import copy
from abc import ABC, abstractmethod
from typing import Any, ClassVar, TypeVar

from torch import nn

from weft.nn.heads.head import Loss
from weft.tasks.task import Pipeline

M = TypeVar("M", bound=nn.Module)


class Criterion(ABC):
    """Computes the loss of a model.

    Args:
        own: the objective's own module, if any.
    """

    def __init__(self, model: nn.Module, own: nn.Module | None = None) -> None:
        self.model = model
        self.own = own

    @property
    def learner(self) -> nn.Module:
        """The module to train: the model, or model and own module as one module with distinct names."""
        if self.own is None:
            return self.model
        return nn.ModuleDict({"model": self.model, "objective": self.own})

    @abstractmethod
    def loss(self, batch: Any, **forced: Any) -> Loss:
        """The loss of a batch: a sum, and the number of terms in it.

        Args:
            forced: settings of teacher forcing if the true token is not always fed; see Generator.loss.
        """


class Objective(ABC):
    """Settings of an objective.

    Attributes:
        plain: whether it is the model's own loss; only that supports training.feeding and carried states.

    Example:
        >>> from weft.train.objectives.likelihood import OwnLoss
        >>> class SameLoss(Objective):
        ...     plain = True
        ...     def build(self, pipeline, model):
        ...         return OwnLoss(model)
        >>> SameLoss().plain
        True
    """

    plain: ClassVar[bool] = False

    @abstractmethod
    def build(self, pipeline: Pipeline, model: nn.Module) -> Criterion:
        """Make the criterion for a model on its device.

        Args:
            pipeline: the prepared task.
            model: newly built.

        Raises:
            ConfigError: the objective does not apply to this model or task.
        """


def mirror(module: M) -> M:
    """A copy of a module in evaluation mode that shares its parameters as constants.

    The module itself does not change: other threads may be using it.
    """
    same: dict[int, Any] = {id(one): one for one in module.buffers()}
    same |= {id(one): nn.Parameter(one.detach(), requires_grad=False) for one in module.parameters()}
    return copy.deepcopy(module, same).eval()
