"""Several models as one: the mean of their predictions. Read next: beam.py, which sees one step."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from weft.errors import ConfigError
from weft.search.offered import Mean
from weft.search.step import Step
from weft.tree import State


def ensemble(steps: Sequence[Step], mean: Mean = "probability") -> Step:
    """Combine several steps into one; its state is the tuple of their states.

    "probability": log of the mean of p_m (a mixture). "log": mean of log p_m (a product, high only
    if all members agree; it is not normalised, so scores are lower).
    """
    if not steps:
        raise ConfigError("ensemble: expected at least one model, got none")
    if mean not in ("probability", "log"):
        raise ConfigError(f"ensemble: expected 'probability' or 'log', got mean {mean!r}")

    def step(token: Tensor, states: tuple[State, ...]) -> tuple[Tensor, tuple[State, ...]]:
        answers = [one(token, state) for one, state in zip(steps, states, strict=True)]
        sizes = {logp.shape[1] for logp, _ in answers}
        if len(sizes) > 1:
            raise ConfigError(
                f"ensemble: expected one vocabulary, got {' and '.join(map(str, sorted(sizes)))} tokens; "
                "use models with the same vocabulary"
            )
        every = torch.stack([logp for logp, _ in answers])
        logp = every.mean(0) if mean == "log" else every.logsumexp(0) - math.log(len(steps))
        return logp.clamp_(max=0.0), tuple(state for _, state in answers)

    return step
