"""What cells.py prints beside the table: peak memory, sequences of different length, bfloat16.

Read next: cells.py.
"""

import ctypes
import multiprocessing
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from weft import masks
from weft.nn.cells import GRU, LSTM, Cell, Coupled, Elman, Peephole

CELLS: dict[str, tuple[type[Cell], type[nn.RNNBase]]] = {
    "LSTM": (LSTM, nn.LSTM),
    "peephole": (Peephole, nn.LSTM),
    "coupled": (Coupled, nn.LSTM),
    "GRU": (GRU, nn.GRU),
    "Elman": (Elman, nn.RNN),
}
Size = tuple[int, int, int, int]


def report(size: Size, rounds: int, clock: str) -> None:
    """All three parts for one size, on one thread."""
    print(f"\n(T, B, I, H) = {size}, one thread")
    memory(size)
    now = time.process_time if clock == "cpu" else time.perf_counter
    lengths(size, rounds, now)
    bfloat16(size, rounds, now)


def memory(size: Size) -> None:
    """Peak of a training step above what stood before it, each in a fresh process."""
    for name in CELLS:
        ours, theirs = (_fresh(_peak, (name, own, size)) for own in (True, False))
        if not ours or not theirs:
            print("peak memory: this system does not tell")
            return
        word = "PASS" if ours <= theirs else "below"
        print(f"peak memory of a training step, {name:9} {ours:7.1f} MiB, torch.nn {theirs:7.1f} MiB  {word}")


def lengths(size: Size, rounds: int, now: Callable[[], float]) -> None:
    """Rows of 1 to T steps, half of T in the mean, beside torch's packed sequences and whole rows."""
    steps, rows, inputs, hidden = size
    long = torch.linspace(1, steps, rows).round().long().flip(0)
    mask = masks.from_lengths(long, steps)
    for name in ("LSTM", "GRU"):
        kind, peer = CELLS[name]
        cell, other = kind(inputs, hidden), peer(inputs, hidden, batch_first=True)
        x = torch.randn(rows, steps, inputs, requires_grad=True)
        state = cell.start(x)
        ways = {
            "ours": lambda cell=cell, x=x, state=state: _step(cell(x, state, mask)[0], cell, x),
            "whole": lambda cell=cell, x=x, state=state: _step(cell(x, state)[0], cell, x),
            "packed": lambda other=other, x=x: _step(
                other(pack_padded_sequence(x, long, batch_first=True))[0].data, other, x
            ),
        }
        taken = medians(ways, rounds, now)
        print(
            f"training step of rows of 1 to {steps} steps, {name:4} {taken['packed'] / taken['ours']:5.2f}x "
            f"torch.nn's packed, {taken['whole'] / taken['ours']:5.2f}x ours on whole rows"
        )


def bfloat16(size: Size, rounds: int, now: Callable[[], float]) -> None:
    """The LSTM's training step under autocast beside float32."""
    steps, rows, inputs, hidden = size
    cell, x = LSTM(inputs, hidden), torch.randn(rows, steps, inputs, requires_grad=True)
    state = cell.start(x)

    def run(enabled: bool) -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            y = cell(x, state)[0]
        _step(y, cell, x)

    taken = medians({"float32": lambda: run(False), "bfloat16": lambda: run(True)}, rounds, now)
    ratio = taken["float32"] / taken["bfloat16"]
    word = "PASS" if ratio >= 1.5 else "below"
    print(f"training step of the LSTM in bfloat16, {ratio:.2f}x float32  {word} 1.50")


def _step(y: Tensor, module: nn.Module, x: Tensor) -> None:
    torch.autograd.grad(y, [x, *module.parameters()], torch.ones_like(y))


def medians(
    ways: Mapping[str, Callable[[], object]], rounds: int, now: Callable[[], float]
) -> dict[str, float]:
    """The median time of each, taken in turns; small ones several times in a row."""
    repeats = {}
    for name, way in ways.items():
        way()
        begun = time.perf_counter()
        way()
        repeats[name] = max(1, min(20, int(0.02 / (time.perf_counter() - begun + 1e-9))))
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            begun = now()
            for _ in range(repeats[name]):
                way()
            times[name].append((now() - begun) / repeats[name])
    return {name: statistics.median(each) for name, each in times.items()}


def _fresh(function: Callable[..., float], arguments: tuple[Any, ...]) -> float:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def _peak(name: str, own: bool, size: Size) -> float:
    steps, rows, inputs, hidden = size
    torch.set_num_threads(1)
    kind, peer = CELLS[name]
    x = torch.randn(rows, steps, inputs, requires_grad=True)
    module = kind(inputs, hidden) if own else peer(inputs, hidden, batch_first=True)

    def step(x: Tensor) -> None:
        y = module(x, module.start(x))[0] if isinstance(module, Cell) else module(x)[0]
        _step(y, module, x)

    step(x)  # plans, probes and libraries are there after it
    try:
        ctypes.CDLL(None).malloc_trim(0)  # or what the first step left would serve the second
        Path("/proc/self/clear_refs").write_text("5", "utf-8")
        before = _status("VmRSS")
        step(x)
        return (_status("VmHWM") - before) / 1024
    except (OSError, AttributeError):
        return 0.0


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(name + ":")))
