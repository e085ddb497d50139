"""The contract of an objective: what an update makes smaller.

An objective is settings; `build` gives a Criterion, which knows the task and the model and makes the loss
of a batch. What it learns for itself, such as a discriminator, is trained by the same optimiser, kept in
the checkpoints, and no part of the model that is left in the end. Read next: likelihood.py, the usual
one; minimum_risk.py; professor_forcing.py; ../update.py.
"""

import copy
from abc import ABC, abstractmethod
from typing import Any, ClassVar, TypeVar

from torch import nn

from weft.nn.heads.head import Loss
from weft.tasks.ready import Ready

M = TypeVar("M", bound=nn.Module)


class Criterion(ABC):
    """An objective at work.

    Args:
        model: that learns.
        own: what the objective learns beside it; None for nothing.
    """

    def __init__(self, model: nn.Module, own: nn.Module | None = None) -> None:
        self.model = model
        self.own = own

    @property
    def learner(self) -> nn.Module:
        """Everything that is learnt; the model itself where that is all."""
        return together(self.model, self.own)

    @abstractmethod
    def loss(self, batch: Any, **forced: Any) -> Loss:
        """The loss of a batch: a sum, and what it was summed over.

        Args:
            batch: what the task collated.
            forced: of D2's teacher forcing, where the true token is not always fed; see Generator.loss.
        """


class Objective(ABC):
    """Settings of an objective.

    Attributes:
        plain: whether it is the model's own loss, which alone knows training.feeding and carried states.
    """

    plain: ClassVar[bool] = False

    @abstractmethod
    def build(self, ready: Ready, model: nn.Module) -> Criterion:
        """The criterion for a model on its device.

        Args:
            ready: the task, made ready.
            model: newly built.

        Raises:
            ConfigError: this objective has no meaning for that model or task.
        """


def together(model: nn.Module, own: nn.Module | None) -> nn.Module:
    """A model and what its objective learns as one module, so that names tell them apart."""
    return model if own is None else nn.ModuleDict({"model": model, "objective": own})


def mirror(module: M) -> M:
    """The same module in evaluation mode over the same numbers, as constants: what that one learns is seen.

    Nothing is switched in the module itself, which other batches may be using in other threads.

    Example:
        >>> layer = nn.Linear(2, 1)
        >>> other = mirror(layer)
        >>> nn.init.ones_(layer.weight) is layer.weight, other.weight.tolist(), other.weight.requires_grad
        (True, [[1.0, 1.0]], False)
    """
    same: dict[int, Any] = {id(one): one for one in module.buffers()}
    same |= {id(one): nn.Parameter(one.detach(), requires_grad=False) for one in module.parameters()}
    return copy.deepcopy(module, same).eval()
