"""Several token stores as one. Read next: store.py; mixture.py, which sets the share of each."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from weft.data.store import TokenStore


class JoinedStores:
    """Concatenated stores with consecutive example numbers.

    Args:
        stores: one or more.
    """

    def __init__(self, stores: Sequence[TokenStore]) -> None:
        self.stores = list(stores)
        self._first = [0, *accumulate(map(len, self.stores))]  # number of each store's first example

    def __len__(self) -> int:
        return self._first[-1]

    def __getitem__(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """The ids of source and target, two read-only int32 arrays."""
        place = bisect_right(self._first, number) - 1
        return self.stores[place][number - self._first[place]]

    @property
    def lengths(self) -> list[np.ndarray]:
        """Lengths [N, 2] of each store."""
        return [store.lengths for store in self.stores]
