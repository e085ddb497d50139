"""Several corpora in one training: each gives a share of every epoch that a temperature sets.

With sizes n_i the share of corpus i is n_i^(1/T) / sum_j n_j^(1/T): T = 1 keeps the sizes, a large T makes
all corpora equally frequent (Arivazhagan et al. 2019). An epoch has as many examples as all corpora together;
a corpus whose share is larger than itself is gone through again. Read next: batching.py.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from weft.data.batching import Batches
from weft.errors import ConfigError


class Mixture:
    """Batches over several corpora whose examples are numbered one after the other.

    Args:
        lengths: for each corpus [N_i, 2] tokens of source and target, without eos.
        temperature: T, at least 1.
        max_tokens, max_rows, seed: as in Batches.

    Raises:
        ConfigError: a temperature below 1, or no corpus.

    Example:
        >>> small, large = np.array([[1, 1]] * 2), np.array([[1, 1]] * 6)
        >>> Mixture([small, large], temperature=1e9, max_tokens=8, max_rows=None, seed=1).counts
        [4, 4]
    """

    def __init__(
        self,
        lengths: Sequence[np.ndarray],
        *,
        temperature: float,
        max_tokens: int,
        max_rows: int | None,
        seed: int,
    ) -> None:
        if not lengths:
            raise ConfigError("there is no corpus to mix; name one or more")
        if temperature < 1:
            raise ConfigError(f"temperature: {temperature:g} came, at least 1 is needed (1 keeps the sizes)")
        sizes = np.array([len(one) for one in lengths], dtype=np.float64)
        weights = sizes ** (1 / temperature)
        self.counts = _whole(sizes.sum() * weights / weights.sum())
        self._sizes = sizes.astype(np.int64).tolist()
        self._lengths = lengths
        self._budget = max_tokens, max_rows
        self._seed = seed
        self._held: tuple[int, MixedEpoch] | None = None

    def epoch(self, number: int) -> "MixedEpoch":
        """The batches of one epoch; the last one asked for is kept."""
        if self._held is None or self._held[0] != number:
            self._held = number, self._make(number)
        return self._held[1]

    def _make(self, number: int) -> "MixedEpoch":
        generator = np.random.default_rng([self._seed, number])
        chosen, lengths, first = [], [], 0
        for corpus, size, count in zip(self._lengths, self._sizes, self.counts, strict=True):
            rounds = [generator.permutation(size) for _ in range(-(-count // size))]
            taken = np.sort(np.concatenate([np.zeros(0, np.int64), *rounds])[:count])
            chosen.append(taken + first)
            lengths.append(corpus[taken])
            first += size
        max_tokens, max_rows = self._budget
        seed = int(generator.integers(2**31))
        batches = Batches(np.concatenate(lengths), max_tokens=max_tokens, max_rows=max_rows, seed=seed)
        return MixedEpoch(batches.epoch(0), np.concatenate(chosen))


class MixedEpoch(Sequence[np.ndarray]):
    """The batches of one epoch, each an array [B] of example numbers over all corpora.

    Args:
        batches: of positions in `chosen`.
        chosen: the examples of this epoch.
    """

    def __init__(self, batches: Iterable[np.ndarray], chosen: np.ndarray) -> None:
        self._batches = list(batches)
        self._chosen = chosen

    def __len__(self) -> int:
        return len(self._batches)

    def __getitem__(self, index: int) -> np.ndarray:  # type: ignore[override]
        found: np.ndarray = self._chosen[self._batches[index]]
        return found

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self._chosen[batch] for batch in self._batches)


def _whole(shares: np.ndarray) -> list[int]:
    """Whole numbers with the sum of the shares, none below 1: largest remainders first."""
    counts = np.maximum(1, np.floor(shares)).astype(np.int64)
    missing = round(float(shares.sum())) - int(counts.sum())
    for place in np.argsort(np.floor(shares) - shares, kind="stable")[: max(0, missing)]:
        counts[place] += 1
    return [int(count) for count in counts]
