"""What `precision: auto` means for a run: float32 or bfloat16, whichever computes its first batch faster.

On a CPU that multiplies bfloat16 in hardware both are timed before the first update, forward and backward
without an optimiser step. Nothing of the training changes: random generators and buffers are put back. The
answer is kept per machine, model and batch (../nn/kernels/choice.py), and in the run's checkpoints, so that a
resumed run computes as before. Read next: ../nn/devices.py, ready.py.
"""

import hashlib
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple

import torch
from torch import nn

from weft.nn import devices
from weft.nn.kernels import choice
from weft.tasks.task import Training
from weft.tasks.validation import Validation
from weft.train.batch import Pass
from weft.train.objectives.objective import Criterion
from weft.train.position import Plan, Position, groups
from weft.train.session import Session
from weft.train.workers import threads

KEY = "precision"  # among the kernels of a run
Precision = Literal["float32", "bfloat16"]
NAMES: tuple[Precision, ...] = ("float32", "bfloat16")


class Decided(NamedTuple):
    """The precision of a training, and how it was found, as text; empty if the recipe names it."""

    precision: Precision
    why: str = ""


def decide(
    session: Session, training: Training, criterion: Criterion, plan: Plan, position: Position
) -> Decided:
    """The precision of a training, before its first update or when it resumes.

    Args:
        session: its settings and processes; the first process decides for all.
        training: collates examples into batches.
        criterion: computes losses.
        plan: order of the batches.
        position: where the training stands.
    """
    settings, device = session.settings, session.device
    fast = devices.fast_bfloat16(device)
    if settings.precision != "auto":
        return Decided(settings.precision)
    by_rule: Precision = "bfloat16" if fast else "float32"
    known = choice.known(KEY)
    if known in ("float32", "bfloat16"):
        return Decided(known, "as before")  # type: ignore[arg-type]
    # Runs of earlier versions, GPUs, and passes that would have to be compiled or shared: by the rule.
    if position.update or not fast or device.type != "cpu" or settings.compile or session.sharded:
        return Decided(by_rule)
    found: dict[str, str] = {}
    if session.processes.first:
        name, why = _measured(session, training, criterion, plan)
        found = {"name": name, "why": why}
    found = session.processes.told(found)
    choice.settle(KEY, found["name"], found["why"])
    return Decided("bfloat16" if found["name"] == "bfloat16" else "float32", found["why"])


def _measured(session: Session, training: Training, criterion: Criterion, plan: Plan) -> tuple[str, str]:
    """The faster precision of the first batch, and the times."""
    settings, workers = session.settings, session.workers
    group = next(groups(plan, Position(), settings.accumulate))
    share = session.processes.part(group, settings.accumulate)[0]
    feeding = settings.feeding.probability(0, 0)
    parameters = [one for one in criterion.learner.parameters() if one.requires_grad]
    with _untouched(criterion.learner), choice.training():  # leaves no choice of kernels behind
        batch = OneBatch(training, share.numbers)
        given = [
            Pass(batch, criterion, parameters, group, feeding, each, None, alone=True, sharded=False)
            for each in (replace(settings, precision=name) for name in NAMES)
        ]
        key = f"precision of {_digest(criterion.learner)}, rows={len(share.numbers)} tokens={batch.tokens}"
        key += f" feeding={feeding < 1} threads={workers.threads // workers.count}"
        with threads(workers.threads // workers.count, workers.threads):
            runs: dict[str, Callable[[], object]] = {
                name: partial(run, share) for name, run in zip(NAMES, given, strict=True)
            }
            name = choice.choose(key, runs)
        return name, choice.reasons()[key]


class OneBatch(Training):
    """A training whose only batch is collated once."""

    def __init__(self, training: Training, numbers: Any) -> None:
        self.training = training
        self.numbers = numbers
        self.streams = training.streams
        self.batch = training.collate(numbers)
        self.tokens = int(self.batch.target_tokens)

    def collate(self, numbers: Any) -> Any:
        """The batch; parts of it, if memory runs out, as the training collates them."""
        return self.batch if len(numbers) == len(self.numbers) else self.training.collate(numbers)

    def plan(self, seed: int) -> Any:
        return self.training.plan(seed)

    def validate(self, model: nn.Module) -> Validation:
        return self.training.validate(model)


@contextmanager
def _untouched(module: nn.Module) -> Iterator[None]:
    """Put back the random generators and the module's buffers."""
    before = torch.get_rng_state(), random.getstate()
    buffers = [(one, one.clone()) for one in module.buffers()]
    try:
        yield
    finally:
        torch.set_rng_state(before[0])
        random.setstate(before[1])
        with torch.no_grad():
            for one, kept in buffers:
                one.copy_(kept)


def _digest(module: nn.Module) -> str:
    """What stands for a model: its text and the shapes of its parameters."""
    shapes = [(name, tuple(one.shape)) for name, one in module.named_parameters()]
    return hashlib.blake2b(f"{module} {shapes}".encode(), digest_size=8).hexdigest()
