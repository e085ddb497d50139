"""The cells of C13 with a diagonal recurrence, retyped from their papers in NumPy, one row at a time."""

from typing import NamedTuple

import numpy as np

from tests.oracles.matrix_cells import softplus, swish
from tests.oracles.recurrent import Array, Step, sigmoid

Map = tuple[Array, Array]


def lru(nu: Array, theta: Array, gamma: Array, b: Array, c: Array, d: Array) -> Step:
    """Orvieto 2023, equations 1 and 7: x_k = Lambda x_{k-1} + exp(gamma) B u_k, y_k = Re(C x_k) + D u_k."""
    eigenvalues = np.diag(np.exp(-np.exp(nu) + 1j * np.exp(theta)))

    def step(x: Array, state: tuple[Array, ...]) -> tuple[Array, tuple[Array, ...]]:
        h = eigenvalues @ (state[1] + 1j * state[2]) + np.exp(gamma) * (b @ x)
        y = (c @ h).real + d @ x
        return y, (y, h.real, h.imag)

    return step


def rglru(recurrence: Map, enter: Map, rate: Array, w: Array) -> Step:
    """De 2024, equations 1 to 4, with a = sigmoid(Lambda)."""
    a = sigmoid(-rate)  # our rate is minus their Lambda

    def step(x: Array, state: tuple[Array, ...]) -> tuple[Array, tuple[Array, ...]]:
        x = w @ x
        r, i = sigmoid(recurrence[0] @ x + recurrence[1]), sigmoid(enter[0] @ x + enter[1])
        a_t = a ** (8 * r)
        h = a_t * state[0] + np.sqrt(1 - a_t**2) * (i * x)
        return h, (h,)

    return step


def s4d(dt: Array, a: Array, c: Array, d: Array, w: Array, rule: str) -> Step:
    """Gu 2022, listing 1 and equation 4: one filter for each feature, A [H, N], B = 1."""
    size, states = a.shape

    def step(x: Array, state: tuple[Array, ...]) -> tuple[Array, tuple[Array, ...]]:
        u = w @ x
        y, after = np.zeros(size), np.zeros((size, states), complex)
        for feature in range(size):
            for n in range(states):
                at = a[feature, n] * dt[feature]
                if rule == "zoh":
                    kept, enters = np.exp(at), (np.exp(at) - 1) / a[feature, n]
                else:
                    kept, enters = (1 + at / 2) / (1 - at / 2), dt[feature] / (1 - at / 2)
                before = state[1][feature, n] + 1j * state[2][feature, n]
                after[feature, n] = kept * before + enters * u[feature]
                y[feature] += 2 * (c[feature, n] * after[feature, n]).real
        y += d * u
        return y, (y, after.real, after.imag)

    return step


def slstm(
    gates: list[Map],
    recurrent: list[Array],
    forget: str,
    gain: list[Array] | None = None,
    convolution: Map | None = None,
) -> Step:
    """Beck 2024, equations 8 to 14, without the stabiliser; gates in the order i, f, z, o.

    The gain of each head, if there is one, belongs to the group norm of the output, and i and f read the
    convolution, if there is one (both in figure 9).

    The state of the cell is divided by exp(m), so it is multiplied first and divided last.
    """

    def step(x: Array, state: tuple[Array, ...]) -> tuple[Array, tuple[Array, ...]]:
        h, c, n, m, *window = state
        read = x
        if convolution is not None:
            w, b = convolution
            seen = np.concatenate([window[0].reshape(len(w) - 1, -1), x[None]])
            read, window = swish((w * seen).sum(0) + b), [seen[1:].ravel()]
        pairs = zip(gates, recurrent, (read, read, x, x), strict=True)
        i, f, z, o = (w @ u + b + r @ h for (w, b), r, u in pairs)
        kept = sigmoid(f) if forget == "sigmoid" else np.exp(f)
        c = kept * c * np.exp(m) + np.exp(i) * np.tanh(z)
        n = kept * n * np.exp(m) + np.exp(i)
        h = sigmoid(o) * c / n
        m = np.maximum(np.log(kept) + m, i)  # equation 15
        after = (h, c / np.exp(m), n / np.exp(m), m, *window)
        if gain is None:
            return h, after
        heads = zip(gain, np.split(h, len(gain)), strict=True)
        return np.concatenate([g * (u - u.mean()) / np.sqrt(u.var() + 1e-5) for g, u in heads]), after

    return step


def rwkv4(maps: list[Array], mix: Array, decay: Array, bonus: Array, out: Array) -> Step:
    """Peng 2023, equations 11 to 14 and 16, as sums of exponentials; maps and mix in the order r, k, v.

    The sums are stored divided by exp(m), so they are multiplied first and divided last.
    """

    def step(x: Array, state: tuple[Array, ...]) -> tuple[Array, tuple[Array, ...]]:
        _, a, b, m, last = state
        r, k, v = (w @ ((1 - share) * x + share * last) for w, share in zip(maps, mix, strict=True))
        a, b = a * np.exp(m), b * np.exp(m)
        y = out @ (sigmoid(r) * (a + np.exp(bonus + k) * v) / (b + np.exp(bonus + k)))
        a, b = (np.exp(-np.exp(decay)) * old + np.exp(k) * new for old, new in ((a, v), (b, 1)))
        m = np.maximum(m - np.exp(decay), k)
        return y, (y, a / np.exp(m), b / np.exp(m), m, x)

    return step


class Selective(NamedTuple):
    """The weights of a Mamba layer, in the paper's names."""

    enter: Array  # [2 E, D]
    convolution: Map  # [K, E], [E]
    select: tuple[Array, Array, Array]  # of dt's rank, B and C
    step: Map
    decay: Array  # A, [E, N]
    skip: Array
    leave: Array


def mamba(given: Selective) -> Step:
    """Gu & Dao 2023, algorithm 2 and figure 3, number by number."""
    size, states = given.decay.shape

    def step(x: Array, state: tuple[Array, ...]) -> tuple[Array, tuple[Array, ...]]:
        u, z = np.split(given.enter @ x, 2)
        weight, bias = given.convolution
        seen = np.concatenate([state[2].reshape(-1, size), u[None]])
        u = (weight * seen).sum(0) + bias
        u = u * sigmoid(u)
        rank, b, c = (w @ u for w in given.select)
        dt = softplus(given.step[0] @ rank + given.step[1])
        h, s = np.zeros((states, size)), given.skip * u
        for e in range(size):
            for n in range(states):
                h[n, e] = np.exp(dt[e] * given.decay[e, n]) * state[1][n, e] + dt[e] * b[n] * u[e]
                s[e] += c[n] * h[n, e]
        y = given.leave @ (s * z * sigmoid(z))
        return y, (y, h, seen[1:].reshape(-1))

    return step
