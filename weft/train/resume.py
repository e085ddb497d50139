"""Resume from the newest checkpoint of a run, if the recipe still fits it. Read next: ready.py."""

import os
from typing import Any

import torch
from torch import nn

from weft import native
from weft.errors import CheckpointError
from weft.nn.kernels import choice
from weft.store import weights
from weft.store.digests import check_kept
from weft.train import optimiser_state, sharding
from weft.train.checkpoints import About, Checkpoints, LoadedCheckpoint
from weft.train.history import History
from weft.train.objectives.objective import Criterion
from weft.train.position import BatchOrder, Position
from weft.train.settings import TrainingSettings
from weft.train.update import NonFinite
from weft.tree import State, leaves, tree_map


def about(optimiser: torch.optim.Optimizer, settings: TrainingSettings) -> dict[str, Any]:
    """Settings that must not change when a run resumes; learning rate, limits and accumulation may."""
    return {"seed": settings.seed, "optimiser": optimiser_state.optimiser_name(type(optimiser).__name__)}


def resume(
    checkpoints: Checkpoints,
    criterion: Criterion,
    optimiser: torch.optim.Optimizer,
    plan: BatchOrder,
    history: History,
    settings: TrainingSettings,
) -> tuple[Position, History, LoadedCheckpoint | None]:
    """Load model and optimiser from the newest checkpoint; without one, start at the beginning.

    Returns the position, the validations up to it, and the checkpoint.
    """
    saved = checkpoints.newest()
    if saved is None:
        return Position(), history, None
    position = saved.position
    place = str(checkpoints.path(position.update))
    check_kept(checkpoints.run, checkpoints.fits.kept, saved.fits.kept, place)
    before = {
        "seed": saved.state.about.seed,
        "optimiser": optimiser_state.optimiser_name(saved.state.about.optimiser),
    }
    for key, now in about(optimiser, settings).items():
        then = before[key]
        if then != now:
            raise CheckpointError(
                f"{place}: expected {key} {then}, as in the earlier training, got {now}; set it back or "
                "use another --run"
            )
    if warning := moved(saved.state.about):
        checkpoints.warn(warning)
    batches = len(plan.epoch(position.epoch)) if position.index else position.batches
    if batches != position.batches:
        raise CheckpointError(
            f"{place}: expected {position.batches} batches in epoch {position.epoch}, got {batches}: "
            "the data or the batch size changed; set it back or use another --run"
        )
    _fill(saved, criterion, optimiser, place)
    # The index has the validation that followed the save; if the index is lost, that validation is repeated.
    known = [
        history.with_saved(entries).until(position.update)
        for entries in (saved.state.validations, checkpoints.index().validations)
    ]
    return position, max(known, key=lambda one: len(one.entries)), saved


def roll_back(checkpoints: Checkpoints, criterion: Criterion, optimiser: torch.optim.Optimizer) -> int:
    """Load model and optimiser from the newest checkpoint, and return its update; the data continues.

    A signal saves a checkpoint too, so a run that was interrupted shortly before may go back less far than an
    uninterrupted one.
    """
    saved = checkpoints.newest()
    if saved is None:
        raise NonFinite(
            "training.non_finite: roll_back needs a checkpoint, but there is none yet; lower "
            "training.optimiser.lr, or save sooner with training.save_every"
        )
    _fill(saved, criterion, optimiser, str(checkpoints.path(saved.position.update)))
    return saved.position.update


def _fill(
    saved: LoadedCheckpoint, criterion: Criterion, optimiser: torch.optim.Optimizer, place: str
) -> None:
    own = criterion.own
    if (own is None) != (saved.objective is None):
        with_, now = ("with", "without") if own is None else ("without", "with")
        raise CheckpointError(
            f"{place}: was trained {with_} an objective that has weights of its own, but the recipe "
            f"has one {now}; set training.objective back, or start a new --run from this one with "
            "training.start"
        )
    sharding.restore(criterion.model, saved.weights, place)
    if own is not None and saved.objective is not None:
        weights.restore(own, saved.objective, place)
    optimiser_state.restore(criterion.learner, optimiser, saved.optimiser, saved.state.optimiser, place)


def carried_state(checkpoints: Checkpoints, saved: LoadedCheckpoint | None, model: nn.Module) -> State:
    """The state that the next batch starts with, from a checkpoint; None if it has none.

    Where a task with `streams` cuts a text into pieces, the model starts each piece with its state after the
    previous one. Gradients stay within a piece.
    """
    if saved is None or not saved.carried:
        return None
    found, device = saved.carried, next(model.parameters()).device
    mask = torch.ones(len(found["0"]), 1, dtype=torch.bool, device=device)
    form = model.start(None, mask)  # type: ignore[operator]
    count = sum(1 for _ in leaves(form))
    if count != len(found):
        raise CheckpointError(
            f"{checkpoints.path(saved.position.update)}: carries a state of {len(found)} tensors, the model "
            f"has {count}; use the recipe it was trained with, or another --run"
        )
    numbers = iter(range(count))
    filled: State = tree_map(lambda _: found[str(next(numbers))].to(device), form)
    return filled


SETTINGS = ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS", "MKL_CBWR")
"""Environment variables that limit the instruction sets of the libraries."""


def machine() -> str:
    """What the rounding of a training depends on, as text for people."""
    compiled = native.loaded()
    code = compiled.reason if compiled.library else "none"
    limits = [f"{name}={os.environ[name]}" for name in SETTINGS if os.environ.get(name)]
    return ", ".join(
        [
            choice.processor()["model name"],
            f"torch {torch.__version__} ({torch.backends.cpu.get_cpu_capability()})",
            f"compiled code: {code}",
            *limits,
            f"threads: {torch.get_num_threads()}",
            *choice.switched(),
        ]
    )


def moved(about: About) -> str:
    """A warning if a checkpoint is from a machine that may round differently, else ""."""
    then, now = about.machine, machine()
    if then in ("", now):
        return ""
    return (
        f"this run was trained on {then} and resumes on {now}; the result may differ from an uninterrupted "
        "run in the last digits"
    )
