"""The memory problems, drawn and as text, and a recipe's section `data`: problem, length, number of examples.

Each example depends only on (seed, number), so numbers identify examples in any batch and after any resume.
The asked outputs are always the last ones; the others are BLANK. Read next: predictor.py.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
import torch

from weft.errors import ConfigError
from weft.setting_types import AtLeastOne, Whole, check_fields
from weft.tasks.labels.base import LabelBatch

Drawn = tuple[np.ndarray, np.ndarray]
"""Inputs and outputs, of one example or of many."""

SYMBOLS = 8
"""Size of the alphabet, 0 .. 7, to which the two signs below are added."""

BLANK, GO = SYMBOLS, SYMBOLS + 1
NUM_SIGNS = SYMBOLS + 2

KEYS = 64
"""Number of keys of the recall problem."""

LETTERS = "abcdefgh"
"""The symbols 0 .. 7 as text."""

NAMES = [*LETTERS, "·", "!"]
"""Signs as a person reads them; outputs have the same."""

Sizes = tuple[int, int]
"""length and symbols of the recipe."""


def drawn(
    make: Callable[..., Drawn], seed: Sequence[int], numbers: Sequence[int] | np.ndarray, *sizes: int
) -> Drawn:
    """The examples with these numbers, [B, T]: what `make` gives for a generator and these sizes."""
    rows = [make(np.random.default_rng([*seed, int(number)]), *sizes) for number in numbers]
    return np.stack([x for x, _ in rows]), np.stack([y for _, y in rows])


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
    def read(self, line: str, sizes: Sizes) -> list[Any]:
        """A line of text as inputs. Raises ValueError with what was expected."""

    def names(self, symbols: int) -> list[str]:
        """The input signs in the order of their numbers."""
        return NAMES

    def wrong(self, sizes: Sizes) -> str:
        """What is wrong with the sizes, as 'setting: expected …'; empty if nothing."""
        return "" if sizes[0] >= 1 else f"length: expected at least 1, got {sizes[0]}"


class Adding(Problem):
    """A sequence of numbers in which two are marked, and the sum of these two."""

    def draw(self, chance: np.random.Generator, length: int, symbols: int) -> Drawn:
        """Numbers and marks [T, 2] float32, u_t ~ U(0, 1); one mark in the first half, one in the second.

        The trivial baseline predicts 1 and has a mean squared error of Var(u_1 + u_2) = 1/6.

        Source: Hochreiter & Schmidhuber 1997, experiment 4, in the form of Le, Jaitly & Hinton 2015.
        """
        x = np.zeros((length, 2), np.float32)
        x[:, 0] = chance.random(length, np.float32)
        marks = [chance.integers(length // 2), chance.integers(length // 2, length)]
        x[marks, 1] = 1.0
        return x, x[marks, 0].sum()

    def asked(self, steps: int, symbols: int) -> int:
        return 1

    def example(self, sizes: Sizes) -> str:
        return "0.3 0.7* 0.1 0.9*"

    def read(self, line: str, sizes: Sizes) -> list[tuple[float, float]]:
        words = line.split()
        marks = [word.endswith("*") for word in words]
        try:
            values = [float(word.removesuffix("*")) for word in words]
        except ValueError:
            values = [np.nan]
        if sum(marks) != 2 or not all(0 <= value <= 1 for value in values):
            raise ValueError(
                "expected numbers from 0 to 1, two of them marked with a star, such as " + self.example(sizes)
            )
        return list(zip(values, map(float, marks), strict=True))

    def wrong(self, sizes: Sizes) -> str:
        return "" if sizes[0] >= 2 else f"length: expected at least 2, got {sizes[0]}"


class Copying(Problem):
    """Symbols to be repeated after a delay."""

    def draw(self, chance: np.random.Generator, length: int, symbols: int) -> Drawn:
        """After a delay of T, at least 1: [T + 2n] int64.

        Input: n symbols, T - 1 blanks, a go sign, n blanks. Output: T + n blanks, then the symbols. The
        trivial baseline has n ln 8 / (T + 2n) nats per position and one symbol in 8 right.

        Source: Arjovsky, Shah & Bengio 2016, section 5.1.
        """
        x = np.full(length + 2 * symbols, BLANK, np.int64)
        y = x.copy()
        x[:symbols] = y[-symbols:] = chance.integers(0, SYMBOLS, symbols)
        x[symbols + length - 1] = GO
        return x, y

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
    """Symbols among blanks at any places, to be repeated in their order."""

    def draw(self, chance: np.random.Generator, length: int, symbols: int) -> Drawn:
        """[T + 1 + n] int64: T steps with n symbols, a go sign, n blanks; out: T + 1 blanks, then symbols.

        Source: Jing et al. 2019, "Gated orthogonal recurrent units", section 4.2 (denoising); Gu & Dao 2023,
            "Mamba", section 4.1.1.
        """
        x = np.full(length + 1 + symbols, BLANK, np.int64)
        y = x.copy()
        x[length] = GO
        places = np.sort(chance.permutation(length)[:symbols])
        x[places] = y[-symbols:] = chance.integers(0, SYMBOLS, symbols)
        return x, y

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
    """Random symbols with one go sign among them: what followed it, when it comes again?"""

    def draw(self, chance: np.random.Generator, length: int, symbols: int) -> Drawn:
        """[T + 1] int64; T, at least 2, counts the first go sign. Only the last output is not blank.

        Source: Gu & Dao 2023, "Mamba", section 4.1.2.
        """
        x = np.full(length + 1, GO, np.int64)
        y = np.full_like(x, BLANK)
        x[:length] = chance.integers(0, SYMBOLS, length)
        at = chance.integers(length - 1)
        x[at], y[-1] = GO, x[at + 1]
        return x, y

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
    """Keys, each followed by its symbol; then the keys in another order, to be answered."""

    def draw(self, chance: np.random.Generator, length: int, symbols: int) -> Drawn:
        """[3 P] int64; the P keys of an example, at most KEYS, differ, and are NUM_SIGNS and larger.

        Source: Arora et al. 2023, "Zoology" (multi-query associative recall); here every key is asked once.
        """
        keys = NUM_SIGNS + chance.permutation(KEYS)[:length]
        values, order = chance.integers(0, SYMBOLS, length), chance.permutation(length)
        x = np.concatenate([np.stack([keys, values], 1).ravel(), keys[order]]).astype(np.int64)
        return x, np.concatenate([np.full(2 * length, BLANK), values[order]]).astype(np.int64)

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


def swaps(cups: int) -> list[tuple[int, int]]:
    """The inputs of `Cups`: no swap, written (0, 0), then every pair of cups."""
    return [(0, 0), *combinations(range(cups), 2)]


class Cups(Problem):
    """The place of a ball under cups that are swapped, asked after every step; it starts under cup 0."""

    def draw(self, chance: np.random.Generator, length: int, symbols: int) -> Drawn:
        """Inputs are numbers in `swaps`; both are [T] int64.

        The swaps generate all permutations: with two cups this is the parity of the ones so far, with three
        the smallest group that does not commute, with five the smallest one that is not solvable (S_5).

        Source: Merrill, Petty & Sabharwal 2024, "The illusion of state in state-space models", section 3.
        """
        pairs, ball, places = swaps(symbols), 0, list[int]()
        x = chance.integers(0, len(pairs), length)
        for first, second in (pairs[one] for one in x):
            ball = second if ball == first else first if ball == second else ball
            places.append(ball)
        return x, np.array(places, np.int64)

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
    "adding": Adding(),
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
            wrong = PROBLEMS[self.problem].wrong((length, self.symbols))
            if wrong and (name == "length" or length):
                raise ConfigError(f"{wrong.replace('length', name, 1)} ({self.problem})")
        if self.shortest > self.length:
            raise ConfigError(f"shortest: expected at most length ({self.length}), got {self.shortest}")

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
        return PROBLEMS[self.problem].example((self.length, self.symbols))

    def batch(self, split: str, numbers: np.ndarray) -> LabelBatch:
        """The examples of a split with these numbers."""
        stream = [self.seed, STREAMS.index(split)]
        length = self.length_of(split)
        if split == "train" and self.shortest:
            chance = np.random.default_rng([*stream, int(numbers[0]), 1])
            length = int(chance.integers(self.shortest, self.length + 1))
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
    """Unlimited training batches of so many rows: epoch e has the N examples from number e · N, each once."""

    def __init__(self, examples: int, rows: int) -> None:
        self.examples, self.rows = examples, rows

    def epoch(self, number: int) -> list[np.ndarray]:
        """Arrays of example numbers; the last one may be shorter."""
        first, end = number * self.examples, (number + 1) * self.examples
        return [np.arange(at, min(at + self.rows, end)) for at in range(first, end, self.rows)]
