"""Train on several corpora; a temperature sets the share of each in every epoch.

With sizes n_i and weights w_i the share of corpus i is (w_i n_i)^(1/T) / sum_j (w_j n_j)^(1/T): T = 1 keeps
the weighted sizes, a large T makes all corpora equally frequent (Arivazhagan et al. 2019, unweighted). An
epoch has as many examples as all corpora together; a corpus with a share larger than its size is repeated.
Read next: batching.py.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from weft.data.batching import BLOCK, RUN, Batches, EpochBatches
from weft.errors import ConfigError


class Mixture:
    """Batches over several corpora with consecutive example numbers.

    Of each corpus, `lengths` [N_i, 2] are the tokens of source and target, without eos, and may be
    memory-mapped; T = `temperature` is at least 1, and `weights` w_i, 1 by default, are factors of the sizes.
    """

    def __init__(
        self,
        lengths: Sequence[np.ndarray],
        *,
        temperature: float,
        max_tokens: int,
        max_rows: int | None,
        seed: int,
        weights: Sequence[float] | None = None,
    ) -> None:
        if not lengths:
            raise ConfigError("expected at least one corpus to mix, got none")
        if temperature < 1:
            raise ConfigError(f"temperature: expected at least 1 (1 keeps the sizes), got {temperature:g}")
        given = np.ones(len(lengths)) if weights is None else np.array(weights, dtype=np.float64)
        if not (given > 0).all():
            raise ConfigError(
                f"weights: expected a number above 0, got {given.min():g}; to leave a corpus out, remove it"
            )
        sizes = np.array([len(one) for one in lengths], dtype=np.float64)
        shares = (given * sizes) ** (1 / temperature)
        self.counts = _largest_remainder(sizes.sum() * shares / shares.sum())
        self._lengths = lengths
        self._budget = max_tokens, max_rows
        self._seed = seed
        self._cached: tuple[int, MixedEpoch] | None = None

    def summary(self, names: Sequence[str]) -> str:
        """How much an epoch takes from each corpus, as text."""
        whole = sum(self.counts)
        parts = [
            f"{count:,} ({100 * count / whole:.1f} %) of {name}, {count / len(size):.2f} times all"
            for count, name, size in zip(self.counts, names, self._lengths, strict=True)
        ]
        return f"an epoch takes {', '.join(parts[:-1])}{', and ' if parts[1:] else ''}{parts[-1]}"

    def epoch(self, number: int) -> "MixedEpoch":
        """The batches of one epoch; the most recent one is cached."""
        if self._cached is None or self._cached[0] != number:
            self._cached = number, self._make(number)
        return self._cached[1]

    def _make(self, number: int) -> "MixedEpoch":
        generator = np.random.default_rng([self._seed, number])
        drawn = MixedExamples(self._lengths, self.counts, generator)
        max_tokens, max_rows = self._budget
        seed = int(generator.integers(2**31))
        batches = Batches(drawn, max_tokens=max_tokens, max_rows=max_rows, seed=seed)  # type: ignore[arg-type]
        return MixedEpoch(batches.epoch(0), drawn)


class MixedExamples:
    """The examples of an epoch by position, without storing a list of them.

    A corpus of n examples with a share of c gives each example c // n times, and c mod n of them once more.
    These are drawn one by one or, above a million, in runs of neighbours as in batching.py, so that 100
    million examples take less than a megabyte.
    """

    def __init__(
        self, lengths: Sequence[np.ndarray], counts: Sequence[int], generator: np.random.Generator
    ) -> None:
        self._lengths = lengths
        self._sizes = [len(one) for one in lengths]
        self._begins = np.cumsum([0, *counts])  # positions in the epoch
        self._firsts = np.cumsum([0, *self._sizes])  # example numbers
        self._more: list[np.ndarray] = []  # runs or examples that appear once more
        for size, count in zip(self._sizes, counts, strict=True):
            run, rest = self._run(size), count % size
            chosen = generator.permutation(size // run)[: -(-rest // run)]
            self._more.append(np.sort(chosen))

    def __len__(self) -> int:
        return int(self._begins[-1])

    def __getitem__(self, places: np.ndarray) -> np.ndarray:
        """The lengths [B, 2] of the examples at these positions [B]."""
        found = np.zeros((len(places), 2), dtype=np.int64)
        for corpus, rows, examples in self._split(places):
            found[rows] = self._lengths[corpus][examples]
        return found

    def examples(self, places: np.ndarray) -> np.ndarray:
        """The numbers, over all corpora, of the examples at these positions."""
        found = np.zeros(len(places), dtype=np.int64)
        for corpus, rows, examples in self._split(places):
            found[rows] = examples + self._firsts[corpus]
        return found

    def _split(self, places: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """For each corpus, the rows of `places` that belong to it and its examples there."""
        owners = np.searchsorted(self._begins, places, "right") - 1
        for corpus in np.unique(owners).tolist():
            rows = np.flatnonzero(owners == corpus)
            yield corpus, rows, self._example(corpus, places[rows] - self._begins[corpus])

    def _example(self, corpus: int, places: np.ndarray) -> np.ndarray:
        size, count = self._sizes[corpus], int(self._begins[corpus + 1] - self._begins[corpus])
        run, more = self._run(size), self._more[corpus]
        found = places % size
        last = np.flatnonzero(places >= count // size * size)  # positions in the last, incomplete round
        if len(last) and len(more):
            at = found[last]
            inside = at < len(more) * run  # after the runs there is a shorter tail, which needs no mapping
            at[inside] = more[at[inside] // run] * run + at[inside] % run
            found[last] = at
        return found

    @staticmethod
    def _run(size: int) -> int:
        return RUN if size > BLOCK else 1


class MixedEpoch(Sequence[np.ndarray]):
    """The batches of one epoch, each an array [B] of example numbers over all corpora."""

    def __init__(self, batches: EpochBatches, drawn: MixedExamples) -> None:
        self._batches = batches
        self._drawn = drawn

    def __len__(self) -> int:
        return len(self._batches)

    def __getitem__(self, index: int) -> np.ndarray:  # type: ignore[override]
        return self._drawn.examples(self._batches[index])


def _largest_remainder(shares: np.ndarray) -> list[int]:
    """Integers of at least 1 with the same sum as the shares, by the largest-remainder method."""
    counts = np.maximum(1, np.floor(shares)).astype(np.int64)
    missing = round(float(shares.sum())) - int(counts.sum())
    for place in np.argsort(np.floor(shares) - shares, kind="stable")[: max(0, missing)]:
        counts[place] += 1
    return [int(count) for count in counts]
