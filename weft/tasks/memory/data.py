"""A recipe's section `data` for the memory problems: the problem, its length and the number of examples."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch

from weft.data.memory import SYMBOLS, adding, copying
from weft.errors import ConfigError
from weft.tasks.shared.labels.batch import LabelBatch

Problem = Literal["adding", "copying"]
STREAMS = ("train", "valid", "test")


@dataclass(frozen=True, kw_only=True)
class MemoryData:
    """Generated examples.

    Args:
        problem: adding or copying.
        length: T, number of inputs in the adding problem, or steps of delay in the copying problem.
        shortest: the length of a training batch is drawn from `shortest` to `length`; 0 takes `length`.
            Validation and test always have `length`.
        symbols: n, number of symbols of the copying problem.
        examples: per training epoch; every epoch has new ones.
        valid, test: numbers of examples.
        batch_rows: examples per batch.
        seed: of the examples.

    Raises:
        ConfigError: a size is impossible.
    """

    problem: Problem = "adding"
    length: int = 200
    shortest: int = 0
    symbols: int = 10
    examples: int = 10_000
    valid: int = 1000
    test: int = 5000
    batch_rows: int = 50
    seed: int = 1

    def __post_init__(self) -> None:
        least = 2 if self.problem == "adding" else 1
        if self.problem not in get_args(Problem):
            raise ConfigError(f"problem: expected adding or copying, got {self.problem!r}")
        for name in ("symbols", "examples", "valid", "test", "batch_rows"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}: expected at least 1, got {getattr(self, name)}")
        if self.seed < 0:
            raise ConfigError(f"seed: expected at least 0, got {self.seed}")
        if self.length < least:
            raise ConfigError(f"length: expected at least {least} for {self.problem}, got {self.length}")
        if self.shortest and not least <= self.shortest <= self.length:
            raise ConfigError(
                f"shortest: expected 0 or a length from {least} to {self.length}, got {self.shortest}"
            )

    def batch(self, split: str, numbers: np.ndarray) -> LabelBatch:
        """The examples of a split with these numbers."""
        stream = [self.seed, STREAMS.index(split)]
        length = self.length
        if split == "train" and self.shortest:
            chance = np.random.default_rng([*stream, int(numbers[0]), 1])
            length = int(chance.integers(self.shortest, self.length + 1))
        if self.problem == "adding":
            x, y = adding(stream, numbers, length)
        else:
            x, y = copying(stream, numbers, length, self.symbols)
        mask = torch.ones(x.shape[:2], dtype=torch.bool)
        return LabelBatch(torch.from_numpy(x), mask, torch.from_numpy(y), int(y.size))

    @property
    def baseline(self) -> float:
        """The score without memory: the error of always answering 1, or the accuracy of guessing."""
        return 1 / 6 if self.problem == "adding" else 1 / SYMBOLS

    def describe(self, split: str) -> str:
        """The data of a split, for a title."""
        count = self.valid if split == "valid" else self.test if split == "test" else self.examples
        what = "delay" if self.problem == "copying" else "length"
        return f"{self.problem}, {what} {self.length}, {split}, {count:,} examples, seed {self.seed}"


class Fresh:
    """Unlimited training batches: epoch e has the N examples from number e · N, each once.

    Args:
        examples: N, per epoch.
        rows: examples per batch.
    """

    def __init__(self, examples: int, rows: int) -> None:
        self.examples, self.rows = examples, rows

    def epoch(self, number: int) -> list[np.ndarray]:
        """Arrays of example numbers; the last one may be shorter."""
        first, end = number * self.examples, (number + 1) * self.examples
        return [np.arange(at, min(at + self.rows, end)) for at in range(first, end, self.rows)]
