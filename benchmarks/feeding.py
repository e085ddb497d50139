"""Target tokens per second that the data of a recipe give to a training, without a model, on the CPU.

    python benchmarks/feeding.py recipes/translate/help-transformer.yaml data.batch_tokens=16000
    python benchmarks/feeding.py RECIPE --card 600000  # what a card of this speed gets
    python benchmarks/feeding.py RECIPE --profile      # the functions that take longest

Batches are read from the store, made and filled up to few shapes, as `training.cuda_graphs` does it. A card
is played by a loop that waits for it as a training on a GPU does without graphs: for half of the time of an
update it launches operations (small ones, which the CPU computes), for the other half it sleeps. Its batches
are made beforehand, by the loop itself, or by the thread of `weft/train/prefetch.py`, and not filled up. The
figures are the median and the range of the rounds.
"""

import argparse
import cProfile
import itertools
import pstats
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from weft.config import read_recipe
from weft.nn.randomness import drawing
from weft.run.training import check_recipe
from weft.train.position import BatchGroup, Position, groups
from weft.train.prefetch import Prefetcher, made_batch
from weft.train.processes import Share

LAUNCHING = 0.5
"""Share of an update in which the loop launches operations."""


def batches(training: Any) -> Iterator[np.ndarray]:
    """The numbers of the examples of each batch, epoch after epoch."""
    order = training.plan(1)
    for epoch in itertools.count():
        yield from order.epoch(epoch)


def feed(training: Any, numbers: Iterator[np.ndarray], seconds: float) -> float:
    """Target tokens per second over some time."""
    tokens, begun = 0, time.perf_counter()
    with drawing(torch.Generator().manual_seed(1)):
        while (now := time.perf_counter() - begun) < seconds:
            batch = training.collate(next(numbers))
            batch = batch.filled() if hasattr(batch, "filled") else batch
            tokens += int(batch.target_tokens)
    return tokens / now


def shares(group: BatchGroup) -> list[Share]:
    """The only batch of an update."""
    return [Share(0, group.numbers[0])]


def fed_card(training: Any, seconds: float, speed: float) -> tuple[float, float, float]:
    """Target tokens per second that a card gets which computes `speed` of them, three ways."""

    def make(group: BatchGroup) -> Any:
        return made_batch(training, 1, group, shares(group)[0])

    order = groups(training.plan(1), Position(), 1)
    kept = [replace(group, made={0: make(group)}) for group in itertools.islice(order, 16)]
    before = card(itertools.cycle(kept), lambda group: group.made[0], seconds, speed)
    due = card(order, make, seconds, speed)
    with Prefetcher(order, shares, training, 1) as coming:
        return before, due, card(coming, lambda group: group.made[0], seconds, speed)


def card(
    coming: Iterator[BatchGroup], make: Callable[[BatchGroup], Any], seconds: float, speed: float
) -> float:
    """Take batches, and spend as much time on each as a card of this speed needs."""
    x, tokens = torch.ones(8), 0
    make(next(coming))
    begun = time.perf_counter()
    while (now := time.perf_counter() - begun) < seconds:
        batch = make(next(coming))
        tokens += int(batch.target_tokens)
        update, start = int(batch.target_tokens) / speed, time.perf_counter()
        while time.perf_counter() - start < LAUNCHING * update:
            x.add_(1.0)
        time.sleep(max(0.0, update - (time.perf_counter() - start)))
    return tokens / now


def said(rates: Sequence[float]) -> str:
    """The median and the range."""
    return f"{statistics.median(rates):,.0f} target tokens/s ({min(rates):,.0f} to {max(rates):,.0f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("recipe", type=Path)
    parser.add_argument("changes", nargs="*", help="as for weft train")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--card", type=float, metavar="SPEED", help="target tokens/s that a card computes")
    parser.add_argument("--profile", action="store_true")
    asked = parser.parse_args()
    task = check_recipe(read_recipe(asked.recipe, asked.changes)).task
    with tempfile.TemporaryDirectory() as folder:
        training: Any = task.prepare(Path(folder), lambda *_: None).training
        numbers = batches(training)
        feed(training, numbers, 0.5)
        profile = cProfile.Profile()
        if asked.profile:
            profile.runcall(feed, training, numbers, asked.seconds)
            pstats.Stats(profile).sort_stats("tottime").print_stats(12)
            return
        if asked.card:
            found = [fed_card(training, asked.seconds, asked.card) for _ in range(asked.rounds)]
            for who, rates in zip(
                ("beforehand", "by the loop", "by a thread"), zip(*found, strict=True), strict=True
            ):
                print(f"batches made {who:12}", said(rates))
            return
        print(said([feed(training, numbers, asked.seconds) for _ in range(asked.rounds)]))


if __name__ == "__main__":
    main()
