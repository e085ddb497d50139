"""What attention does: how concentrated it is, how much a pointer network copies by it, overriding it.

    forced = steered(model, {2: torch.tensor([0.0, 0.0, 1.0])})   # second token attends to the third word

Read next: ../nn/heads/pointer.py, which mixes generating and copying; ../probe.py, which replaces the
weights inside the model; ablate.py.
"""

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from weft.models import Generator, SequencePair
from weft.probe import editing, probe
from weft.tree import State


def entropy(weights: Tensor) -> Tensor:
    """-Σ_j α_j ln α_j in nats: 0 if one position has all the weight, ln S if all weights are equal."""
    return weights.new_zeros(()) - weights.xlogy(weights).sum(-1)


@torch.no_grad()
def copied(model: Generator, batch: SequencePair) -> Tensor | None:
    """(1 - p_gen) sum_{i: w_i = w} a_i / p(w) of each target w [B, T]: 1 if it was copied; None if it cannot.

    Source: See, Liu & Manning 2017, eq. 9; its second term is the copied share.
    """
    if not model.head.copies:
        return None
    with probe() as seen:
        logp = model.head(model.features(batch))  # [B, T, V + S]
    target = batch.target_out[..., None]
    share = seen["copied"][-1].gather(-1, target) / logp.gather(-1, target).exp()
    return share[..., 0].nan_to_num(0.0).clamp(0.0, 1.0)


STEERED = ("attention", "cross_attention")


def steered(model: Generator, overrides: Mapping[int, Tensor]) -> Generator:
    """A copy, with shared parameters, whose attention over the source has fixed weights [S] at some steps.

    All layers, heads and hypotheses of a beam get the same weights, which should sum to 1. Step 1 is the
    first output token, counted from `start`: use the copy for one search at a time. Whole sequences (`loss`,
    `features`) are not affected.
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
