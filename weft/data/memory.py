"""Generated problems that need long memory (M15): adding and copying.

Each example depends only on (seed, number), so numbers identify examples in any batch and after any resume.
Read next: ../tasks/memory/task.py.
"""

from collections.abc import Sequence

import numpy as np

SYMBOLS = 8
"""Size of the copying problem's alphabet, 0 .. 7, to which the two signs below are added."""

BLANK, GO = SYMBOLS, SYMBOLS + 1
NUM_SIGNS = SYMBOLS + 2


def adding(seed: Sequence[int], numbers: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Sequences of numbers in which two are marked, and the sum of these two.

    u_t ~ U(0, 1); one mark in the first half, one in the second. The trivial baseline predicts 1 and has a
    mean squared error of Var(u_1 + u_2) = 1/6.

    Args:
        seed: of the set.
        numbers: [B] of the examples.
        length: T, at least 2.

    Returns:
        [B, T, 2] float32, number and mark; [B] float32, the sums.

        Source: Hochreiter & Schmidhuber 1997, experiment 4, in the form of Le, Jaitly & Hinton 2015.

    Example:
        >>> x, y = adding([1], np.arange(3), 10)
        >>> bool(np.allclose((x[..., 0] * x[..., 1]).sum(1), y)), x[..., 1].sum(1).tolist()
        (True, [2.0, 2.0, 2.0])
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
        seed: of the set.
        numbers: [B] of the examples.
        delay: T, at least 1.
        symbols: n, at least 1.

    Returns:
        Inputs and outputs, both [B, T + 2n] int64.

    Source: Arjovsky, Shah & Bengio 2016, section 5.1.

    Example:
        >>> x, y = copying([1], np.arange(1), 4, 2)
        >>> bool((x[0, :2] == y[0, -2:]).all()), x[0, 2:].tolist(), y[0, :-2].tolist()
        (True, [8, 8, 8, 9, 8, 8], [8, 8, 8, 8, 8, 8])
    """
    drawn = [np.random.default_rng([*seed, int(number)]).integers(0, SYMBOLS, symbols) for number in numbers]
    x = np.full((len(numbers), delay + 2 * symbols), BLANK, np.int64)
    y = x.copy()
    if len(numbers):
        x[:, :symbols] = y[:, -symbols:] = np.stack(drawn)
    x[:, symbols + delay - 1] = GO
    return x, y
