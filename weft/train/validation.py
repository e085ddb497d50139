"""Validate in the first process and send the scores to the others.

The whole model is validated in evaluation mode and float32, and a repeated validation uses the same
random numbers. Read next: course.py.
"""

import torch
from torch import nn

from weft.tasks.ready import Ready, Training, training_of
from weft.tasks.validation import Validation
from weft.train import seeds, sharding
from weft.train.interrupts import Interrupted, Interrupts
from weft.train.processes import Processes
from weft.train.settings import Settings


def validate(
    ready: Ready,
    model: nn.Module,
    settings: Settings,
    processes: Processes,
    interrupts: Interrupts,
    number: int,
) -> Validation:
    """The task's scores and samples, in float32, with the same random numbers each time it is repeated.

    The first process validates; the others receive its scores, or learn that a signal ended it.

    Args:
        ready: makes and validates models.
        model: put into evaluation mode meanwhile.
        settings: contain the seed.
        processes: of which the first validates.
        interrupts: of this process.
        number: the update.

    Raises:
        Interrupted: a signal arrived meanwhile.
    """
    whole: nn.Module | None = model
    if any(map(sharding.is_sharded, model.parameters())):
        whole = sharding.gathered(model, ready.model, wanted=processes.first)
    if whole is None or not processes.first:
        heard = processes.told()
        if heard["signal"]:
            interrupts.agree(heard["signal"])
            raise Interrupted
        return Validation(heard["scores"], [])
    try:
        with interrupts.alone():
            validation: Validation = scored(training_of(ready), whole, settings, number)
    except Interrupted:
        processes.told({"signal": interrupts.asked})
        raise
    processes.told({"signal": 0, "scores": validation.scores})
    return validation


def scored(training: Training, model: nn.Module, settings: Settings, number: int) -> Validation:
    """The scores and samples of a model in this process.

    Args:
        training: validates.
        model: whole; is in training mode afterwards.
        settings: know the seed.
        number: of the update.
    """
    seeds.settle(seeds.derive(settings.seed, "validation", number), next(model.parameters()).device)
    model.eval()
    try:
        with torch.no_grad():
            return training.validate(model).with_metrics(settings.metrics)
    finally:
        model.train()
