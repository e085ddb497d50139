"""Batches of pictures: pixels from -1 to 1, no padding."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor


def source(pixels: np.ndarray, places: int) -> tuple[Tensor, Tensor]:
    """Pictures [B, ..] as float32 and the mask [B, places].

    Args:
        pixels: uint8 is scaled to -1 to 1; features are unchanged.
        places: S, number of places of the front end.
    """
    x = torch.from_numpy(np.ascontiguousarray(pixels))
    x = x.float() / 127.5 - 1 if x.dtype == torch.uint8 else x.float()
    return x, torch.ones(len(x), places, dtype=torch.bool)


class Order:
    """Training batches, in a new order each epoch.

    Args:
        count: number of examples.
        rows: examples per batch.
        seed: of the order.
    """

    def __init__(self, count: int, rows: int, seed: int) -> None:
        self.count, self.rows, self.seed = count, rows, seed

    def epoch(self, number: int) -> list[np.ndarray]:
        """Arrays of example numbers; the last one may be shorter."""
        order = np.random.default_rng([self.seed, number]).permutation(self.count)
        return [order[at : at + self.rows] for at in range(0, self.count, self.rows)]


def parts(count: int, rows: int) -> Iterator[slice]:
    """Slices of at most `rows` rows."""
    return (slice(at, min(at + rows, count)) for at in range(0, count, rows))
