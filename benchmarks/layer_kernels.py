"""The ways to compute recurrent layers and products beside each other: figures for nn/kernels/choice.py.

    python benchmarks/layer_kernels.py                       every shape, one thread, half an hour of CPU time
    python benchmarks/layer_kernels.py --cells lstm --sizes 256 --modes training
    ATEN_CPU_CAPABILITY=avx2 python benchmarks/layer_kernels.py

Ways take turns; a figure is the median of CPU seconds, so other programs hardly matter. "chosen" is what the
rule takes; a way's column has its time by that of the chosen way, so a number below 1 is a loss of the rule.
Read next: weft/nn/kernels/choice.py; docs/reference/kernels.md.
"""

import argparse
import itertools
import statistics
import time
from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import Tensor

from weft import native
from weft.native.jobs import GATES
from weft.nn.kernels import choice
from weft.nn.kernels.cells import compiled
from weft.nn.kernels.cells.layer import OPERATIONS
from weft.nn.kernels.equations import LayerInput, Result
from weft.nn.kernels.linear import WAYS as PRODUCTS
from weft.nn.kernels.linear import available
from weft.nn.kernels.twin import layer_by_steps

MODES = ("training", "use", "training bfloat16", "use bfloat16")
ROUNDS, ENOUGH_SECONDS = 9, 0.3
MOST_PRODUCTS = 3e9  # scalar multiplications of a measured call
SHAPES = ((64, 64), (128, 512), (256, 256), (256, 1024), (512, 512), (512, 2048), (1024, 1024), (128, 8000))


def arguments(cell: str, size: int, rows: int, count: int) -> LayerInput:
    """Arguments of a layer whose inputs are as wide as its state."""
    gates = GATES[cell]
    weights = [torch.full((gates * size, size), 1 / size) for _ in "xh"]
    h = torch.zeros(rows, size)
    c = h.clone() if cell in ("lstm", "peephole", "coupled") else None
    extra = {"gru": torch.full((size,), 0.1), "peephole": torch.full((3, size), 0.1)}.get(cell)
    return LayerInput(
        torch.full((rows, count, size), 0.1), h, c, *weights, torch.zeros(gates * size), extra, None
    )


def ways_of(cell: str, low: bool) -> dict[str, Callable[..., Result]]:
    """The ways that can compute a cell here."""
    ways: dict[str, Callable[..., Result]] = {"native": partial(compiled.run, cell)}
    if native.tiles():
        ways["tiles"] = partial(compiled.run, cell, kind="tiles")
    if low and native.narrow_cells():
        ways["narrow"] = partial(compiled.run, cell, kind="narrow")
    if cell in OPERATIONS:
        ways["operation"] = OPERATIONS[cell]
    return ways | {"steps": partial(layer_by_steps, cell)}


def layer(run: Callable[..., Result], made: LayerInput, training: bool, low: bool) -> None:
    """One call, with gradients in training."""
    with torch.set_grad_enabled(training), torch.autocast("cpu", torch.bfloat16, enabled=low):
        tensors = [None if t is None else t.detach().requires_grad_(training) for t in made[:-1]]
        y = run(LayerInput(*tensors, None))[0]
    if training:
        wanted = [t for t in tensors if t is not None]
        torch.autograd.grad(y, wanted, torch.ones_like(y), allow_unused=True)


def measured(ways: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """The median CPU milliseconds of each way."""
    repeats = {}
    for name, way in ways.items():
        way()
        begun = time.thread_time()
        way()
        repeats[name] = max(1, min(20, int(0.002 / (time.thread_time() - begun + 1e-9))))
    times: dict[str, list[float]] = {name: [] for name in ways}
    start = time.thread_time()
    for number in range(ROUNDS):
        for name, way in ways.items():
            begun = time.thread_time()
            for _ in range(repeats[name]):
                way()
            times[name].append((time.thread_time() - begun) / repeats[name])
        if number >= 4 and time.thread_time() - start > ENOUGH_SECONDS:
            break
    return {name: 1000 * statistics.median(each) for name, each in times.items()}


def line(what: str, chosen: str, found: Mapping[str, float]) -> None:
    others = ", ".join(f"{name} {ms / found[chosen]:.2f}" for name, ms in found.items() if name != chosen)
    print(f"| {what} | {chosen} | {found[chosen]:.2f} | {others} |", flush=True)


def recurrent(asked: argparse.Namespace) -> None:
    """The table of recurrent layers."""
    print("| cell (H, B, T) | chosen | ms | others by it |\n|---|---|---|---|")
    for mode, cell in itertools.product(asked.modes, asked.cells):
        training, low = mode.startswith("training"), mode.endswith("bfloat16")
        for size, rows, count in itertools.product(asked.sizes, asked.rows, asked.steps):
            products = 2 * GATES[cell] * size * size * rows * count
            if products * (3 if training else 1) > MOST_PRODUCTS:
                continue
            ways = ways_of(cell, low)
            if count > 1:
                del ways["steps"]
            made = arguments(cell, size, rows, count)
            found = measured({name: partial(layer, way, made, training, low) for name, way in ways.items()})
            chosen = choice.recurrent(choice.LayerShape(cell, rows, count, size, training, low), ways)
            line(f"{mode} {cell} ({size}, {rows}, {count})", chosen, found)


def products() -> None:
    """The table of float32 products: forward, for the input's gradient and for the weight's."""
    print("\n| product (M, K, N) | chosen | ms | others by it |\n|---|---|---|---|")
    can = available()
    for rows, (inputs, outputs) in itertools.product((64, 256, 512, 1024, 2048), SHAPES):
        x, weight, dy = torch.ones(rows, inputs), torch.ones(outputs, inputs), torch.ones(rows, outputs)
        pairs: list[tuple[Tensor, Tensor]] = [(x, weight), (dy, weight.mT), (dy.mT, x.mT)]
        for a, b in pairs:
            with torch.no_grad():
                found = measured({name: partial(PRODUCTS[name], a, b, None) for name in can})
            line(
                f"({len(a)}, {a.shape[1]}, {len(b)})", choice.product(len(a), a.shape[1], len(b), can), found
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cells", nargs="+", default=["lstm", "gru", "elman", "peephole", "coupled"])
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    parser.add_argument("--sizes", nargs="+", type=int, default=[64, 128, 256, 512, 1024])
    parser.add_argument("--rows", nargs="+", type=int, default=[1, 4, 8, 16, 32, 64, 128])
    parser.add_argument("--steps", nargs="+", type=int, default=[1, 2, 5, 30])
    asked = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{choice.processor()['model name']}, {native.loaded().reason}, torch {torch.__version__}\n")
    recurrent(asked)
    products()


if __name__ == "__main__":
    main()
