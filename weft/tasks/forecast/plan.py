"""The order of training windows: a permutation per epoch, from seed and epoch alone."""

import numpy as np


class WindowPlan:
    """Batches of equal size; the last one may be smaller and is never dropped.

    Args:
        count: number of windows.
        rows: windows per batch.
        most: maximum number of windows per epoch; 0 for all.
        seed: of the permutations.
    """

    def __init__(self, count: int, *, rows: int, most: int, seed: int) -> None:
        self._count, self._rows, self._most, self._seed = count, rows, most, seed
        self._held: tuple[int, list[np.ndarray]] = (-1, [])

    def epoch(self, number: int) -> list[np.ndarray]:
        """The batches of an epoch, each an array of window numbers."""
        if self._held[0] != number:
            order = np.random.default_rng([self._seed, number]).permutation(self._count)
            order = order[: self._most or self._count]
            self._held = number, [order[at : at + self._rows] for at in range(0, len(order), self._rows)]
        return self._held[1]
