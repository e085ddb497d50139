"""Cells whose state is a matrix beside torch's multi-head attention, in one interleaved run: A B C A B C ...

    python benchmarks/matrix_cells.py                    training at 512 and 2,048 steps, forward up to 16,384
    python benchmarks/matrix_cells.py --cells mlstm      some cells only

Times are CPU seconds of one thread, medians; a ratio is a cell's time by attention's: below 1 is faster.
Attention is causal, without weights to show, by torch's fused operation. Read next:
weft/nn/kernels/matrix.py.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from weft import rooms
from weft.nn import cells
from weft.nn.cells.cell import Cell

NAMES = ("retention", "gla", "hgrn2", "mlstm", "delta", "gated_delta", "ssd", "rwkv7")
TRAINING = ((512, 4), (2048, 1))  # steps, rows
LENGTHS = (256, 1024, 4096, 16384)
Layer = Callable[[Tensor], Tensor]


def attention(width: int, heads: int) -> Layer:
    """torch's multi-head attention over earlier positions."""
    layer = nn.MultiheadAttention(width, heads, batch_first=True)

    def run(x: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        y: Tensor = layer(x, x, x, attn_mask=mask, is_causal=True, need_weights=False)[0]
        return y

    return run


def recurrence(name: str, width: int, heads: int) -> Layer:
    """A cell over all steps, from zeros."""
    cell = rooms.find(cells, Cell, name)(width, width, num_heads=heads)
    return lambda x: cell(x, cell.start(x))[0]


def training(layer: Layer, x: Tensor) -> float:
    """CPU seconds of a forward and a backward pass."""
    x = x.clone().requires_grad_()
    begin = time.process_time()
    layer(x).square().mean().backward()
    return time.process_time() - begin


@torch.no_grad()
def reading(layer: Layer, x: Tensor) -> float:
    """CPU seconds of a forward pass."""
    begin = time.process_time()
    layer(x)
    return time.process_time() - begin


def medians(
    layers: dict[str, Layer], measure: Callable[[Layer, Tensor], float], x: Tensor, rounds: int
) -> dict:
    """The median of each layer, after one round that does not count."""
    found: dict[str, list[float]] = {name: [] for name in layers}
    for round_number in range(rounds + 1):
        for name, layer in layers.items():
            seconds = measure(layer, x)
            if round_number:
                found[name].append(seconds)
    return {name: statistics.median(times) for name, times in found.items()}


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", nargs="+", default=NAMES, choices=NAMES)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    settings = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    layers = {"attention": attention(settings.width, settings.heads)}
    layers |= {name: recurrence(name, settings.width, settings.heads) for name in settings.cells}
    print("training, ms (by attention's)")
    for steps, rows in TRAINING:
        found = medians(layers, training, torch.randn(rows, steps, settings.width), settings.rounds)
        shown = (f"{name} {1e3 * s:.0f} ({s / found['attention']:.2f})" for name, s in found.items())
        print(f"{rows} x {steps}:", ", ".join(shown), flush=True)
    print("forward of one row, microseconds a step")
    for steps in LENGTHS:
        found = medians(layers, reading, torch.randn(1, steps, settings.width), settings.rounds)
        shown = (f"{name} {1e6 * s / steps:.1f}" for name, s in found.items())
        print(f"{steps}:", ", ".join(shown), flush=True)


if __name__ == "__main__":
    main()
