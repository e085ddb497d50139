"""Record the inputs and states of a model's recurrent cells while the model runs.

    with watch(model) as runs:
        model.loss(batch)
    for run in runs: trace(run)

Every `Cell` in the model is recorded. Anything around it (attention, input feeding) is part of the recorded
inputs and is held fixed from then on. Read next: jacobian.py, reach.py.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from weft.nn.cells.cell import Cell
from weft.nn.recurrent import Stack
from weft.tree import State, leaves, tree_map, where


class CellPlace(NamedTuple):
    """Position of a cell in a model."""

    name: str  # of the module, such as encoder.stack.forwards.0
    layer: int  # from 0
    backward: bool  # whether it reads from the end
    cell: Cell


class Call(NamedTuple):
    """One call of a cell: `forward` over T steps, or `step` with T = 1."""

    x: Tensor  # [B, T, D]
    before: State
    mask: Tensor | None  # [B, T] bool
    after: State


class RecordedRun(NamedTuple):
    """One sequence that a cell read, in reading order, in one or more calls."""

    place: CellPlace
    calls: list[Call]


class StepTrace(NamedTuple):
    """The last steps of a run, each with the state before it."""

    place: CellPlace
    x: Tensor  # [B, T, D]
    states: list[State]  # T states, each before its step
    mask: Tensor  # [B, T] bool; False where the state was not updated


def places(model: nn.Module) -> list[CellPlace]:
    """The cells of a model in the order of its modules; a cell outside a stack is layer 0, forward.

    If a cell wraps another one (zoneout), only the outer one is listed; of a cell that is several layers
    (rwkv7_layers), these.
    """
    known: dict[int, tuple[int, bool]] = {}
    for name, module in model.named_modules():
        if isinstance(module, Stack):
            # index in a list of stacks
            below = int(number) if (number := name.rpartition(".")[2]).isdigit() else 0
            for cells, backward in ((module.forwards, module.from_end), (module.backwards, True)):
                known |= {id(cell): (below + layer, backward) for layer, cell in enumerate(cells)}
    found = []
    for name, cell in model.named_modules():
        if isinstance(cell, Cell) and not cell.layered:
            found.append((name, cell))
        elif isinstance(cell, Cell):
            below, backward = known.get(id(cell), (0, False))
            inner = [part for part in cell.modules() if isinstance(part, Cell) and part is not cell]
            known |= {id(part): (below + layer, backward) for layer, part in enumerate(inner)}
    wrapped = {id(part) for _, cell in found for part in cell.modules() if part is not cell}
    return [
        CellPlace(name, *known.get(id(cell), (0, False)), cell)
        for name, cell in found
        if id(cell) not in wrapped
    ]


def title_of(place: CellPlace, both: bool) -> str:
    """A title such as "encoder, layer 1, backward (GRU)"; of a cell around another one it names both."""
    part = place.name.split(".")[0]
    way = (", backward" if place.backward else ", forward") if both else ""
    inner = getattr(place.cell, "cell", None)
    kinds = [type(cell).__name__ for cell in (place.cell, inner) if isinstance(cell, Cell)]
    whole = f"layer {place.layer + 1}{way} ({' of '.join(kinds)})"
    return whole if part in ("forwards", "backwards") else f"{part}, {whole}"


def titles_of(found: Sequence[CellPlace]) -> dict[str, str]:
    """A unique title for each module name, used wherever a layer is shown."""
    both = any(place.backward for place in found)
    titles = {place.name: title_of(place, both) for place in found}
    times = Counter(titles.values())
    return {name: f"{title}, {name}" if times[title] > 1 else title for name, title in titles.items()}


@contextmanager
def watch(model: nn.Module) -> Iterator[list[RecordedRun]]:
    """Record the runs of all cells of a model inside the block, detached from the graph."""
    runs: list[RecordedRun] = []
    with ExitStack() as stack:
        for place in places(model):
            stack.enter_context(_watched(place, runs))
        yield runs


@torch.no_grad()
def trace(run: RecordedRun, *, last: int | None = None) -> StepTrace:
    """The states of a run, computed step by step with the cell's own `step`.

    Args:
        run: from `watch`.
        last: trace only this many final steps; earlier ones use the cell's fast path.

    Example:
        >>> from weft.nn.recurrent import Stack
        >>> stack = Stack(3, (5,))  # one LSTM
        >>> with watch(stack) as runs:
        ...     _ = stack(torch.zeros(2, 7, 3))
        >>> steps = trace(runs[0])
        >>> len(steps.states), steps.states[1][0].shape  # before each step; h [B, H]
        (7, torch.Size([2, 5]))
    """
    cell, drop = run.place.cell, 0
    if last is not None:
        drop = max(0, sum(call.x.shape[1] for call in run.calls) - last)
    xs, states, masks = [], [], []
    for number, (x, state, mask, after) in enumerate(run.calls):
        real = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device) if mask is None else mask.clone()
        skip = min(drop, x.shape[1])
        drop -= skip
        if skip == x.shape[1]:
            continue
        if skip:
            _, state = cell(x[:, :skip], state, None if mask is None else mask[:, :skip])
        x, real = x[:, skip:], real[:, skip:]
        for t in range(x.shape[1]):
            states.append(state)
            if t + 1 < x.shape[1]:
                state = where(real[:, t], cell.step(x[:, t], state)[1], state)
        if number + 1 < len(run.calls):  # the caller may have kept some rows' old state
            real[:, -1] &= _same(after, run.calls[number + 1].before)
        xs.append(x)
        masks.append(real)
    return StepTrace(run.place, torch.cat(xs, 1), states, torch.cat(masks, 1))


@contextmanager
def _watched(place: CellPlace, runs: list[RecordedRun]) -> Iterator[None]:
    cell = place.cell
    own_step = cell.step
    inside = []  # a forward that loops over `step` counts as one call

    def before(*_: object) -> None:
        inside.append(True)

    def after(_: nn.Module, args: tuple[Any, ...], named: dict[str, Any], output: Any) -> None:
        inside.pop()
        given = dict(zip(("x", "state", "mask"), args, strict=False)) | named
        _add(runs, place, Call(given["x"], given["state"], given.get("mask"), output[1]))

    def step(x: Tensor, state: State) -> tuple[Tensor, State]:
        y, new = own_step(x, state)
        if not inside:
            _add(runs, place, Call(x[:, None], state, None, new))
        return y, new

    hooks = [cell.register_forward_pre_hook(before), cell.register_forward_hook(after, with_kwargs=True)]
    cell.__dict__["step"] = step  # only on this object and only while it is watched
    try:
        yield
    finally:
        del cell.__dict__["step"]
        for hook in hooks:
            hook.remove()


def _add(runs: list[RecordedRun], place: CellPlace, call: Call) -> None:
    """Add to the cell's last run if each row continues or repeats its state; otherwise start a new run."""
    call = Call(
        call.x.detach(),
        tree_map(Tensor.detach, call.before),
        call.mask,
        tree_map(Tensor.detach, call.after),
    )
    for run in reversed(runs):
        if run.place is place:
            last = run.calls[-1]
            if len(last.x) == len(call.x) and bool(
                (_same(last.after, call.before) | _same(last.before, call.before)).all()
            ):
                run.calls.append(call)
                return
            break
    runs.append(RecordedRun(place, [call]))


def _same(one: State, other: State) -> Tensor:
    """[B] bool: the rows in which two states are bit-identical."""
    rows = [(a == b).flatten(1).all(1) for a, b in zip(leaves(one), leaves(other), strict=True)]
    return torch.stack(rows).all(0) if rows else torch.ones(1, dtype=torch.bool)
