"""C11, truncated back-propagation: the state that one batch leaves for the next, and in the checkpoint.

A task with `streams` cuts a text into pieces; the model reads each piece from the state it had after the
one before. Gradients stay inside a piece. Checkpoints store the carried state, so a resumed run equals the
unbroken one. Read next: update.py, ../models.py (`Generator.carry_on`).
"""

import os
from typing import Any

import torch
from torch import Tensor, nn

from weft.errors import CheckpointError, ConfigError
from weft.tasks.ready import Training
from weft.tasks.task import Task
from weft.train.feeding.feeding import always_true
from weft.train.settings import Settings
from weft.tree import State, leaves, tree_map


def check(task: Task, settings: Settings) -> None:
    """See that a carried state and the other settings go together.

    Raises:
        ConfigError: several batches an update, or own words fed, beside a carried state.
    """
    if not task.streams:
        return
    if settings.accumulate > 1:
        raise ConfigError(
            f"training.accumulate: expected 1, got {settings.accumulate}: each batch begins with "
            "the state of "
            "the one before, so there is one batch an update; set it to 1 and raise data.rows instead"
        )
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ConfigError(
            "--processes: a carried state goes from batch to batch, so one process trains; leave it out, or "
            "set data.batches: lines"
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
    """The tensors of a state, numbered depth first, for a file."""
    return {str(number): leaf.contiguous() for number, leaf in enumerate(leaves(state))}


def restored(
    training: Training, checkpoints: Any, position: Any, model: nn.Module, device: torch.device
) -> State:
    """The state that the checkpoint of a position carries, or None.

    Args:
        training: says whether a state is carried.
        checkpoints: of the run.
        position: where it stands.
        model: its `start` gives the form of a state.
        device: where the state is needed.

    Raises:
        CheckpointError: the state is that of another model.
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
