"""Equal parameters and equal CPU seconds: the cells that are compared, widths, training, and runs that resume.

Read next: memory.py, small problems; texts.py, language models and translators; study.py, the training.
"""

import argparse
import json
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from study import ROOT, learn, machine
from weft.nn import Stack, cells
from weft.tree import leaves

FOLDER = ROOT / "docs" / "pictures" / "memory"
HEADS, STEP = 2, 4
"""Heads of every part that has some, and what a width is a multiple of."""


class Known(NamedTuple):
    """A cell, and what theory says about it.

    eigenvalues: of the matrix that takes the state to the next step's; tracks: whether that allows parity and
    permutations at every length (None: theory leaves it open); own: whether the cell has a convolution itself.
    """

    cell: Callable[..., cells.Cell]
    eigenvalues: str
    tracks: bool | None = False
    own: bool = False


def _heads(cell: Callable[..., cells.Cell], **settings: Any) -> Callable[..., cells.Cell]:
    return partial(cell, num_heads=HEADS, **settings)


NOT_LINEAR, GATED, FIXED = "any, by a nonlinear step", "0 .. 1, by the input", "complex, fixed"
CELLS = {
    "elman": Known(cells.Elman, NOT_LINEAR, True),
    "jordan": Known(cells.Jordan, NOT_LINEAR, True),
    "orthogonal": Known(partial(cells.Orthogonal, activation="modrelu"), NOT_LINEAR, True),
    "unitary": Known(cells.Unitary, NOT_LINEAR, True),
    "gru": Known(cells.GRU, NOT_LINEAR, True),
    "lstm": Known(cells.LSTM, NOT_LINEAR, True),
    "coupled": Known(cells.Coupled, NOT_LINEAR, True),
    "peephole": Known(cells.Peephole, NOT_LINEAR, True),
    "slstm": Known(_heads(cells.SLSTM), NOT_LINEAR, True),
    "mingru": Known(cells.MinGRU, GATED),
    "minlstm": Known(cells.MinLSTM, GATED),
    "sru": Known(cells.SRU, GATED),
    "ssru": Known(cells.SSRU, GATED),
    "rglru": Known(_heads(cells.RGLRU), GATED),
    "mamba": Known(cells.Mamba, GATED, own=True),
    "lru": Known(cells.LRU, FIXED),
    "s4d": Known(cells.S4D, FIXED),
    "rwkv4": Known(cells.RWKV4, "0 .. 1, fixed"),
    "retention": Known(_heads(cells.Retention), "0 .. 1, fixed"),
    "gla": Known(_heads(cells.GLA), GATED),
    "hgrn2": Known(_heads(cells.HGRN2), GATED),
    "mlstm": Known(_heads(cells.MLSTM), GATED),
    "ssd": Known(_heads(cells.SSD), GATED, own=True),
    "delta": Known(_heads(cells.Delta), "1, and 0 .. 1 along the key", own=True),
    "delta, negative": Known(_heads(cells.Delta, negative=True), "1, and -1 .. 1 along the key", True, True),
    "gated_delta": Known(_heads(cells.GatedDelta), "0 .. 1, not diagonal", own=True),
    "gated_delta, negative": Known(
        _heads(cells.GatedDelta, negative=True), "-1 .. 1, not diagonal", True, True
    ),
    "rwkv7": Known(_heads(cells.RWKV7), "-0.46 .. 1, not diagonal", None),
    "local attention": Known(_heads(cells.LocalAttention, window=8), "none: the last 8 positions"),
    "transformer": Known(cells.Elman, "none: all positions"),
}
"""By the name in the tables; the Transformer's cell is not used."""


def block(name: str, width: int, inner: int = 0) -> Callable[..., cells.Cell]:
    """The block around a cell: norm, convolution over 4 steps unless it has its own, cell, feed-forward network."""
    known = CELLS[name]
    return partial(
        cells.Block, cell=known.cell, convolution=0 if known.own else 4, network=inner or 2 * width
    )


def parameters(of: nn.Module) -> int:
    """Their number."""
    return sum(one.numel() for one in of.parameters())


def width_for(build: Callable[[int], nn.Module], budget: int, most: int = 1024) -> int:
    """The largest multiple of STEP up to `most` whose model has at most that many parameters, by bisection."""
    return STEP * _largest(lambda some: parameters(build(STEP * some)) <= budget, 1, most // STEP + 1)


def sizes_for(build: Callable[[int, int], nn.Module], budget: int) -> tuple[int, int]:
    """Width, and hidden features of the feed-forward networks, whose model has nearly that many parameters.

    The width is the largest with twice as many hidden features; these then grow until nothing more fits.
    """
    width = width_for(lambda some: build(some, 2 * some), budget)
    inner = _largest(lambda some: parameters(build(width, some)) <= budget, 2 * width, 8 * width)
    return width, inner


def _largest(fits: Callable[[int], bool], low: int, high: int) -> int:
    """The largest number from low to high - 1 that fits, by bisection; `low` is taken to fit."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def state_size(of: nn.Module) -> int | None:
    """Numbers that a step of the recurrent layers reads from the one before; None if there are no such layers."""
    found = [cell for stack in of.modules() if isinstance(stack, Stack) for cell in stack.forwards]
    return sum(map(_read, found)) if found else None


def _read(cell: nn.Module) -> int:
    """Numbers of a cell's state that its step depends on."""
    assert isinstance(cell, cells.Cell)
    x = torch.zeros(1, cell.in_size)
    state = cell.start(x)
    read = [one.requires_grad_() for one in leaves(state) if one.is_floating_point()]
    y, after = cell.step(x, state)
    total = y.sum() + sum(one.sum() for one in leaves(after))
    grads = torch.autograd.grad(total, read, allow_unused=True)
    return sum(one.numel() for one, grad in zip(read, grads, strict=True) if grad is not None)


def train(model: nn.Module, draw: Callable[[], Any], seconds: float, rate: float) -> int:
    """Train for CPU seconds, with 30 updates of warm-up and a cosine over them to a tenth of the rate; the updates."""
    begun, taken = time.process_time(), 0

    def share() -> float:
        return (time.process_time() - begun) / seconds

    def rate_at(update: int) -> float:
        nonlocal taken
        taken = update + 1
        return rate * min(1.0, taken / 30) * (0.55 + 0.45 * math.cos(math.pi * min(share(), 1.0)))

    learn(model, draw, 1 << 40, rate=rate_at, watch=lambda update: share() >= 1)
    return taken


def finished(path: Path) -> list[dict[str, Any]]:
    """The runs in a file."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def measure(
    path: Path,
    keys: Iterable[Mapping[str, Any]],
    run: Callable[[Mapping[str, Any]], Mapping[str, Any]],
    said: Callable[[Mapping[str, Any]], str],
) -> None:
    """Run what the file lacks and append each result to it.

    Args:
        path: JSON lines.
        keys: what makes a run different from the others.
        run: from a key to the results.
        said: the line to print.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for key in keys:
        if any(key.items() <= one.items() for one in finished(path)):
            continue
        found = {**key, **run(key), "machine": machine()}
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(found) + "\n")
        print(said(found), flush=True)


def arguments(
    doc: str | None, runs: Path, *, models: Sequence[str], seconds: float, budget: int
) -> argparse.ArgumentParser:
    """The options of such a script; the numbers are their defaults."""
    parser = argparse.ArgumentParser(description=(doc or "").split("\n")[0])
    parser.add_argument("--models", nargs="+", choices=models, default=[*models], metavar="NAME")
    parser.add_argument("--seeds", type=int, default=5, help="number of seeds (5)")
    parser.add_argument("--first", type=int, default=11, help="the first seed (11)")
    parser.add_argument(
        "--seconds", type=float, default=seconds, help=f"CPU seconds of training per run ({seconds:g})"
    )
    parser.add_argument(
        "--parameters", type=int, default=budget, help=f"maximum parameters of a model ({budget})"
    )
    parser.add_argument("--runs", type=Path, default=runs, help="file of results")
    parser.add_argument(
        "--write", action="store_true", help="write tables and pictures of the runs; train nothing"
    )
    return parser


def machines(runs: Sequence[Mapping[str, Any]], by: str = "model") -> str:
    """The processors of the runs; if there are several, with the models (or what `by` names) measured on each."""
    found: dict[str, list[str]] = {}
    for one in runs:
        names = found.setdefault(one["machine"], [])
        names += [one[by]] * (one[by] not in names)
    if len(found) == 1:
        return next(iter(found))
    return "; ".join(f"{machine} (for {', '.join(names)})" for machine, names in found.items())
