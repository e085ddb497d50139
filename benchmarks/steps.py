"""One time step of one row through Weft's LSTM, GRU and RNN, beside torch.nn's, which they replace.

    python benchmarks/steps.py
    python benchmarks/steps.py --sizes 128 512 --rounds 15

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
CALLS = 200


def inference(module: nn.RNNBase, x: Tensor) -> None:
    with torch.no_grad():
        module(x)


def training(module: nn.RNNBase, x: Tensor) -> None:
    y = module(x)[0]
    torch.autograd.grad(y, [x, *module.parameters()], torch.ones_like(y))


def seconds(run: Callable[[], None]) -> float:
    """CPU seconds of a call."""
    begun = time.process_time()
    for _ in range(CALLS):
        run()
    return (time.process_time() - begun) / CALLS


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[64, 256], help="features and units")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    processor = choice.processor()["model name"]
    print(f"torch {torch.__version__}, {processor}, compiled cells: {native.loaded().reason}")
    for size in options.sizes:
        x = torch.randn(1, 1, size, requires_grad=True)
        for name in NAMES:
            theirs, ours = getattr(nn, name)(size, size), getattr(weft.nn, name)(size, size)
            for kind in (inference, training):
                ways = [partial(kind, theirs, x), partial(kind, ours, x)]
                for way in ways:  # the first calls choose how to compute a layer
                    seconds(way)
                pairs = [(seconds(ways[0]), seconds(ways[1])) for _ in range(options.rounds)]
                low, middle, high = statistics.quantiles([a / b for a, b in pairs], n=4)
                mine = statistics.median(b for _, b in pairs) * 1e6
                print(
                    f"{size:4} units, {name:4} {kind.__name__:9} {mine:7.1f} us, "
                    f"{middle:5.2f} times torch.nn's speed ({low:.2f} to {high:.2f})",
                    flush=True,
                )


if __name__ == "__main__":
    main()
