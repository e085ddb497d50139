"""What a run leaves behind, and ways to break one off."""

import json
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tests.train.toy import Task, quiet, settings
from weft.store import weights
from weft.train.checkpoints import Checkpoints
from weft.train.feeding import LinearFeeding
from weft.train.finish import Outcome
from weft.train.loop import train
from weft.train.optimisers import Adam
from weft.train.schedules import Plateau


class Crash(Exception):
    pass


class Trace:
    """What a run left behind: weights, optimiser, scores, losses; and the batches it read."""

    def __init__(self, run: Path, ids: list[list[int]], outcome: Outcome) -> None:
        newest = Checkpoints(run, lambda text: None).newest()
        assert newest is not None
        self.weights, self.optimiser = newest.weights, newest.optimiser
        self.model = weights.load(run / "model.safetensors")
        self.index = json.loads((run / "checkpoints.json").read_bytes())
        timed = {"tokens_per_second", "tokens_per_cpu_second", "seconds", "cpu_seconds", "seconds_left"}
        self.lines = [{k: v for k, v in line.items() if k not in timed} for line in measured(run)]
        self.ids, self.outcome = ids, outcome._replace(samples=())  # of this process alone

    def differs(self, other: "Trace") -> list[str]:
        mine, theirs = vars(self), vars(other)
        tensors = ("weights", "optimiser", "model")
        return [
            name
            for name in mine
            if not (same if name in tensors else lambda x, y: x == y)(mine[name], theirs[name])
        ]


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def unbroken(run: Path, chosen: Any, **task: Any) -> Trace:
    made = Task(**task)
    return Trace(run, made.ids, train(made, run, chosen, quiet(run)))


def resumed(run: Path, chosen: Any, first: Task, second: Task) -> Trace:
    """Two trainings into one run, the first of which may be broken off."""
    with suppress(Crash):
        assert train(first, run, chosen, quiet(run)).exit_code == 143
    outcome = train(second, run, chosen, quiet(run))
    return Trace(run, first.ids + second.ids, outcome)


def measured(run: Path, *events: str) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl, all of them or those of these events."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_bytes().splitlines()]
    return [line for line in lines if not events or line["event"] in events]


def terminate(at: int) -> Any:
    return lambda number: os.kill(os.getpid(), signal.SIGTERM) if number == at else None


def crash(at: int) -> Any:
    def maybe(number: int) -> None:
        if number == at:
            raise Crash

    return maybe


BUSY = settings(
    optimiser=Adam(lr=0.02),
    schedule=Plateau(patience=1, warmup=3),
    feeding=LinearFeeding(updates=6, floor=0.3),
    validate_every=2,
    save_every=1,
    metric="score",
    keep_best=2,
    average=2,
)


def vars_of(chosen: Any) -> dict[str, Any]:
    return {name: getattr(chosen, name) for name in chosen.__dataclass_fields__}
