"""Mini-batches of examples of similar length, limited by a token budget, in a reproducible order.

The order depends only on (seed, epoch), so a position in training is two numbers, (epoch, index), and
resuming there gives the same batches as an uninterrupted run. Examples are shuffled in blocks: runs of
neighbouring examples are assigned to blocks at random; within a block, examples are sorted by length and
split into batches, and the batches are shuffled. Up to a million examples there is one block and the
shuffle is complete. With 100 million, memory holds one block and the order of the runs, a few MB, and the
disk is read in runs. Read next: store.py, where the lengths come from.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from weft.errors import ConfigError

BLOCK = 2**20  # examples
RUN = 2**10
BAND = 5  # batches; fewer spread the source lengths within a batch, more the target lengths


class Statistics(NamedTuple):
    """Statistics of an epoch's batches; lengths include eos."""

    batches: int
    rows: float  # mean rows per batch
    target_tokens: float  # mean target tokens per batch, without padding
    fill: float  # share of the padded cells that hold tokens, both sides together


class Batches:
    """The examples of a training set in batches, for every epoch.

    A batch has at most `max_tokens` target tokens (with eos, without padding), at most `max_rows` rows, and
    at most 2 · max_tokens for rows times the longest side (with padding). An example that is too large by
    itself forms a batch of one.

    Args:
        lengths: [N, 2] tokens of source and target, without eos; may be memory-mapped.
        max_tokens: maximum target tokens per batch.
        max_rows: maximum rows per batch; None for no limit.
        seed: of the order.
        shuffle: False sorts the batches by length, in the same order in every epoch.

    Raises:
        ConfigError: a limit is below 1, or there are no examples.

    Example:
        >>> batches = Batches(np.array([[3, 4], [1, 1], [3, 3], [1, 2]]), max_tokens=9, max_rows=None, seed=1)
        >>> sorted(sorted(batch.tolist()) for batch in batches.epoch(0))
        [[0], [1, 2, 3]]
    """

    def __init__(
        self,
        lengths: np.ndarray,
        *,
        max_tokens: int,
        max_rows: int | None = None,
        seed: int,
        shuffle: bool = True,
    ) -> None:
        if max_tokens < 1 or (max_rows is not None and max_rows < 1):
            raise ConfigError(
                f"expected max_tokens and max_rows of at least 1, got {max_tokens} and {max_rows}"
            )
        if len(lengths) == 0:
            raise ConfigError("expected at least one example to batch, got none")
        self.lengths = lengths
        self.max_tokens = max_tokens
        self.max_rows = max_rows
        self.seed = seed
        self.shuffle = shuffle

    def epoch(self, number: int) -> "EpochBatches":
        """The batches of epoch `number`, in an order that depends on it and on the seed alone."""
        return EpochBatches(self, number)

    def statistics(self, epoch: int = 0) -> Statistics:
        """Mean rows and target tokens of the batches of an epoch, and how full they are."""
        rows, target, real, padded = 0, 0, 0, 0
        batches = self.epoch(epoch)
        for numbers in batches:
            lengths = self.lengths[numbers].astype(np.int64) + 1
            rows += len(numbers)
            target += int(lengths[:, 1].sum())
            real += int(lengths.sum())
            padded += len(numbers) * int(lengths.max(0).sum())
        count = len(batches)
        return Statistics(count, rows / count, target / count, real / padded)


class EpochBatches(Sequence[np.ndarray]):
    """The batches of one epoch, each an array [B] of example numbers."""

    def __init__(self, plan: Batches, number: int) -> None:
        self._plan = plan
        self.number = number
        self._cached: tuple[int, list[np.ndarray]] | None = None  # the most recent block

    def __len__(self) -> int:
        return int(self._first[-1])

    def __getitem__(self, index: int) -> np.ndarray:  # type: ignore[override]
        if not -len(self) <= index < len(self):
            raise IndexError(f"batch {index} of {len(self)}")
        index %= len(self)
        block = int(np.searchsorted(self._first, index, "right")) - 1
        return self._block(block)[index - int(self._first[block])]

    @cached_property
    def _runs(self) -> np.ndarray:
        """The order of the runs of neighbouring examples."""
        runs = -(-len(self._plan.lengths) // RUN)
        if not self._plan.shuffle:
            return np.arange(runs)
        return np.random.default_rng([self._plan.seed, self.number]).permutation(runs)

    @property
    def _blocks(self) -> int:
        return -(-len(self._runs) // (BLOCK // RUN))

    @cached_property
    def _first(self) -> np.ndarray:
        """The number of each block's first batch, followed by the number of all batches."""
        counts = [len(self._block(number)) for number in range(self._blocks)]
        return np.concatenate([[0], np.cumsum(counts)])

    def _block(self, number: int) -> list[np.ndarray]:
        if self._cached is None or self._cached[0] != number:
            self._cached = number, self._make(number)
        return self._cached[1]

    def _make(self, number: int) -> list[np.ndarray]:
        plan = self._plan
        some = BLOCK // RUN
        starts = self._runs[number * some : (number + 1) * some] * RUN
        examples = (starts[:, None] + np.arange(RUN)).ravel()
        examples = examples[examples < len(plan.lengths)]
        if plan.shuffle:
            # 1 + number, because [seed, epoch, 0] would draw the same as [seed, epoch].
            generator = np.random.default_rng([plan.seed, self.number, 1 + number])
            examples = generator.permutation(examples)
        lengths = plan.lengths[examples].astype(np.int64) + 1  # eos
        order = _by_length(lengths, plan.max_tokens)
        cuts = _cut(lengths[order], plan.max_tokens, plan.max_rows)
        batches = np.split(examples[order], cuts)
        if plan.shuffle:
            batches = [batches[place] for place in generator.permutation(len(batches))]
        return batches


def _by_length(lengths: np.ndarray, max_tokens: int) -> np.ndarray:
    """A stable order in which neighbours have similar lengths on both sides.

    Target lengths are grouped into bands of a few batches each. Source lengths increase in one band and
    decrease in the next, so that they do not jump between bands. Fill on the embedded corpus, en to es, with
    bands | sorted by target, then source: 0.976 | 0.972 at 1,000 tokens, 0.937 | 0.911 at 4,096, 0.907 |
    0.858 at 8,000.
    """
    source, target = lengths.T
    bands = np.zeros(int(target.max()) + 1, dtype=np.int64)
    band, held = 0, 0
    for length, tokens in enumerate(np.bincount(target, target).tolist()):
        if held >= BAND * max_tokens:
            band, held = band + 1, 0
        bands[length] = band
        held += tokens
    place = bands[target]
    return np.lexsort((target, np.where(place % 2 == 0, source, -source), place))


def _cut(lengths: np.ndarray, max_tokens: int, max_rows: int | None) -> list[int]:
    """The start of each batch after the first."""
    total = np.concatenate([[0], lengths[:, 1].cumsum()])
    longest = lengths.max(1)
    cuts: list[int] = []
    start, size = 0, len(lengths)
    while True:
        end = int(np.searchsorted(total, total[start] + max_tokens, "right")) - 1
        if max_rows is not None:
            end = min(end, start + max_rows)
        padded = np.maximum.accumulate(longest[start:end]) * np.arange(1, end - start + 1)
        end = start + int(np.searchsorted(padded, 2 * max_tokens, "right"))  # `padded` never decreases
        start = max(end, start + 1)
        if start >= size:
            return cuts
        cuts.append(start)


class ShuffledBatches:
    """Batches of `rows` of `count` examples in a new order each epoch, of at most `most` of them (0: all)."""

    def __init__(self, count: int, rows: int, seed: int, *, most: int = 0) -> None:
        self._count, self._rows, self._most, self._seed = count, rows, most or count, seed

    def epoch(self, number: int) -> list[np.ndarray]:
        """Arrays of example numbers."""
        order = np.random.default_rng([self._seed, number]).permutation(self._count)[: self._most]
        return [order[at : at + self._rows] for at in range(0, len(order), self._rows)]


class NumberedEpochs:
    """Batches whose numbers say in which epoch they are: example + epoch x examples."""

    def __init__(self, batches: "Batches | ShuffledBatches", count: int) -> None:
        self.batches, self.count = batches, count

    def epoch(self, number: int) -> list[np.ndarray]:
        """Arrays of numbers; none occurs in another epoch."""
        return [np.asarray(some) + number * self.count for some in self.batches.epoch(number)]


def length_groups(lengths: Sequence[int], most: int) -> Iterator[list[int]]:
    """The numbers of the rows, shortest first, in groups of at most `most` positions."""
    return _cut_groups(lengths, lambda rows, longest, following: max(1, following) * (rows + 1) > most)


def filled_groups(lengths: Sequence[int], least: int) -> Iterator[list[int]]:
    """Like `length_groups`, but each group ends once it has `least` positions."""
    return _cut_groups(lengths, lambda rows, longest, following: longest * rows >= least)


def _cut_groups(lengths: Sequence[int], closed: Callable[[int, int, int], bool]) -> Iterator[list[int]]:
    order = sorted(range(len(lengths)), key=lambda number: lengths[number])
    group: list[int] = []
    for number, following in zip_longest(order, order[1:]):
        group.append(number)
        if following is None or closed(len(group), lengths[number], lengths[following]):
            yield group
            group = []
