"""Common code of step-by-step forecasters: feed back true values, own values, or a mixture."""

from collections.abc import Callable

import torch
from torch import Tensor

from weft.nn.forecasters.forecaster import Past, Say
from weft.tree import State

Step = Callable[[Tensor, State], tuple[Tensor, State]]
"""Maps inputs [B, T, 1 + G] and a state to features [B, T, D] and the next state."""


def write(
    step: Step, state: State, past: Past, say: Say, future: Tensor | None, true: Tensor | None
) -> Tensor:
    """Features of the H future steps; each step reads the previous value and the current covariates."""
    ahead = past.known[:, past.values.shape[1] :]  # [B, H, G]
    value = past.values[:, -1:]  # [B, 1]: forecasts start from the last observation
    if future is not None and true is None:
        before = torch.cat([value, future[:, :-1]], 1)
        return step(torch.cat([before[..., None], ahead], -1), state)[0]
    hs = []
    for t in range(ahead.shape[1]):
        h, state = step(torch.cat([value[..., None], ahead[:, t : t + 1]], -1), state)
        hs.append(h)
        value = say(h).detach().to(value.dtype)
        if future is not None and true is not None:
            value = torch.where(true[:, t : t + 1], future[:, t : t + 1], value)
    return torch.cat(hs, 1)
