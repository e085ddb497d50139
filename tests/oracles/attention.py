"""Equations of A0, A1, A2, A6, A7 and A10 in NumPy: one query and one key at a time, as written.

Read next: transformer.py.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray
Score = Callable[[Array, Array], float]


def array(tensor: Any) -> Array:
    """A tensor's numbers."""
    return np.asarray(tensor.detach())


def uniform(q: Array, k: Array) -> float:
    """A0: all positions have the same weight."""
    return 0.0


def dot(q: Array, k: Array) -> float:
    """A1: q^T k."""
    return float(sum(a * b for a, b in zip(q, k, strict=True)))


def scaled(q: Array, k: Array) -> float:
    """A1: q^T k / sqrt(d_k)."""
    return dot(q, k) / len(k) ** 0.5


def cosine(q: Array, k: Array) -> float:
    """A1: q^T k / (|q| |k|)."""
    return dot(q, k) / (dot(q, q) ** 0.5 * dot(k, k) ** 0.5)


def bilinear(w: Array) -> Score:
    """A1: q^T W k."""
    return lambda q, k: float(q @ w @ k)


def additive(w: Array, joint: Array, bias: Array) -> Score:
    """A1: w^T tanh(W [q; k] + b)."""
    return lambda q, k: float(w @ np.tanh(joint @ np.concatenate([q, k]) + bias))


def softmax(z: Array) -> Array:
    """exp(z_j) / sum_k exp(z_k), with exp(-inf) = 0."""
    e = np.exp(z - z.max())
    return e / e.sum()


def attention(score: Score, q: Array, keys: Array, values: Array) -> tuple[Array, Array]:
    """A2: alpha = softmax(score(q, K)), out = sum_j alpha_j v_j; both are returned."""
    alpha = softmax(np.array([score(q, k) for k in keys]))
    return alpha, sum(a * v for a, v in zip(alpha, values, strict=True))


def causal(queries: int, keys: int) -> Array:
    """A7's M: 0 where query t may attend, -inf to the right of it."""
    return np.array([[0.0 if j <= t else -np.inf for j in range(keys)] for t in range(queries)])


def multi_head(
    x: Array, y: Array, num_heads: int, w_q: Array, w_k: Array, w_v: Array, w_o: Array, m: Array | float = 0.0
) -> Array:
    """A6, A7: Concat(head_1 .. head_h) W_O, head = softmax(M + Q K^T / sqrt(d_k)) V.

    Args:
        x: [T, D], from which queries are computed; y: [S, D'], for keys and values.
        num_heads: h.
        w_q, w_k, w_v, w_o: functions x W + b, given as matrices [D + 1, ..] whose last row is the bias.
        m: [T, S] or 0.
    """
    x1, y1 = (np.hstack([z, np.ones((len(z), 1))]) for z in (x, y))
    size = w_q.shape[1] // num_heads
    heads = []
    for head in range(num_heads):
        part = slice(head * size, (head + 1) * size)
        q, k, v = x1 @ w_q[:, part], y1 @ w_k[:, part], y1 @ w_v[:, part]
        energy = m + q @ k.T / size**0.5
        heads.append(np.stack([softmax(row) for row in energy]) @ v)
    joined = np.hstack(heads)
    return np.hstack([joined, np.ones((len(x), 1))]) @ w_o


def sinusoid(length: int, d: int, n: float = 10000.0) -> Array:
    """A10: sin(pos / n^(2i/d)) at feature 2i, cos of the same at feature 2i + 1."""
    table = np.zeros((length, d))
    for pos in range(length):
        for feature in range(d):
            i = feature // 2
            wave = np.sin if feature % 2 == 0 else np.cos
            table[pos, feature] = wave(pos / n ** (2 * i / d))
    return table
