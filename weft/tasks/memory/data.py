"""A recipe's section `data` for the memory problems: the problem, its length and the number of examples."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from weft.data.memory_problems import adding
from weft.errors import ConfigError
from weft.shapes import check_choice
from weft.tasks.labels.base import LabelBatch
from weft.tasks.memory.problems import PROBLEMS

Problem = Literal["adding", "copying", "selective", "induction", "recall", "cups"]
STREAMS = ("train", "valid", "test")


@dataclass(frozen=True, kw_only=True)
class MemoryData:
    """Generated examples.

    Args:
        problem: adding; copying; selective, copying of symbols among blanks; induction, what followed a sign
            before; recall, the symbols of keys; cups, where a ball is under cups that are swapped (two cups
            are parity).
        length: T, number of inputs in adding, selective, induction and cups; steps of delay in copying;
            pairs in recall.
        shortest: the length of a training batch is drawn from `shortest` to `length`; 0 takes `length`.
            Validation always has `length`.
        test_length: the length of the test examples, such as one beyond training; 0 takes `length`.
        symbols: n, number of symbols in copying and selective, or of cups.
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
    test_length: int = 0
    symbols: int = 10
    examples: int = 10_000
    valid: int = 1000
    test: int = 5000
    batch_rows: int = 50
    seed: int = 1

    def __post_init__(self) -> None:
        check_choice("problem", self.problem, Problem)
        for name in ("symbols", "examples", "valid", "test", "batch_rows"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}: expected at least 1, got {getattr(self, name)}")
        if self.seed < 0:
            raise ConfigError(f"seed: expected at least 0, got {self.seed}")
        for name in ("shortest", "test_length", "length"):
            length = getattr(self, name)
            if (name == "length" or length) and (wrong := self._wrong(length)):
                raise ConfigError(f"{wrong.replace('length', name, 1)} ({self.problem})")
        if self.shortest > self.length:
            raise ConfigError(f"shortest: expected at most length ({self.length}), got {self.shortest}")

    def _wrong(self, length: int) -> str:
        """What is wrong with a length; empty if nothing."""
        if self.problem == "adding":
            return "" if length >= 2 else f"length: expected at least 2, got {length}"
        return PROBLEMS[self.problem].wrong((length, self.symbols))

    def has(self, split: str) -> bool:
        """True: every split is generated."""
        return True

    def find(self, split: str) -> None:
        """Nothing is read."""

    def length_of(self, split: str) -> int:
        """The length of a split's examples, the longest in training."""
        return self.test_length or self.length if split == "test" else self.length

    def batch(self, split: str, numbers: np.ndarray) -> LabelBatch:
        """The examples of a split with these numbers."""
        stream = [self.seed, STREAMS.index(split)]
        length = self.length_of(split)
        if split == "train" and self.shortest:
            chance = np.random.default_rng([*stream, int(numbers[0]), 1])
            length = int(chance.integers(self.shortest, self.length + 1))
        if self.problem == "adding":
            x, y = adding(stream, numbers, length)
        else:
            x, y = PROBLEMS[self.problem].draw(stream, numbers, (length, self.symbols))
        mask = torch.ones(x.shape[:2], dtype=torch.bool)
        return LabelBatch(torch.from_numpy(x), mask, torch.from_numpy(y), int(y.size))

    def baseline(self, split: str) -> float:
        """The score without memory: the error of always answering 1, or the accuracy of guessing."""
        if self.problem == "adding":
            return 1 / 6
        return PROBLEMS[self.problem].baseline((self.length_of(split), self.symbols))

    def describe(self, split: str) -> str:
        """The data of a split, for a title."""
        count = self.valid if split == "valid" else self.test if split == "test" else self.examples
        what = "delay" if self.problem == "copying" else "length"
        return (
            f"{self.problem}, {what} {self.length_of(split)}, {split}, {count:,} examples, seed {self.seed}"
        )


class EndlessBatches:
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
