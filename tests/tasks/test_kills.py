"""Two trainings of one recipe are equal to the bit: unbroken, started together, and ended by kill -9.

As a user starts them: a process each, everything at its default that decides what is computed and how, one
thread and two. The cache of measured kernels is empty at first, and both unbroken trainings fill it at the
same time. Read next: test_every_task.py, the same within one process; every.py, the recipes.
"""

import multiprocessing
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.tasks.every import KINDS, agree_to_the_bit
from weft import cli
from weft.tasks.task import Pipeline, Training, training_of
from weft.train import ready as train_ready

UPDATES = 7
HERE = multiprocessing.get_context("forkserver")  # what is imported above is imported once
HERE.set_forkserver_preload([__name__])


def train(name: str, folder: Path, run: str, threads: int) -> None:
    log = os.open(folder / f"{run}.log", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ["WEFT_CACHE"] = str(folder / "cache")
    torch.set_num_threads(threads)
    kind = KINDS[name]
    (recipe,) = (folder / "toy").glob("*.yaml")

    def slowed(pipeline: Pipeline) -> Training:
        training = training_of(pipeline)
        collate = training.collate

        def slowly(numbers: Any) -> Any:
            time.sleep(0.05)  # so that a kill interrupts the training
            return collate(numbers)

        training.collate = slowly  # type: ignore[method-assign]
        return training

    train_ready.training_of = slowed
    changes = [f"training.max_updates={UPDATES}", "training.validate_every=3", "training.save_every=2"]
    changes += ["training.log_every=1", "training.accumulate=2", *kind.changes]
    cli.main(["train", str(recipe), "--run", str(folder / run), *changes])


def start(name: str, folder: Path, run: str, threads: int) -> Any:
    process = HERE.Process(target=train, args=(name, folder, run, threads))
    process.start()
    return process


def finished(process: Any, log: Path) -> None:
    process.join(timeout=300)
    assert process.exitcode == 0, log.read_text("utf-8", "replace")[-2000:]


def killed(process: Any, run: Path, lines: int, seconds: float) -> bool:
    """End it so long after its log has so many lines; whether it was still at work."""
    until, log = time.monotonic() + 300, run / "metrics.jsonl"
    while process.is_alive() and time.monotonic() < until:
        if log.exists() and log.read_bytes().count(b"\n") >= lines:
            time.sleep(seconds)
            break
        time.sleep(0.005)
    process.kill()
    process.join(timeout=60)
    return bool(process.exitcode == -signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", KINDS)
def test_two_trainings_are_equal_to_the_bit_unbroken_or_killed(
    name: str, threads: int, tmp_path: Path
) -> None:
    KINDS[name].make(tmp_path / "toy")
    both = [(run, start(name, tmp_path, run, threads)) for run in ("one", "two")]
    for run, process in both:
        finished(process, tmp_path / f"{run}.log")
    agree_to_the_bit(tmp_path / "two", tmp_path / "one", UPDATES)
    draw, hits = random.Random(f"{name} {threads}"), 0
    for lines in (1, 3, 6):
        process = start(name, tmp_path, "killed", threads)
        hits += killed(process, tmp_path / "killed", lines, draw.uniform(0.0, 0.15))
    assert hits >= 2, "the training was over before it was killed"
    finished(start(name, tmp_path, "killed", threads), tmp_path / "killed.log")
    agree_to_the_bit(tmp_path / "killed", tmp_path / "one", UPDATES)
