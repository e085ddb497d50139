"""Override attention at chosen steps of a search, to see what the model would have written.

    forced = steered(model, {2: torch.tensor([0.0, 0.0, 1.0])})   # second token attends to the third word

Read next: ../probe.py, which replaces the weights inside the model; ablate.py.
"""

import copy
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from weft.models import Generator
from weft.probe import editing
from weft.tree import State

STEERED = ("attention", "cross_attention")


def steered(model: Generator, overrides: Mapping[int, Tensor]) -> Generator:
    """A copy, with shared parameters, whose attention over the source has fixed weights at some steps.

    All layers, heads and hypotheses of a beam get the same weights. Steps are counted from `start`, so use
    the copy for one search at a time.

    Args:
        overrides: by step, 1 being the first output token: weights [S] over the source positions, which
            should sum to 1.

    Returns:
        A model for `start` and `step`; whole sequences (`loss`, `features`) are not affected.
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
        if time not in overrides:
            return step(token, state)
        wanted = overrides[time]

        def forced(name: str, weights: Tensor) -> Tensor:
            if name not in STEERED or weights.shape[-1] != len(wanted):
                return weights
            return wanted.to(weights).expand_as(weights)

        with editing(forced):
            return step(token, state)

    changed.start = started  # type: ignore[method-assign]
    changed.step = stepped  # type: ignore[method-assign]
    return changed
