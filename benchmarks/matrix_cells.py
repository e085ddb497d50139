"""Cells whose state is a matrix beside torch's multi-head attention, in one interleaved run: A B C A B C ...

    python benchmarks/matrix_cells.py                    training at 512 and 2,048 steps, forward up to 16,384
    python benchmarks/matrix_cells.py --cells mlstm      some cells only

Times are CPU seconds of one thread, medians; a ratio is a cell's time by attention's: below 1 is faster.
Attention is causal, without weights to show, by torch's fused operation. Read next:
weft/nn/kernels/matrix.py.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial

import torch
from cells_besides import medians
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


def training(layer: Layer, x: Tensor) -> None:
    """A forward and a backward pass."""
    x = x.clone().requires_grad_()
    layer(x).square().mean().backward()


@torch.no_grad()
def reading(layer: Layer, x: Tensor) -> None:
    """A forward pass."""
    layer(x)


def seconds(
    layers: dict[str, Layer], what: Callable[[Layer, Tensor], None], x: Tensor, rounds: int
) -> dict[str, float]:
    """The median CPU seconds of each layer."""
    ways = {name: partial(what, layer, x) for name, layer in layers.items()}
    return medians(ways, rounds, time.process_time)


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
        found = seconds(layers, training, torch.randn(rows, steps, settings.width), settings.rounds)
        shown = (f"{name} {1e3 * s:.0f} ({s / found['attention']:.2f})" for name, s in found.items())
        print(f"{rows} x {steps}:", ", ".join(shown), flush=True)
    print("forward of one row, microseconds a step")
    for steps in LENGTHS:
        found = seconds(layers, reading, torch.randn(1, steps, settings.width), settings.rounds)
        shown = (f"{name} {1e6 * s / steps:.1f}" for name, s in found.items())
        print(f"{steps}:", ", ".join(shown), flush=True)


if __name__ == "__main__":
    main()
