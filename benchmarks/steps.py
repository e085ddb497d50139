"""Weft's LSTM, GRU and RNN beside torch.nn's, which they replace: one time step of one row, or whole layers.

    python benchmarks/steps.py
    python benchmarks/steps.py --sizes 128 512 --rounds 15
    python benchmarks/steps.py --grid        layers of up to 50 steps, 32 to 1,024 wide, 1 to 256 rows

A ratio is torch.nn's CPU time by Weft's, within a round; 2 is twice as fast. Printed are the median and the
quartiles. Read next: cells.py, whole layers; weft/nn/drop_in.py.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

import weft.nn
from weft import native
from weft.nn.kernels import choice

NAMES = ("LSTM", "GRU", "RNN")
ENOUGH_SECONDS = 0.05  # of calls in a round
WIDE, MANY, STEPS = (32, 64, 128, 256, 512, 1024), (1, 4, 16, 64, 256), 50
MOST_PRODUCTS = 2e9  # scalar multiplications of a measured layer, which else has fewer steps


def inference(module: nn.RNNBase, x: Tensor) -> None:
    with torch.no_grad():
        module(x)


def training(module: nn.RNNBase, x: Tensor) -> None:
    y = module(x)[0]
    torch.autograd.grad(y, [x, *module.parameters()], torch.ones_like(y))


def seconds(run: Callable[[], None]) -> float:
    """CPU seconds of a call."""
    begun, calls = time.process_time(), 0
    while time.process_time() - begun < ENOUGH_SECONDS:
        run()
        calls += 1
    return (time.process_time() - begun) / calls


def measured(
    name: str, kind: Callable[..., None], size: int, rows: int, steps: int, rounds: int
) -> tuple[float, list[float]]:
    """Weft's CPU seconds, and the quartiles of torch.nn's by them."""
    x = torch.randn(steps, rows, size, requires_grad=True)
    theirs, ours = (partial(kind, getattr(room, name)(size, size), x) for room in (nn, weft.nn))
    for way in (theirs, ours):  # the first calls choose how to compute a layer
        seconds(way)
    pairs = [(seconds(theirs), seconds(ours)) for _ in range(rounds)]
    return statistics.median(b for _, b in pairs), statistics.quantiles([a / b for a, b in pairs], n=4)


def grid(rounds: int) -> None:
    """A training step of each layer, times torch.nn's speed, by rows and width."""
    for name in NAMES:
        print(f"\n| {name}, rows | " + " | ".join(f"{size} wide" for size in WIDE) + " |")
        print("|---" * (1 + len(WIDE)) + "|")
        for rows in MANY:
            found = []
            for size in WIDE:
                steps = min(STEPS, max(2, int(MOST_PRODUCTS / (8 * rows * size * size))))
                _, (_, middle, _) = measured(name, training, size, rows, steps, rounds)
                found.append(f"{middle:.2f}")
            print(f"| {rows} | " + " | ".join(found) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[64, 256], help="features and units")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--grid", action="store_true", help="whole layers in training, by rows and width")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    processor = choice.processor()["model name"]
    print(f"torch {torch.__version__}, {processor}, compiled cells: {native.loaded().reason}")
    if options.grid:
        grid(options.rounds)
        return
    for size in options.sizes:
        for name in NAMES:
            for kind in (inference, training):
                mine, (low, middle, high) = measured(name, kind, size, 1, 1, options.rounds)
                print(
                    f"{size:4} units, {name:4} {kind.__name__:9} {mine * 1e6:7.1f} us, "
                    f"{middle:5.2f} times torch.nn's speed ({low:.2f} to {high:.2f})",
                    flush=True,
                )


if __name__ == "__main__":
    main()
