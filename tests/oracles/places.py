"""A9, A10 and sparse weights in NumPy: one position, one pair, one head at a time.

Read next: test_places.py.
"""

from collections.abc import Callable
from math import log

import numpy as np

Array = np.ndarray


def rotated(x: Array, position: int, base: float = 10000.0) -> Array:
    """Su et al. 2021, eq. 15: blocks (cos, -sin; sin, cos) of angle position * base^(-2i/d)."""
    d = len(x)
    matrix = np.zeros((d, d))
    for i in range(d // 2):
        angle = position * base ** (-2 * i / d)
        matrix[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [
            [np.cos(angle), -np.sin(angle)],
            [np.sin(angle), np.cos(angle)],
        ]
    return matrix @ x


def bucket(apart: int, *, both_ways: bool, buckets: int = 32, farthest: int = 128) -> int:
    """Raffel et al. 2020: key position minus query position to a bucket, case by case."""
    offset = 0
    if both_ways:
        buckets //= 2
        offset = buckets if apart > 0 else 0
        distance = abs(apart)
    else:
        distance = max(0, -apart)
    exact = buckets // 2
    if distance < exact:
        return offset + distance
    grown = exact + int(log(distance / exact) / log(farthest / exact) * (buckets - exact))
    return offset + min(buckets - 1, grown)


def simplex(z: Array, alpha: float) -> Array:
    """[(alpha - 1) z - tau]_+^(1 / (alpha - 1)), tau by bisection: Peters et al. 2019, algorithm 1."""
    z = (alpha - 1) * z
    low, high = z.max() - 1, z.max()
    for _ in range(200):
        tau = (low + high) / 2
        total = (np.maximum(z - tau, 0) ** (1 / (alpha - 1))).sum()
        low, high = (tau, high) if total > 1 else (low, tau)
    p = np.maximum(z - low, 0) ** (1 / (alpha - 1))
    return p / p.sum()


def non_local(x: Array, f: Callable[[Array, Array], float], g: Array, w_z: Array, exponential: bool) -> Array:
    """Wang et al. 2018, eq. 1 and 6: position by position; C is the sum of f if f is an exponential."""
    rows = []
    for here in x:
        weights = np.array([f(here, there) for there in x])
        if exponential:
            weights = np.exp(weights)
        total = weights.sum() if exponential else len(x)
        y = sum(w * (g @ there) for w, there in zip(weights, x, strict=True)) / total
        rows.append(here + w_z @ y)
    return np.stack(rows)
