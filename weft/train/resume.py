"""Resume from a run's newest checkpoint, if the recipe still fits it. Read next: ready.py."""

from typing import Any

import torch
from torch import nn

from weft.errors import CheckpointError
from weft.train import kernels, optimiser_state, sharding, weights
from weft.train.checkpoints import Checkpoints, Saved
from weft.train.guard import NonFinite
from weft.train.history import History
from weft.train.objectives.objective import together
from weft.train.position import Plan, Position
from weft.train.settings import Settings


def about(optimiser: torch.optim.Optimizer, settings: Settings) -> dict[str, Any]:
    """What must stay the same when a run resumes; learning rate, end and accumulation may change."""
    return {"seed": settings.seed, "optimiser": type(optimiser).__name__}


def resume(
    checkpoints: Checkpoints,
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    plan: Plan,
    history: History,
    settings: Settings,
    own: nn.Module | None = None,
) -> tuple[Position, History]:
    """Load model and optimiser from the newest checkpoint; without one, start at the beginning.

    Args:
        checkpoints: of the run.
        model, optimiser: receive the stored values.
        plan: the order of the batches; must be unchanged.
        history: without validations.
        settings: seed and optimiser must be unchanged.
        own: what the objective learns beside the model; loaded too.

    Returns:
        The position, and the validations up to it.

    Raises:
        CheckpointError: there are checkpoints, but none can be loaded, or they do not fit the recipe.
    """
    saved = checkpoints.newest()
    if saved is None:
        return Position(), history
    position = saved.position
    place = str(checkpoints.path(position.update))
    for key, now in about(optimiser, settings).items():
        then = getattr(saved.state.about, key)
        if then != now:
            raise CheckpointError(
                f"{place}: expected {key} {then}, as it was trained, got {now}; set it back or "
                "use another --run"
            )
    # The kernels of before, so that sums are taken in the same order; a forced one stays forced.
    if warning := kernels.restore(saved.state.about):
        checkpoints.warn(warning)
    batches = len(plan.epoch(position.epoch)) if position.index else position.batches
    if batches != position.batches:
        raise CheckpointError(
            f"{place}: epoch {position.epoch} had {position.batches} batches, now it has {batches}: "
            "the data or the size of batches changed; set it back or use another --run"
        )
    _fill(saved, model, optimiser, own, place)
    # The index knows the validation that followed the save; should it be lost, that one is done again.
    known = [
        history.with_saved(entries).until(position.update)
        for entries in (saved.state.validations, checkpoints.index().validations)
    ]
    return position, max(known, key=lambda one: len(one.entries))


def roll_back(
    checkpoints: Checkpoints,
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    own: nn.Module | None = None,
) -> int:
    """Load model and optimiser from the newest checkpoint; the data continues where it was.

    Returns:
        The update of that checkpoint. A save because of a signal makes a checkpoint too, so that a run which
        was interrupted shortly before may go back less far than the unbroken one.

    Raises:
        NonFinite: there is no checkpoint yet.
    """
    saved = checkpoints.newest()
    if saved is None:
        raise NonFinite(
            "training.non_finite: roll_back finds no checkpoint to go back to; lower training.optimiser.lr, "
            "or save sooner with training.save_every"
        )
    _fill(saved, model, optimiser, own, str(checkpoints.path(saved.position.update)))
    return saved.position.update


def _fill(
    saved: Saved, model: nn.Module, optimiser: torch.optim.Optimizer, own: nn.Module | None, place: str
) -> None:
    if (own is None) != (saved.objective is None):
        with_, now = ("with", "without") if own is None else ("without", "with")
        raise CheckpointError(
            f"{place}: was trained {with_} an objective that learns for itself, but the recipe "
            f"has one {now}; set "
            "training.objective back, or start another --run from this one with training.start"
        )
    sharding.restore(model, saved.weights, place)
    if own is not None and saved.objective is not None:
        weights.restore(own, saved.objective, place)
    optimiser_state.restore(together(model, own), optimiser, saved.optimiser, saved.state.optimiser, place)
