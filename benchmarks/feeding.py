"""Target tokens per second that the data of a recipe give to a training, without a model, on the CPU.

    python benchmarks/feeding.py recipes/translate/help-transformer-tiny.yaml data.batch_tokens=16000
    python benchmarks/feeding.py RECIPE --profile      # the functions that take longest

Batches are read from the store, made and filled up to few shapes, as `training.cuda_graphs` does it. What a
GPU computes per second must be less than that, since the process that makes the batches also launches them.
The figures are the median and the range of the rounds.
"""

import argparse
import cProfile
import itertools
import pstats
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from weft.config import read_recipe
from weft.nn.randomness import drawing
from weft.run.training import check_recipe


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("recipe", type=Path)
    parser.add_argument("changes", nargs="*", help="as for weft train")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=5)
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
        rates = sorted(feed(training, numbers, asked.seconds) for _ in range(asked.rounds))
    print(f"{statistics.median(rates):,.0f} target tokens/s ({rates[0]:,.0f} to {rates[-1]:,.0f})")


if __name__ == "__main__":
    main()
