"""Recurrent cells beside torch.nn's in one interleaved run: A B C A B C ..., median of five.

    python benchmarks/cells.py                  every size, one thread and two, ten minutes or more
    python benchmarks/cells.py --quick          three sizes, one thread, a minute
    python benchmarks/cells.py --clock cpu      CPU seconds instead of wall time, where others use the machine

A ratio is torch.nn's time by ours: 2 is twice as fast. "auto" is what a user gets, "torch" is Weft without
its compiled code. Beside each aim stands PASS or below; ">= 1.0x" is met from 0.97. Read next:
cells_besides.py (memory, packed sequences, bfloat16), weft/nn/kernels/cells/layer.py.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import cells_besides
import torch
from torch import Tensor, nn

from weft import native
from weft.nn.cells import GRU, LSTM, SRU, Cell, Coupled, Elman, MinGRU, Peephole
from weft.nn.kernels import choice

SIZES = [
    (50, 32, 128, 128),
    (50, 64, 256, 256),
    (50, 64, 512, 512),
    (200, 16, 512, 512),
    (35, 20, 650, 650),
    (100, 1, 256, 256),
    (100, 8, 256, 256),
]
QUICK = [SIZES[0], SIZES[1], SIZES[6]]
LEVEL = 0.97  # what counts as 1.0

Size = tuple[int, int, int, int]  # T, B, I, H
Way = Callable[[], object]


class Row(NamedTuple):
    """A cell, its peer in torch.nn, and the aims: inference and training, with compiled code and without."""

    name: str
    cell: type[Cell]
    peer: type[nn.RNNBase]
    aims: Callable[[Size], tuple[float, float, float, float]]


def _lstm(size: Size) -> tuple[float, float, float, float]:
    if size[1] == 1:
        return 1.2, 1.2, 1.0, 1.0
    return 1.0, 1.1 if 256 <= size[3] <= 512 else 1.0, 1.0, 1.0


def _peephole(size: Size) -> tuple[float, float, float, float]:
    least = 0.95 if size[3] == 650 else 1.0
    return least, least, 0.0, 0.0


def _gru(size: Size) -> tuple[float, float, float, float]:
    if size[1] == 1:
        return 2.5, 4.0, 0.0, 0.0
    return (2.2, 2.1, 1.7, 1.7) if size[3] >= 256 else (2.2, 2.1, 0.0, 0.0)


def _elman(size: Size) -> tuple[float, float, float, float]:
    return (2.5, 4.0, 0.0, 0.0) if size[1] == 1 else (2.2, 2.1, 1.5, 1.5)


def _light(large: float, small: float, size: Size) -> tuple[float, float, float, float]:
    least = large if size[3] >= 256 else small
    return least, least, 0.0, 0.0


ROWS = [
    Row("LSTM", LSTM, nn.LSTM, _lstm),
    Row("peephole", Peephole, nn.LSTM, _peephole),
    Row("coupled", Coupled, nn.LSTM, lambda _: (1.3, 1.3, 1.0, 1.0)),
    Row("GRU", GRU, nn.GRU, _gru),
    Row("Elman", Elman, nn.RNN, _elman),
    Row("minGRU", MinGRU, nn.LSTM, partial(_light, 3.0, 2.2)),
    Row("SRU", SRU, nn.LSTM, partial(_light, 2.0, 1.5)),
]


def inference(run: Way) -> None:
    with torch.inference_mode():
        run()


def training(run: Way, wanted: list[Tensor]) -> None:
    out = run()
    assert isinstance(out, Tensor)
    torch.autograd.grad(out, wanted, torch.ones_like(out))


def way_of(
    size: Size, row: Row | None, peer: type[nn.RNNBase] | None, backend: str
) -> tuple[Way, list[Tensor]]:
    """A layer over x [B, T, I], and what a training step derives by."""
    steps, rows, inputs, hidden = size
    x = torch.randn(rows, steps, inputs, requires_grad=True)
    if peer is not None:
        module: nn.Module = peer(inputs, hidden, batch_first=True)
        return lambda: module(x)[0], [x, *module.parameters()]
    assert row is not None
    cell = row.cell(inputs, hidden)
    state = cell.start(x)

    def run() -> object:
        with choice.use(cells=backend):  # type: ignore[arg-type]
            return cell(x, state)[0]

    return run, [x, *cell.parameters()]


def verdict(ratio: float, aim: float) -> str:
    if not aim:
        return f"{ratio:5.2f}              "
    least = LEVEL if aim == 1.0 else aim
    return f"{ratio:5.2f} {'PASS ' if ratio >= least else 'below'} {aim:4.2f}  "


def table(size: Size, options: argparse.Namespace) -> None:
    """One size: every cell, inference and training, with compiled code and without."""
    clock = time.process_time if options.clock == "cpu" else time.perf_counter
    made: dict[str, tuple[Way, list[Tensor]]] = {}
    for peer in (nn.LSTM, nn.GRU, nn.RNN):
        made[peer.__name__] = way_of(size, None, peer, "")
    for row in ROWS:
        for backend in ("auto", "torch") if row.name not in ("minGRU", "SRU") else ("auto",):
            made[f"{row.name} {backend}"] = way_of(size, row, None, backend)
    kinds = {
        "inference": {name: partial(inference, run) for name, (run, _) in made.items()},
        "training": {name: partial(training, run, wanted) for name, (run, wanted) in made.items()},
    }
    taken = {kind: cells_besides.medians(ways, options.rounds, clock) for kind, ways in kinds.items()}
    print(f"\n(T, B, I, H) = {size}, {torch.get_num_threads()} thread(s)")
    print(f"{'':10}{'inference: auto':19}{'training: auto':19}{'inference: torch':19}training: torch")
    for row in ROWS:
        aims, cells = (1.0,) * 4 if options.level else row.aims(size), []
        for place, backend in enumerate(("auto", "torch")):
            for part, kind in enumerate(("inference", "training")):
                ours = taken[kind].get(f"{row.name} {backend}")
                cells.append(
                    ""
                    if ours is None
                    else verdict(taken[kind][row.peer.__name__] / ours, aims[2 * place + part])
                )
        print(f"{row.name:10}" + "".join(f"{cell:19}" for cell in cells), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="three sizes, one thread")
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--sizes", type=int, nargs="*", help="which of the sizes, by number from 0")
    parser.add_argument("--only", choices=["table", "level", "besides"], help="one part")
    parser.add_argument("--level", action="store_true", help="every aim is 1.0")
    options = parser.parse_args()
    chosen = QUICK if options.quick else SIZES
    chosen = chosen if options.sizes is None else [SIZES[number] for number in options.sizes]
    isa = os.environ.get("ONEDNN_MAX_CPU_ISA", "")
    processor = choice.processor()["model name"]
    print(f"torch {torch.__version__}, {processor}, compiled cells: {native.loaded().reason}")
    print(f"{options.clock} time, median of {options.rounds}{', ONEDNN_MAX_CPU_ISA=' + isa if isa else ''}")
    torch.manual_seed(1)
    for threads in [1] if options.quick else options.threads:
        torch.set_num_threads(threads)
        if options.only in (None, "table"):
            for size in chosen:
                table(size, options)
    if options.only in (None, "besides"):
        torch.set_num_threads(1)
        cells_besides.report(chosen[1] if options.quick else SIZES[2], options.rounds, options.clock)
    if options.only in (None, "level") and not isa:
        print(
            "\nwith oneDNN held to AVX2, where MKL and oneDNN are level (the aim is 1.0 everywhere):",
            flush=True,
        )
        command = [sys.executable, __file__, "--only", "table", "--threads", "1", "--clock", options.clock]
        command += [
            "--rounds",
            str(options.rounds),
            "--sizes",
            *(["1"] if options.quick else ["1", "2", "4"]),
        ]
        subprocess.run(command, env=os.environ | {"ONEDNN_MAX_CPU_ISA": "AVX2"}, check=True)


if __name__ == "__main__":
    main()
