"""Coverage: a hypothesis that attended to only part of the source scores less.

    cp = beta * sum_j log(min(sum_t alpha_tj, 1))        alpha_tj: attention of step t to source position j

is added to a hypothesis's score when it ends (Wu et al. 2016, equation 14). It is never above 0, so
the early finish of beam.py stays correct.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from weft.probe import probe
from weft.search.step import Step
from weft.tree import State

LEAST = 1e-6
"""Least attention of a position: the logarithm of 0 would make every score -inf."""


class SourceMask(NamedTuple):
    """The real positions of each source, [B, S] bool."""

    mask: Tensor
    per_source = True


class CoverageState(NamedTuple):
    """The state of a step that sums up its attention."""

    total: Tensor  # [N, S] attention so far
    source: SourceMask
    inner: State


Attended = Callable[[dict[str, list[Tensor]]], Tensor]
"""Maps what a probe recorded during one step to the attention of that step, [N, S] or [B, W, S]."""


def covering(step: Step, state: State, mask: Tensor, attended: Attended) -> tuple[Step, CoverageState]:
    """A step that also sums up the attention, and its initial state."""

    def counting(token: Tensor, state: CoverageState) -> tuple[Tensor, CoverageState]:
        with probe() as seen:
            logp, inner = step(token, state.inner)
        weights = attended(seen).reshape(len(token), -1)
        return logp, CoverageState(state.total + weights.to(state.total.dtype), state.source, inner)

    return counting, CoverageState(torch.zeros(mask.shape, device=mask.device), SourceMask(mask), state)


def coverage_penalty(state: CoverageState, beta: float) -> Tensor:
    """cp of every hypothesis, [N] float64.

    Example:
        >>> import torch
        >>> mask = torch.tensor([[True, True, False]])
        >>> state = CoverageState(torch.tensor([[0.5, 1.7, 0.0]]), SourceMask(mask), None)
        >>> round(float(coverage_penalty(state, beta=1.0)), 3)
        -0.693
    """
    mask = state.source.mask
    seen = state.total.double().clamp(LEAST, 1.0).log().view(len(mask), -1, mask.shape[1])
    return beta * seen.masked_fill(~mask[:, None], 0.0).sum(2).flatten()
