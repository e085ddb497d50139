"""Generated problems that need memory: adding, copying, recall of pairs, a state that inputs change.

Each example depends only on (seed, number), so numbers identify examples in any batch and after any resume.
Where nothing is asked the output is BLANK. Read next: task.py.
"""

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np

Drawn = tuple[np.ndarray, np.ndarray]
"""Inputs and outputs, of one example or of many."""

SYMBOLS = 8
"""Size of the copying problem's alphabet, 0 .. 7, to which the two signs below are added."""

BLANK, GO = SYMBOLS, SYMBOLS + 1
NUM_SIGNS = SYMBOLS + 2

KEYS = 64
"""Number of keys of the recall problem."""


def drawn(
    make: Callable[..., Drawn], seed: Sequence[int], numbers: Sequence[int] | np.ndarray, *sizes: int
) -> Drawn:
    """The examples with these numbers, [B, T]: what `make` gives for a generator and these sizes."""
    rows = [make(np.random.default_rng([*seed, int(number)]), *sizes) for number in numbers]
    return np.stack([x for x, _ in rows]), np.stack([y for _, y in rows])


def adding(chance: np.random.Generator, length: int) -> Drawn:
    """A sequence of numbers in which two are marked, [T, 2] float32, and the sum of these two.

    u_t ~ U(0, 1); one mark in the first half, one in the second; T is at least 2. The trivial baseline
    predicts 1 and has a mean squared error of Var(u_1 + u_2) = 1/6.

    Source: Hochreiter & Schmidhuber 1997, experiment 4, in the form of Le, Jaitly & Hinton 2015.
    """
    x = np.zeros((length, 2), np.float32)
    x[:, 0] = chance.random(length, np.float32)
    marks = [chance.integers(length // 2), chance.integers(length // 2, length)]
    x[marks, 1] = 1.0
    return x, x[marks, 0].sum()


def copying(chance: np.random.Generator, delay: int, symbols: int) -> Drawn:
    """Symbols to be repeated after a delay of T, at least 1: [T + 2n] int64.

    Input: n symbols, delay - 1 blanks, a go sign, n blanks. Output: delay + n blanks, then the symbols. The
    trivial baseline has n ln 8 / (delay + 2n) nats per position and one symbol in 8 right.

    Source: Arjovsky, Shah & Bengio 2016, section 5.1.
    """
    x = np.full(delay + 2 * symbols, BLANK, np.int64)
    y = x.copy()
    x[:symbols] = y[-symbols:] = chance.integers(0, SYMBOLS, symbols)
    x[symbols + delay - 1] = GO
    return x, y


def selective(chance: np.random.Generator, length: int, symbols: int) -> Drawn:
    """Symbols among blanks at any places, to be repeated in their order: [T + 1 + n] int64.

    Input: T steps with n symbols, a go sign, n blanks. Output: T + 1 blanks, then the symbols.

    Source: Jing et al. 2019, "Gated orthogonal recurrent units", section 4.2 (denoising); Gu & Dao 2023,
        "Mamba", section 4.1.1.
    """
    x = np.full(length + 1 + symbols, BLANK, np.int64)
    y = x.copy()
    x[length] = GO
    places = np.sort(chance.permutation(length)[:symbols])
    x[places] = y[-symbols:] = chance.integers(0, SYMBOLS, symbols)
    return x, y


def induction(chance: np.random.Generator, length: int) -> Drawn:
    """Random symbols with one go sign among them: what followed it, when it comes again? [T + 1] int64.

    T, at least 2, counts the first go sign. Only the last output is not blank.

    Source: Gu & Dao 2023, "Mamba", section 4.1.2.
    """
    x = np.full(length + 1, GO, np.int64)
    y = np.full_like(x, BLANK)
    x[:length] = chance.integers(0, SYMBOLS, length)
    at = chance.integers(length - 1)
    x[at], y[-1] = GO, x[at + 1]
    return x, y


def recall(chance: np.random.Generator, pairs: int) -> Drawn:
    """Keys, each followed by its symbol; then the keys in another order, to be answered: [3 P] int64.

    The P keys of an example, at most KEYS, differ; their inputs are NUM_SIGNS and larger.

    Source: Arora et al. 2023, "Zoology" (multi-query associative recall); here every key is asked once.
    """
    keys = NUM_SIGNS + chance.permutation(KEYS)[:pairs]
    values, order = chance.integers(0, SYMBOLS, pairs), chance.permutation(pairs)
    x = np.concatenate([np.stack([keys, values], 1).ravel(), keys[order]]).astype(np.int64)
    return x, np.concatenate([np.full(2 * pairs, BLANK), values[order]]).astype(np.int64)


def swaps(cups: int) -> list[tuple[int, int]]:
    """The inputs of `cups_and_ball`: no swap, written (0, 0), then every pair of cups."""
    return [(0, 0), *combinations(range(cups), 2)]


def cups_and_ball(chance: np.random.Generator, length: int, cups: int) -> Drawn:
    """The place of a ball under cups that are swapped, asked after every step; it starts under cup 0.

    Inputs are numbers in `swaps(cups)`; both are [T] int64. The swaps generate all permutations: with two
    cups this is the parity of the ones so far, with three the smallest group that does not commute, with
    five the smallest one that is not solvable (S_5).

    Source: Merrill, Petty & Sabharwal 2024, "The illusion of state in state-space models", section 3.
    """
    pairs, ball, places = swaps(cups), 0, list[int]()
    x = chance.integers(0, len(pairs), length)
    for first, second in (pairs[one] for one in x):
        ball = second if ball == first else first if ball == second else ball
        places.append(ball)
    return x, np.array(places, np.int64)
