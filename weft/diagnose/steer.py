"""A model that looks where it is told to at some steps of a search: what would it have written?

    forced = steered(model, {2: torch.tensor([0.0, 0.0, 1.0])})   # at the second token, the third word

Read next: ../probe.py, by which weights are changed on their way; ablate.py.
"""

import copy
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from weft.models import Generator
from weft.probe import editing
from weft.tree import State

LOOKED_AT = ("attention", "cross_attention")


def steered(model: Generator, looks: Mapping[int, Tensor]) -> Generator:
    """A copy whose attention into the source has given weights at some steps; it shares every parameter.

    All layers and heads get the same weights, and every hypothesis of a beam. Steps are counted from
    `start`, so one search at a time may run with it.

    Args:
        model: stays as it is; without attention nothing changes.
        looks: by step, 1 being the first token that is written: weights [S] of the source's positions,
            which should add up to one.

    Returns:
        A model for `start` and `step`; whole sequences (`loss`, `features`) are not changed.
    """
    changed = copy.copy(model)
    start, step = model.start, model.step
    time = 0

    def started(source: Any, mask: Tensor) -> State:
        nonlocal time
        time = 0
        return start(source, mask)

    def stepped(token: Tensor, state: State) -> tuple[Tensor, State]:
        nonlocal time
        time += 1
        if time not in looks:
            return step(token, state)
        wanted = looks[time]

        def forced(name: str, weights: Tensor) -> Tensor:
            if name not in LOOKED_AT or weights.shape[-1] != len(wanted):
                return weights
            return wanted.to(weights).expand_as(weights)

        with editing(forced):
            return step(token, state)

    changed.start = started  # type: ignore[method-assign]
    changed.step = stepped  # type: ignore[method-assign]
    return changed
