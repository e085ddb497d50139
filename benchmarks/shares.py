"""Where the time of a training goes: CPU time of each phase of an update and of the largest operations.

    python benchmarks/shares.py RECIPE [SECTION.KEY=VALUE]... [--updates N] [--top N]

Takes the recipe's own batches, model and optimiser on one thread, without a run directory. Phases are
measured without a profiler, in CPU seconds; then a few updates more with torch's, for the shares of
operations, in which compiled code appears as the function that calls it (docs/guides/profile.md).
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from weft import native
from weft.config import read_recipe
from weft.native import keep_freed
from weft.nn import devices
from weft.run.training import check_recipe
from weft.train.position import settle
from weft.train.sharding import local

WARM = 3
PHASES = ("batch", "forward", "backward", "norm and scaling", "optimiser")


class Update:
    """One update after another, as weft/train/update.py takes them."""

    def __init__(self, recipe: str, changes: list[str], folder: Path) -> None:
        keep_freed()  # as a training does
        begun = check_recipe(read_recipe(recipe, changes))
        self.settings = begun.settings
        self.pipeline = begun.task.prepare(folder, lambda *said: None)
        self.training: Any = self.pipeline.training
        torch.manual_seed(begun.settings.seed)
        self.model: Any = self.pipeline.model().train()
        self.optimiser = begun.settings.optimiser.build(self.model)
        self.parameters = [one for one in self.model.parameters() if one.requires_grad]
        self.plan = self.training.plan(begun.settings.seed).epoch(0)
        self.number = 0

    def __call__(self, phase: Callable[[str], Any]) -> int:
        """Take an update; returns its target tokens."""
        device = torch.device("cpu")
        half = devices.uses_bfloat16(self.settings.precision, device)
        with phase("batch"):
            batch = self.training.collate(self.plan[self.number % len(self.plan)])
        settle(self.number, device)
        with phase("forward"), devices.autocast(half, device):
            loss = self.model.loss(batch)
        with phase("backward"):
            gradients = torch.autograd.grad(loss.total, self.parameters, allow_unused=True)
        with phase("norm and scaling"):
            found = [local(one) for one in gradients if one is not None]
            torch.nn.utils.get_total_norm(found).item()
            torch._foreach_mul_(found, 1 / float(loss.count))
        with phase("optimiser"):
            for parameter, gradient in zip(self.parameters, gradients, strict=True):
                parameter.grad = gradient
            self.optimiser.step()
            self.optimiser.zero_grad(set_to_none=True)
        self.number += 1
        return int(batch.target_tokens)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recipe")
    parser.add_argument("changes", nargs="*")
    parser.add_argument("--updates", type=int, default=20)
    parser.add_argument("--top", type=int, default=12)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        update = Update(asked.recipe, asked.changes, Path(folder))
        _phases(update, asked.updates)
        _operations(update, max(2, asked.updates // 4), asked.top)


def _phases(update: Update, updates: int) -> None:
    """Print the CPU time of each phase: the median over the updates."""
    times: list[dict[str, float]] = []
    tokens = 0

    @contextmanager
    def phase(name: str) -> Iterator[None]:
        begun = time.process_time()
        yield
        times[-1][name] = time.process_time() - begun

    for number in range(WARM + updates):
        times.append({})
        tokens += update(phase) if number >= WARM else 0 * update(phase)
    del times[:WARM]
    whole = statistics.median(sum(one.values()) for one in times)
    rate = tokens / sum(sum(one.values()) for one in times)
    print(f"{updates} updates of {tokens / updates:,.0f} tokens, {rate:,.0f} tokens a CPU second, one thread")
    for name in PHASES:
        found = statistics.median(one[name] for one in times)
        print(f"  {name:<18}{1000 * found:8.1f} ms {100 * found / whole:5.1f} %")


def _operations(update: Update, updates: int, top: int) -> None:
    """Print the operations with the largest share of the time, compiled functions among them."""
    real = native.call

    def call(function: str, job: Any) -> None:
        with record_function(function):
            real(function, job)

    native.call = call
    try:
        with profile(activities=[ProfilerActivity.CPU]) as found:
            for _ in range(updates):
                update(record_function)
    finally:
        native.call = real
    rows = sorted(found.key_averages(), key=lambda one: -one.self_cpu_time_total)
    whole = sum(one.self_cpu_time_total for one in rows)
    print(f"operations, {updates} updates with torch's profiler: share of the time, calls an update")
    for one in rows[:top]:
        print(
            f"  {one.key[:44]:<46}{100 * one.self_cpu_time_total / whole:5.1f} % {one.count / updates:7.0f}"
        )


if __name__ == "__main__":
    main()
