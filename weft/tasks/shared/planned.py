"""How long a recipe of `weft init` trains: enough updates for a small set, and a warm-up that fits."""

import math
from typing import NamedTuple

UPDATES = 600  # fewest that are planned
EPOCHS = 60  # most for that


class Planned(NamedTuple):
    """What stands in the recipe."""

    epochs: int
    warmup: int  # updates, a tenth of all at most


def planned(batches: float, *, epochs: int, warmup: int) -> Planned:
    """More epochs than usual where a few would be too few updates, and a warm-up that ends early.

    Args:
        batches: of an epoch, about.
        epochs: as usual for a set that is large enough.
        warmup: the same.
    """
    batches = max(1.0, batches)
    epochs = max(epochs, min(EPOCHS, math.ceil(UPDATES / batches)))
    return Planned(epochs, max(1, min(warmup, int(batches * epochs / 10))))
