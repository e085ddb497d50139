"""Generated problems that need memory: adding, copying, recall of pairs, a state that inputs change.

Each example depends only on (seed, number), so numbers identify examples in any batch and after any resume.
Where nothing is asked the output is BLANK. Read next: task.py.
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

SYMBOLS = 8
"""Size of the copying problem's alphabet, 0 .. 7, to which the two signs below are added."""

BLANK, GO = SYMBOLS, SYMBOLS + 1
NUM_SIGNS = SYMBOLS + 2

KEYS = 64
"""Number of keys of the recall problem."""


def adding(seed: Sequence[int], numbers: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Sequences of numbers in which two are marked, and the sum of these two.

    u_t ~ U(0, 1); one mark in the first half, one in the second. The trivial baseline predicts 1 and has a
    mean squared error of Var(u_1 + u_2) = 1/6.

    Args:
        numbers: [B] of the examples.
        length: T, at least 2.

    Returns:
        [B, T, 2] float32, number and mark; [B] float32, the sums.

        Source: Hochreiter & Schmidhuber 1997, experiment 4, in the form of Le, Jaitly & Hinton 2015.
    """
    x = np.zeros((len(numbers), length, 2), np.float32)
    y = np.zeros(len(numbers), np.float32)
    for row, number in enumerate(numbers):
        chance = np.random.default_rng([*seed, int(number)])
        x[row, :, 0] = chance.random(length, np.float32)
        marks = [chance.integers(length // 2), chance.integers(length // 2, length)]
        x[row, marks, 1] = 1.0
        y[row] = x[row, marks, 0].sum()
    return x, y


def copying(
    seed: Sequence[int], numbers: np.ndarray, delay: int, symbols: int
) -> tuple[np.ndarray, np.ndarray]:
    """Symbols to be repeated after a delay.

    Input: n symbols, delay - 1 blanks, a go sign, n blanks. Output: delay + n blanks, then the symbols. The
    trivial baseline has n ln 8 / (delay + 2n) nats per position and one symbol in 8 right.

    Args:
        numbers: [B] of the examples.
        delay: T, at least 1.

    Returns:
        Inputs and outputs, both [B, T + 2n] int64.

    Source: Arjovsky, Shah & Bengio 2016, section 5.1.
    """
    drawn = [np.random.default_rng([*seed, int(number)]).integers(0, SYMBOLS, symbols) for number in numbers]
    x = np.full((len(numbers), delay + 2 * symbols), BLANK, np.int64)
    y = x.copy()
    if len(numbers):
        x[:, :symbols] = y[:, -symbols:] = np.stack(drawn)
    x[:, symbols + delay - 1] = GO
    return x, y


def selective(
    seed: Sequence[int], numbers: np.ndarray, length: int, symbols: int
) -> tuple[np.ndarray, np.ndarray]:
    """Symbols among blanks at any places, to be repeated in their order.

    Input: T steps with n symbols, a go sign, n blanks. Output: T + 1 blanks, then the symbols.

    Args:
        numbers: [B] of the examples.

    Returns:
        Inputs and outputs, both [B, T + 1 + n] int64.

    Source: Jing et al. 2019, "Gated orthogonal recurrent units", section 4.2 (denoising); Gu & Dao 2023,
        "Mamba", section 4.1.1.
    """
    x = np.full((len(numbers), length + 1 + symbols), BLANK, np.int64)
    y = x.copy()
    x[:, length] = GO
    for row, number in enumerate(numbers):
        chance = np.random.default_rng([*seed, int(number)])
        places = np.sort(chance.permutation(length)[:symbols])
        x[row, places] = y[row, -symbols:] = chance.integers(0, SYMBOLS, symbols)
    return x, y


def induction(seed: Sequence[int], numbers: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Random symbols with one go sign among them: what followed it, when it comes again?

    Args:
        numbers: [B] of the examples.
        length: T, symbols including the first go sign, at least 2.

    Returns:
        Inputs and outputs, both [B, T + 1] int64; only the last output is not blank.

    Source: Gu & Dao 2023, "Mamba", section 4.1.2.
    """
    x = np.full((len(numbers), length + 1), GO, np.int64)
    y = np.full_like(x, BLANK)
    for row, number in enumerate(numbers):
        chance = np.random.default_rng([*seed, int(number)])
        x[row, :length] = chance.integers(0, SYMBOLS, length)
        at = chance.integers(length - 1)
        x[row, at], y[row, -1] = GO, x[row, at + 1]
    return x, y


def recall(seed: Sequence[int], numbers: np.ndarray, pairs: int) -> tuple[np.ndarray, np.ndarray]:
    """Keys, each followed by its symbol; then the keys in another order, to be answered by their symbols.

    Args:
        numbers: [B] of the examples.
        pairs: P, from 1 to KEYS; the keys of an example differ.

    Returns:
        Inputs and outputs, both [B, 3 P] int64; keys are NUM_SIGNS and larger, the last P outputs are asked.

    Source: Arora et al. 2023, "Zoology" (multi-query associative recall); here every key is asked once.
    """
    x = np.full((len(numbers), 3 * pairs), BLANK, np.int64)
    y = x.copy()
    for row, number in enumerate(numbers):
        chance = np.random.default_rng([*seed, int(number)])
        keys = NUM_SIGNS + chance.permutation(KEYS)[:pairs]
        values, order = chance.integers(0, SYMBOLS, pairs), chance.permutation(pairs)
        x[row, : 2 * pairs] = np.stack([keys, values], 1).ravel()
        x[row, 2 * pairs :], y[row, 2 * pairs :] = keys[order], values[order]
    return x, y


def swaps(cups: int) -> list[tuple[int, int]]:
    """The inputs of `cups_and_ball`: no swap, written (0, 0), then every pair of cups."""
    return [(0, 0), *combinations(range(cups), 2)]


def cups_and_ball(
    seed: Sequence[int], numbers: np.ndarray, length: int, cups: int
) -> tuple[np.ndarray, np.ndarray]:
    """The place of a ball under cups that are swapped, asked after every step; it starts under cup 0.

    The swaps generate all permutations: with two cups this is the parity of the ones so far, with three the
    smallest group that does not commute, with five the smallest one that is not solvable (S_5).

    Args:
        numbers: [B] of the examples.
        length: T, at least 1.

    Returns:
        Inputs, numbers in `swaps(cups)`, and outputs, both [B, T] int64.

    Source: Merrill, Petty & Sabharwal 2024, "The illusion of state in state-space models", section 3.
    """
    pairs = np.array(swaps(cups))
    drawn = [
        np.random.default_rng([*seed, int(number)]).integers(0, len(pairs), length) for number in numbers
    ]
    x = np.stack(drawn) if drawn else np.zeros((0, length), np.int64)
    y, ball = np.empty_like(x), np.zeros(len(x), np.int64)
    for step in range(length):
        first, second = pairs[x[:, step]].T
        ball = np.where(ball == first, second, np.where(ball == second, first, ball))
        y[:, step] = ball
    return x, y
