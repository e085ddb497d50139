"""The training length of a recipe of `weft init`: enough updates for a small data set, and a warm-up."""

import math
from typing import NamedTuple

UPDATES = 600  # planned minimum
EPOCHS = 60  # maximum, to reach UPDATES


class Planned(NamedTuple):
    """Numbers for the recipe."""

    epochs: int
    warmup: int  # updates, at most a tenth of all


def planned(batches: float, *, epochs: int, warmup: int) -> Planned:
    """More epochs if the usual number gives too few updates, and a short warm-up.

    Args:
        batches: approximate number per epoch.
        epochs: usual number for a large data set.
        warmup: usual number of updates.
    """
    batches = max(1.0, batches)
    epochs = max(epochs, min(EPOCHS, math.ceil(UPDATES / batches)))
    return Planned(epochs, max(1, min(warmup, int(batches * epochs / 10))))
