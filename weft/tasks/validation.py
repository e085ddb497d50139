"""What a validation gives: scores, and a few samples for the eye."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch


class Sample(NamedTuple):
    """An example of the validation data and what the model makes of it, as text."""

    source: str
    reference: str
    output: str


class Validation(NamedTuple):
    """How good the model is now."""

    scores: dict[str, float]
    samples: Sequence[Sample]


def samples_of(count: int, shown: int = 3) -> list[int]:
    """Which of `count` validation examples are shown as samples: other ones at each validation.

    Training seeds torch's generator before each validation, so one that is done again shows the same. No
    random number of that generator is used up.

    Args:
        count: examples to choose from.
        shown: samples wanted.

    Returns:
        At most `shown` different numbers below `count`, in ascending order.
    """
    chance = np.random.default_rng(torch.initial_seed() % 2**63)
    return sorted(chance.choice(count, min(count, shown), replace=False).tolist())
