"""The memory problems as text, and a recipe's section `data`: problem, length, number of examples.

The asked outputs are always the last ones. Read next: ../../tasks/memory/problems.py; predictor.py.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from weft.errors import ConfigError
from weft.setting_types import AtLeastOne, Whole, check_fields
from weft.tasks.labels.base import LabelBatch
from weft.tasks.memory.problems import (
    BLANK,
    GO,
    KEYS,
    NUM_SIGNS,
    SYMBOLS,
    Drawn,
    adding,
    copying,
    cups_and_ball,
    drawn,
    induction,
    recall,
    selective,
    swaps,
)

LETTERS = "abcdefgh"
"""The symbols 0 .. 7 as text."""

NAMES = [*LETTERS, "·", "!"]
"""Signs as a person reads them; outputs have the same."""

Sizes = tuple[int, int]
"""length and symbols of the recipe."""


class Problem(ABC):
    """One of the problems; `sizes` are the recipe's `length` and `symbols`."""

    @abstractmethod
    def draw(self, chance: np.random.Generator, length: int, symbols: int) -> Drawn:
        """Inputs and outputs [T] of an example."""

    @abstractmethod
    def asked(self, steps: int, symbols: int) -> int:
        """How many of the last outputs are asked of an input with this many steps."""

    @abstractmethod
    def example(self, sizes: Sizes) -> str:
        """A line that `read` takes."""

    @abstractmethod
    def read(self, line: str, sizes: Sizes) -> list[int]:
        """A line of text as inputs. Raises ValueError with what was expected."""

    def names(self, symbols: int) -> list[str]:
        """The input signs in the order of their numbers."""
        return NAMES

    def wrong(self, sizes: Sizes) -> str:
        """What is wrong with the sizes, as 'setting: expected …'; empty if nothing."""
        return "" if sizes[0] >= 1 else f"length: expected at least 1, got {sizes[0]}"


class Copying(Problem):
    """Symbols after a delay."""

    def draw(self, chance: np.random.Generator, length: int, symbols: int) -> Drawn:
        return copying(chance, length, symbols)

    def asked(self, steps: int, symbols: int) -> int:
        return symbols

    def example(self, sizes: Sizes) -> str:
        return (LETTERS * sizes[1])[: sizes[1]]

    def read(self, line: str, sizes: Sizes) -> list[int]:
        length, symbols = sizes
        letters = line.rstrip(".")  # a dot for each blank, if the delay shall be another
        blanks = len(line) - len(letters) or length - 1
        if len(letters) != symbols or not set(letters) <= set(LETTERS):
            raise ValueError(f"expected {symbols} letters from a to h, such as {self.example(sizes)}")
        return [*map(LETTERS.index, letters), *[BLANK] * blanks, GO, *[BLANK] * symbols]


class SelectiveCopying(Copying):
    """Symbols among blanks."""

    def draw(self, chance: np.random.Generator, length: int, symbols: int) -> Drawn:
        return selective(chance, length, symbols)

    def example(self, sizes: Sizes) -> str:
        return ".".join((LETTERS * sizes[1])[: sizes[1]])

    def read(self, line: str, sizes: Sizes) -> list[int]:
        symbols = sizes[1]
        if not set(line) <= {*LETTERS, "."} or len(line) - line.count(".") != symbols:
            shown = self.example(sizes)
            raise ValueError(f"expected {symbols} letters from a to h and dots, such as {shown}")
        return [*(BLANK if one == "." else LETTERS.index(one) for one in line), GO, *[BLANK] * symbols]

    def wrong(self, sizes: Sizes) -> str:
        length, symbols = sizes
        return "" if length >= symbols else f"length: expected at least symbols ({symbols}), got {length}"


class Induction(Problem):
    """What followed the go sign."""

    def draw(self, chance: np.random.Generator, length: int, symbols: int) -> Drawn:
        return induction(chance, length)

    def asked(self, steps: int, symbols: int) -> int:
        return 1

    def example(self, sizes: Sizes) -> str:
        return "ab!cdb"

    def read(self, line: str, sizes: Sizes) -> list[int]:
        if not set(line) <= {*LETTERS, "!"} or line.count("!") != 1 or line.endswith("!"):
            raise ValueError(
                "expected letters from a to h with one ! before one of them, such as " + self.example(sizes)
            )
        return [GO if one == "!" else LETTERS.index(one) for one in f"{line}!"]

    def wrong(self, sizes: Sizes) -> str:
        return "" if sizes[0] >= 2 else f"length: expected at least 2, got {sizes[0]}"


class Recall(Problem):
    """The symbols of keys."""

    def draw(self, chance: np.random.Generator, length: int, symbols: int) -> Drawn:
        return recall(chance, length)

    def asked(self, steps: int, symbols: int) -> int:
        return steps // 3

    def example(self, sizes: Sizes) -> str:
        return "3a 17c ? 17 3"

    def read(self, line: str, sizes: Sizes) -> list[int]:
        told, _, asked = line.partition("?")
        pairs = told.split()
        known = {one[:-1]: one[-1:] for one in pairs}
        keys = {str(key): NUM_SIGNS + key for key in range(KEYS)}
        if not (
            set(known) <= set(keys)
            and set(known.values()) <= set(LETTERS)
            and sorted(asked.split()) == sorted(one[:-1] for one in pairs) == sorted(known) != []
        ):
            raise ValueError(
                f"expected keys from 0 to {KEYS - 1} with letters from a to h, then the same keys in any "
                f"order, such as {self.example(sizes)}"
            )
        signs = [sign for one in pairs for sign in (keys[one[:-1]], LETTERS.index(one[-1]))]
        return signs + [keys[one] for one in asked.split()]

    def names(self, symbols: int) -> list[str]:
        return [*NAMES, *map(str, range(KEYS))]

    def wrong(self, sizes: Sizes) -> str:
        return "" if 1 <= sizes[0] <= KEYS else f"length: expected 1 to {KEYS} pairs, got {sizes[0]}"


class Cups(Problem):
    """The place of a ball; with two cups, parity."""

    def draw(self, chance: np.random.Generator, length: int, symbols: int) -> Drawn:
        return cups_and_ball(chance, length, symbols)

    def asked(self, steps: int, symbols: int) -> int:
        return steps

    def example(self, sizes: Sizes) -> str:
        return "- ab"

    def read(self, line: str, sizes: Sizes) -> list[int]:
        names = self.names(sizes[1])
        words = ["".join(sorted(word)) for word in line.split()]
        if not words or not set(words) <= set(names):
            raise ValueError(
                f"expected the two cups of each swap, or - for none: {', '.join(names[:4])}, such as - ab"
            )
        return [names.index(word) for word in words]

    def names(self, symbols: int) -> list[str]:
        return ["-", *(LETTERS[one] + LETTERS[other] for one, other in swaps(symbols)[1:])]

    def wrong(self, sizes: Sizes) -> str:
        if not 2 <= sizes[1] <= SYMBOLS:
            return f"symbols: expected 2 to {SYMBOLS} cups, got {sizes[1]}"
        return super().wrong(sizes)


PROBLEMS: dict[str, Problem] = {
    "copying": Copying(),
    "selective": SelectiveCopying(),
    "induction": Induction(),
    "recall": Recall(),
    "cups": Cups(),
}


ProblemName = Literal["adding", "copying", "selective", "induction", "recall", "cups"]
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
    """

    problem: ProblemName = "adding"
    length: int = 200
    shortest: int = 0
    test_length: int = 0
    symbols: AtLeastOne = 10
    examples: AtLeastOne = 10_000
    valid: AtLeastOne = 1000
    test: AtLeastOne = 5000
    batch_rows: AtLeastOne = 50
    seed: Whole = 1

    def __post_init__(self) -> None:
        check_fields(self)
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

    def example(self) -> str:
        """A line that `weft predict` answers."""
        if self.problem == "adding":
            return "0.3 0.7* 0.1 0.9*"
        return PROBLEMS[self.problem].example((self.length, self.symbols))

    def batch(self, split: str, numbers: np.ndarray) -> LabelBatch:
        """The examples of a split with these numbers."""
        stream = [self.seed, STREAMS.index(split)]
        length = self.length_of(split)
        if split == "train" and self.shortest:
            chance = np.random.default_rng([*stream, int(numbers[0]), 1])
            length = int(chance.integers(self.shortest, self.length + 1))
        if self.problem == "adding":
            x, y = drawn(adding, stream, numbers, length)
        else:
            x, y = drawn(PROBLEMS[self.problem].draw, stream, numbers, length, self.symbols)
        mask = torch.ones(x.shape[:2], dtype=torch.bool)
        return LabelBatch(torch.from_numpy(x), mask, torch.from_numpy(y), int(y.size))

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
        rows: examples per batch.
    """

    def __init__(self, examples: int, rows: int) -> None:
        self.examples, self.rows = examples, rows

    def epoch(self, number: int) -> list[np.ndarray]:
        """Arrays of example numbers; the last one may be shorter."""
        first, end = number * self.examples, (number + 1) * self.examples
        return [np.arange(at, min(at + self.rows, end)) for at in range(first, end, self.rows)]
