"""A validation: by the first process, told to the others.

It takes the whole model in evaluation mode and float32, with the same randomness whenever it is done.
Read next: loop.py.
"""

from typing import Any

import torch
from torch import nn

from weft.tasks.task import Validation
from weft.train import seeds, sharding
from weft.train.interrupts import Interrupted, Interrupts
from weft.train.processes import Processes
from weft.train.settings import Settings


def validate(
    task: Any,
    model: nn.Module,
    settings: Settings,
    processes: Processes,
    interrupts: Interrupts,
    number: int,
) -> Validation:
    """The task's scores and samples, in float32, with the same randomness whenever it is done.

    The first process validates, the others hear its scores, or that a signal ended it.

    Args:
        task: validates.
        model: is in evaluation mode meanwhile.
        settings: know the seed.
        processes: of which one validates.
        interrupts: of this process.
        number: of the update.

    Raises:
        Interrupted: a signal came meanwhile.
    """
    whole: nn.Module | None = model
    if any(map(sharding.is_sharded, model.parameters())):
        whole = sharding.gathered(model, task.model, wanted=processes.first)
    if whole is None or not processes.first:
        heard = processes.told()
        if heard["signal"]:
            interrupts.agree(heard["signal"])
            raise Interrupted
        return Validation(heard["scores"], [])
    try:
        with interrupts.alone():
            validation: Validation = scored(task, whole, settings, number)
    except Interrupted:
        processes.told({"signal": interrupts.asked})
        raise
    processes.told({"signal": 0, "scores": validation.scores})
    return validation


def scored(task: Any, model: nn.Module, settings: Settings, number: int) -> Any:
    """The scores and samples of a model in this process.

    Args:
        task: validates.
        model: whole; is in training mode afterwards.
        settings: know the seed.
        number: of the update.
    """
    seeds.settle(seeds.derive(settings.seed, "validation", number), next(model.parameters()).device)
    model.eval()
    try:
        with torch.no_grad():
            return task.validate(model)
    finally:
        model.train()
