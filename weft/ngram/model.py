"""A back-off n-gram model: tables of log-probabilities and back-off weights from any source.

    p(w | u) = the table's value, if it contains u w;  else backoff(u) p(w | u without its first token)

An n-gram's number is its row in the table of its order. Its key is (number of its first n-1 tokens) * V +
last token, so every table is one sorted array of int64, and all n-grams with the same context are adjacent.
Read next: kneser_ney.py, which estimates a model from text; arpa.py, which reads one.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from weft.errors import ShapeError

ABSENT = -1


class OrderGrams(NamedTuple):
    """The M n-grams of one order."""

    keys: np.ndarray  # [M] int64
    logp: np.ndarray  # [M] nats
    backoff: np.ndarray  # [M] nats, weight of the n-gram as a context


class NGram:
    """Log-probabilities of tokens given the tokens before them.

    The first of the tables of orders 1 to n has one row per token, in order; `start` is the token <s>, and
    `fallback` tells whether some discounts could not be estimated.
    """

    def __init__(
        self, orders: Sequence[OrderGrams], *, size: int, start: int, fallback: bool = False
    ) -> None:
        self.orders = tuple(orders)
        self.size = size
        self.start = start
        self.fallback = fallback

    @property
    def order(self) -> int:
        """n: the number of words in the longest n-gram."""
        return len(self.orders)

    def score(self, tokens: np.ndarray) -> np.ndarray:
        """log p of each token [N] given those since the last <s>: [N] nats, 0 at <s> itself."""
        tokens = np.asarray(tokens, np.int64)
        places = np.arange(len(tokens))
        since = places - np.maximum.accumulate(np.where(tokens == self.start, places, 0))
        numbers = tokens
        logp = self.orders[0].logp[tokens]
        for length, (shorter, grams) in enumerate(zip(self.orders, self.orders[1:], strict=False), 2):
            before = np.concatenate([[ABSENT], numbers[:-1]])
            context = np.where(since >= length - 1, before, ABSENT)
            keys = np.where(context == ABSENT, ABSENT, context * self.size + tokens)
            numbers = find_rows(grams.keys, keys)
            # ABSENT is -1, so it selects the appended zero.
            away = logp + np.append(shorter.backoff, 0.0)[context]
            logp = np.where(numbers == ABSENT, away, np.append(grams.logp, 0.0)[numbers])
        return np.where(tokens == self.start, 0.0, logp)

    def contexts(self, rows: np.ndarray) -> list[np.ndarray]:
        """For each context length, the number [R] of each row's context; ABSENT if unseen.

        Rows [R, T] are the preceding tokens, the most recent last; -1 for none.
        """
        found = [np.zeros(len(rows), np.int64)]
        for length in range(1, min(self.order - 1, rows.shape[1]) + 1):
            number = rows[:, -length].copy()
            real = number >= 0
            number[~real] = 0
            for step in range(1, length):
                token = rows[:, step - length]
                key = np.where(number == ABSENT, ABSENT, number * self.size + token)
                number = find_rows(self.orders[step].keys, key)
            found.append(np.where(real, number, ABSENT))
        return found

    def distribution(self, rows: np.ndarray) -> np.ndarray:
        """log p of every token after each context, [R, V] nats; rows as in `contexts`."""
        if rows.ndim != 2:
            raise ShapeError(f"contexts: expected [rows, tokens], got shape {list(rows.shape)}")
        out = np.repeat(self.orders[0].logp[None], len(rows), 0)
        for length, numbers in enumerate(self.contexts(rows)[1:], 1):
            grams = self.orders[length]
            known = numbers != ABSENT
            out[known] += self.orders[length - 1].backoff[numbers[known], None]
            begin = np.searchsorted(grams.keys, numbers * self.size)
            end = np.searchsorted(grams.keys, (numbers + 1) * self.size)
            for row in np.flatnonzero(known):
                part = slice(begin[row], end[row])
                out[row, grams.keys[part] % self.size] = grams.logp[part]
        return out


def find_rows(keys: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The rows of keys in a sorted table; ABSENT for missing keys."""
    if not len(keys):
        return np.full(wanted.shape, ABSENT)
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[places] == wanted, places, ABSENT)
