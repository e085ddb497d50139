"""Validate in the first process and send the scores to the others.

The whole model is validated in evaluation mode and float32. A repeated validation uses the same random
numbers. Read next: training_state.py.
"""

import torch
from torch import nn

from weft.rooms import wrong_result
from weft.tasks.evaluation import Validation
from weft.tasks.task import Pipeline, Training, training_of
from weft.train import seeds, sharding
from weft.train.interrupts import Interrupted, Interrupts
from weft.train.processes import Processes
from weft.train.settings import TrainingSettings


def validate(
    pipeline: Pipeline,
    model: nn.Module,
    settings: TrainingSettings,
    processes: Processes,
    interrupts: Interrupts,
    number: int,
) -> Validation:
    """Validate a model and return the task's scores and samples.

    The first process validates; the others receive its scores, or learn that a signal interrupted it.

    Args:
        pipeline: makes and validates models.
        model: temporarily put into evaluation mode.
        settings: training settings, for the seed.
        processes: processes of the training.
        interrupts: signals of this process.
        number: number of the update.

    Raises:
        Interrupted: a signal arrived during validation.
    """
    whole: nn.Module | None = model
    if any(map(sharding.is_sharded, model.parameters())):
        whole = sharding.gathered(model, pipeline.model, wanted=processes.first)
    if whole is None or not processes.first:
        answer = processes.told()
        if answer["signal"]:
            interrupts.agree(answer["signal"])
            raise Interrupted
        return Validation(answer["scores"], [])
    try:
        with interrupts.alone():
            validation: Validation = scored(training_of(pipeline), whole, settings, number)
    except Interrupted:
        processes.told({"signal": interrupts.asked})
        raise
    processes.told({"signal": 0, "scores": validation.scores})
    return validation


def scored(training: Training, model: nn.Module, settings: TrainingSettings, number: int) -> Validation:
    """The scores and samples of a model, computed in this process.

    Args:
        training: validates.
        model: whole model; in training mode afterwards.
        settings: training settings, for the seed.
        number: number of the update.
    """
    seeds.settle(seeds.derive(settings.seed, "validation", number), next(model.parameters()).device)
    model.eval()
    try:
        with torch.no_grad():
            found = training.validate(model)
            if not isinstance(found, Validation):
                raise wrong_result(training, "validate", "a Validation", type(found).__name__)
            return found.with_metrics(settings.metrics)
    finally:
        model.train()
