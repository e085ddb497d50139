"""M2's sublayers in NumPy: LayerNorm, feed-forward network, pre-norm and post-norm residuals; and D2's loss.

Read next: test_transformer.py.
"""

from collections.abc import Callable
from math import erf

import numpy as np

Array = np.ndarray


def layer_norm(x: Array, gain: Array, bias: Array, epsilon: float = 1e-5) -> Array:
    """At each position: (x - mean) / sqrt(variance + epsilon) * gain + bias."""
    return (
        np.stack([(row - row.mean()) / np.sqrt(((row - row.mean()) ** 2).mean() + epsilon) for row in x])
        * gain
        + bias
    )


def relu(z: Array) -> Array:
    """max(0, z)."""
    return np.where(z > 0, z, 0.0)


def gelu(z: Array) -> Array:
    """z Phi(z), Phi the normal distribution function (Hendrycks & Gimpel 2016)."""
    return z * np.vectorize(lambda v: 0.5 * (1 + erf(v / 2**0.5)))(z)


def gelu_tanh(z: Array) -> Array:
    """GPT-2's approximation of gelu."""
    return 0.5 * z * (1 + np.tanh((2 / np.pi) ** 0.5 * (z + 0.044715 * z**3)))


def silu(z: Array) -> Array:
    """z sigmoid(z)."""
    return z / (1 + np.exp(-z))


def rms_norm(x: Array, gain: Array, epsilon: float = 1e-5) -> Array:
    """At each position: x / sqrt(mean of x^2 + epsilon) * gain (Zhang & Sennrich 2019)."""
    return np.stack([row / np.sqrt((row**2).mean() + epsilon) for row in x]) * gain


def feed_forward(x: Array, w1: Array, b1: Array, w2: Array, b2: Array, g: Callable[[Array], Array]) -> Array:
    """W_2 g(W_1 x + b_1) + b_2."""
    return np.stack([w2 @ g(w1 @ row + b1) + b2 for row in x])


def swiglu(x: Array, gate: Array, b_gate: Array, w1: Array, b1: Array, w2: Array, b2: Array) -> Array:
    """W_2 (swish(W_g x + b_g) * (W_1 x + b_1)) + b_2, swish(z) = z sigmoid(z) (Shazeer 2020)."""
    rows = []
    for row in x:
        z = gate @ row + b_gate
        rows.append(w2 @ (z / (1 + np.exp(-z)) * (w1 @ row + b1)) + b2)
    return np.stack(rows)


def geglu(x: Array, gate: Array, b_gate: Array, w1: Array, b1: Array, w2: Array, b2: Array) -> Array:
    """W_2 (gelu_tanh(W_g x + b_g) * (W_1 x + b_1)) + b_2 (Shazeer 2020)."""
    return np.stack([w2 @ (gelu_tanh(gate @ row + b_gate) * (w1 @ row + b1)) + b2 for row in x])


def residual(x: Array, norm: Callable[[Array], Array], part: Callable[[Array], Array], where: str) -> Array:
    """Before: x + f(norm(x)). After: norm(x + f(x))."""
    return x + part(norm(x)) if where == "before" else norm(x + part(x))


def smoothed_cross_entropy(logits: Array, targets: Array, smoothing: float) -> tuple[float, float]:
    """Cross-entropy with q(v) = (1 - e) [v = target] + e / V, summed over rows; and without smoothing."""
    total = plain = 0.0
    for row, target in zip(logits, targets, strict=True):
        p = np.exp(row - row.max()) / np.exp(row - row.max()).sum()
        q = np.full(len(row), smoothing / len(row))
        q[target] += 1 - smoothing
        total -= float((q * np.log(p)).sum())
        plain -= float(np.log(p[target]))
    return total, plain
