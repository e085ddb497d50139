"""Sums over windows, from which ridge regression and the errors of any linear forecast follow.

Read next: baseline.py; stretches.py.
"""

from typing import NamedTuple

import numpy as np

from weft.data.windows import Windows

ROWS = 2048  # windows per step


class Moments(NamedTuple):
    """Sums over windows whose future has no gap; x is a window minus its last value, the level, and a one."""

    inner: np.ndarray  # [D, D] x x'
    outer: np.ndarray  # [D, H] x y'
    square: np.ndarray  # [H] y²
    windows: int

    def __add__(self, other: "Moments") -> "Moments":  # type: ignore[override]
        inner, outer, square, windows = other
        return Moments(self.inner + inner, self.outer + outer, self.square + square, self.windows + windows)

    def errors(self, weight: np.ndarray) -> np.ndarray:
        """[H] mean squared errors of y = W x."""
        total = (weight * (self.inner @ weight)).sum(0) - 2 * (weight * self.outer).sum(0) + self.square
        return np.maximum(total, 0) / max(1, self.windows)

    def ridge(self, penalty: float, kept: np.ndarray) -> np.ndarray:
        """The ridge regression on the kept [D] inputs; the constant, which is last, has no penalty."""
        if not self.windows:
            return np.zeros_like(self.outer)
        costs = np.full(len(kept), penalty)
        costs[-1] = 0.0
        inner = (self.inner + np.diag(costs))[np.ix_(kept, kept)]
        weight = np.zeros_like(self.outer)
        weight[kept] = np.linalg.solve(inner, self.outer[kept])
        return weight


def moments(windows: Windows, chosen: np.ndarray, *, level: bool = False, most: int = 0) -> Moments:
    """The sums of some windows.

    Args:
        windows: of the series.
        chosen: [N, 2] as `windows.of` gives them.
        level: whether x has the level.
        most: take every k-th window, so that there are no more than this; 0 takes all.
    """
    size, horizon = windows.lookback + 1 + level, windows.horizon
    inner, outer = np.zeros((size, size)), np.zeros((size, horizon))
    square, count = np.zeros(horizon), 0
    chosen = chosen[:: -(-len(chosen) // most) if most and len(chosen) else 1]
    for at in range(0, len(chosen), ROWS):
        past, future, _ = windows.take(chosen[at : at + ROWS])
        whole = np.isfinite(future).all(1)
        last = past[whole, -1:]
        x = np.concatenate([past[whole] - last, last[:, : int(level)], np.ones((len(last), 1))], 1)
        y = future[whole] - last
        inner, outer = inner + x.T @ x, outer + x.T @ y
        square, count = square + np.square(y).sum(0), count + len(y)
    return Moments(inner, outer, square, count)
