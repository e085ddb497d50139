"""Truncated back-propagation: the state carried from one batch to the next.

A task with `streams` cuts a text into pieces; the model starts each piece with its state after the previous
one. Gradients stay within a piece. Checkpoints store the carried state, so a resumed run equals an
uninterrupted one. Read next: update.py, ../models.py (`Generator.carry_on`).
"""

import os
from typing import Any

import torch
from torch import Tensor, nn

from weft.errors import CheckpointError, ConfigError
from weft.tasks.task import Task, Training
from weft.train.feeding import always_true
from weft.train.settings import TrainingSettings
from weft.tree import State, leaves, tree_map


def check_carried_state(task: Task, settings: TrainingSettings) -> None:
    """Check that the settings allow a carried state, if the task has one.

    Raises:
        ConfigError: they do not, such as several batches per update.
    """
    if not task.streams:
        return
    if settings.accumulate > 1:
        raise ConfigError(
            f"training.accumulate: expected 1, got {settings.accumulate}: each batch starts with "
            "the state of the previous one, so an update has one batch; set it to 1 and raise "
            "data.batch_rows instead"
        )
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ConfigError(
            "--processes: a state is carried from batch to batch, so only one process can train; leave it "
            "out, or set data.batches: lines"
        )
    if not settings.objective.plain:
        raise ConfigError(
            f"training.objective: cannot use {type(settings.objective).__name__}: a carried state allows "
            "likelihood training only; leave it out or set data.batches: lines"
        )
    if not always_true(settings.feeding):
        raise ConfigError(
            "training.feeding: expected a probability of 1: a carried state reads the true text only; "
            "leave it out or set data.batches: lines"
        )


def named(state: State) -> dict[str, Tensor]:
    """The tensors of a state for a file, numbered depth first."""
    return {str(number): leaf.contiguous() for number, leaf in enumerate(leaves(state))}


def restored(
    training: Training, checkpoints: Any, position: Any, model: nn.Module, device: torch.device
) -> State:
    """The carried state in the checkpoint of a position, or None.

    Args:
        training: says whether a state is carried.
        checkpoints: checkpoints of the run.
        position: position of the checkpoint.
        model: its `start` gives the structure of a state.
        device: device for the state.

    Raises:
        CheckpointError: the state belongs to another model.
    """
    if not training.streams or position.update not in checkpoints.updates():
        return None
    found = checkpoints.load(position.update).carried
    if not found:
        return None
    mask = torch.ones(len(found["0"]), 1, dtype=torch.bool, device=device)
    form = model.start(None, mask)  # type: ignore[operator]
    count = sum(1 for _ in leaves(form))
    if count != len(found):
        raise CheckpointError(
            f"{checkpoints.path(position.update)}: carries a state of {len(found)} tensors, the model has "
            f"{count}; use the recipe it was trained with, or another --run"
        )
    numbers = iter(range(count))
    filled: State = tree_map(lambda _: found[str(next(numbers))].to(device), form)
    return filled
