"""Which way computes a recurrent layer fastest: measured once for each class of sizes, as it will run.

A measurement has the rows and the steps of the layer that asks, forward and, in training, backward, so what
is done once per call (packing weights) weighs as much as it will. Very long ones are cut to PIECE
multiplications. Read next: layer.py, which asks; ../choice.py, which keeps the answers.
"""

import math
from collections.abc import Mapping
from functools import lru_cache, partial
from itertools import product
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from weft.nn.kernels import choice
from weft.nn.kernels.cells.form import Given, Result
from weft.nn.kernels.ways import Way

PIECE = 1e9  # multiplications of one measurement: some 20 ms in float32
STEPS = 12  # at least, so that packing weights does not decide
FEW = 8

Count = Literal["1", "<8", ">=8"]
COUNTS: dict[Count, int] = {"1": 1, "<8": 4, ">=8": 32}
"""The classes of rows and steps, and how many a measurement takes where nothing is known."""


class Kind(NamedTuple):
    """A class of sizes for which one choice is made."""

    rows: Count
    steps: Count
    training: bool
    autocast: bool = False
    mostly_padding: bool = False


class Sizes(NamedTuple):
    """The shapes of a layer's tensors, apart from rows and steps."""

    inputs: int
    size: int
    cell_state: bool
    weight_x: tuple[int, ...]
    weight_h: tuple[int, ...]
    bias: tuple[int, ...]
    extra: tuple[int, ...] | None
    dtype: torch.dtype


def counted(number: int) -> Count:
    """The class of a number of rows or steps."""
    return "1" if number == 1 else "<8" if number < FEW else ">=8"


def kind_of(given: Given, *, mostly_padding: bool) -> Kind:
    """The class of a call."""
    training = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in given.tensors())
    rows, steps = given.x.shape[:2]
    low = torch.is_autocast_enabled("cpu")
    return Kind(counted(rows), counted(steps), training, low, mostly_padding)


def kinds() -> list[Kind]:
    """Every class that may follow a training's first update; validation is in float32."""
    low = torch.is_autocast_enabled("cpu")
    shapes = product(COUNTS, COUNTS, (True, False), (False, True))
    return [Kind(rows, steps, train, low and train, much) for rows, steps, train, much in shapes]


def sizes_of(given: Given) -> Sizes:
    """The shapes of a call."""
    shapes = tuple(tuple(t.shape) for t in (given.weight_x, given.weight_h, given.bias))
    extra = None if given.extra is None else tuple(given.extra.shape)
    return Sizes(
        given.x.shape[2], given.h.shape[1], given.c is not None, *shapes, extra, given.weight_h.dtype
    )


def choose(
    cell: str, sizes: Sizes, ways: Mapping[str, Way[Result]], kind: Kind, seen: tuple[int, int]
) -> str:
    """The fastest of some ways for a class of sizes.

    Args:
        seen: rows and steps of a call; used where they are of this class.
    """
    rows = seen[0] if counted(seen[0]) == kind.rows else COUNTS[kind.rows]
    steps = seen[1] if counted(seen[1]) == kind.steps else COUNTS[kind.steps]
    steps = min(steps, _most_steps(sizes, rows, kind.training))
    given = sample(sizes, rows, steps)
    pieces = {name: partial(_piece, way, given, kind) for name, way in ways.items()}
    return choice.choose(key(cell, sizes, kind, "native" in ways, choice.threads()), pieces)


@lru_cache(512)
def key(cell: str, sizes: Sizes, kind: Kind, compiled: bool, threads: int) -> str:
    """The name of a choice."""
    return (
        f"{cell} inputs={sizes.inputs} size={sizes.size} rows{_text(kind.rows)} steps{_text(kind.steps)} "
        f"threads={threads} {str(sizes.dtype).removeprefix('torch.')}{' autocast' if kind.autocast else ''} "
        f"{'training' if kind.training else 'inference'}"
        f"{' mostly padding' if kind.mostly_padding else ''}{'' if compiled else ' without compiled code'}"
    )


def sample(sizes: Sizes, rows: int, steps: int, mask: Tensor | None = None) -> Given:
    """Arguments of these sizes with small results; draws no random numbers."""

    def full(shape: tuple[int, ...]) -> Tensor:
        return torch.full(shape, 1 / shape[-1], dtype=sizes.dtype)

    weights = (full(shape) for shape in (sizes.weight_x, sizes.weight_h, sizes.bias))
    x, h = full((rows, steps, sizes.inputs)), torch.zeros(rows, sizes.size, dtype=sizes.dtype)
    c = h.clone() if sizes.cell_state else None
    return Given(x, h, c, *weights, None if sizes.extra is None else full(sizes.extra), mask)


def _text(count: Count) -> str:
    return "=1" if count == "1" else count


def _most_steps(sizes: Sizes, rows: int, training: bool) -> int:
    work = math.prod(sizes.weight_x) + math.prod(sizes.weight_h)
    return max(STEPS, int(PIECE / (work * rows * (3 if training else 1))))


def _piece(way: Way[Result], given: Given, kind: Kind) -> None:
    """Run forward and, in training, backward; the initial state has a gradient only in single steps."""
    with torch.inference_mode(False), torch.set_grad_enabled(kind.training):
        tensors = [None if t is None else t.detach().requires_grad_(kind.training) for t in given[:-1]]
        if kind.steps == ">=8":
            tensors[1:3] = [None if t is None else t.detach() for t in tensors[1:3]]
        with torch.autocast("cpu", torch.bfloat16, enabled=kind.autocast, cache_enabled=False):
            y, *_ = way.run(*tensors, None)
        if kind.training:
            wanted = [t for t in tensors if t is not None and t.requires_grad]
            torch.autograd.grad(y, wanted, torch.ones_like(y), allow_unused=True)
