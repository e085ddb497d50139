"""Recurrent equations of C1, C5, C8, C4, C12 and A3 in NumPy, one row at a time, as written.

Weights are a pair (W_x, W_h) and a bias for each gate. Read next: attention.py.
"""

from collections.abc import Callable

import numpy as np

Array = np.ndarray
Gate = tuple[Array, Array, Array]  # W_x [H, D], W_h [H, H], b [H]
Step = Callable[[Array, tuple[Array, ...]], tuple[Array, ...]]


def sigmoid(z: Array) -> Array:
    """1 / (1 + exp(-z))."""
    return 1 / (1 + np.exp(-z))


def relu(z: Array) -> Array:
    """max(0, z)."""
    return np.maximum(z, 0)


def elman(gate: Gate, g: Callable[[Array], Array] = np.tanh) -> Step:
    """C1: h_t = g(W_hh h_{t-1} + W_xh x_t + b_h)."""
    w_x, w_h, b = gate
    return lambda x, state: (g(w_h @ state[0] + w_x @ x + b),)


def lstm(i: Gate, f: Gate, candidate: Gate, o: Gate) -> Step:
    """C5: i, f, o = sigmoid(W h + W x + b), c = f c + i c^, h = o tanh(c)."""

    def step(x: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
        h, c = state
        gate_i, gate_f, gate_o = (sigmoid(w_h @ h + w_x @ x + b) for w_x, w_h, b in (i, f, o))
        proposed = np.tanh(candidate[1] @ h + candidate[0] @ x + candidate[2])
        c = gate_f * c + gate_i * proposed
        return gate_o * np.tanh(c), c

    return step


def gru_before(r: Gate, u: Gate, candidate: Gate) -> Step:
    """C8, reset before the product (Cho 2014): h^ = tanh(W_h (r h) + W_x x + b)."""

    def step(x: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
        (h,) = state
        gate_r, gate_u = (sigmoid(w_h @ h + w_x @ x + b) for w_x, w_h, b in (r, u))
        w_x, w_h, b = candidate
        proposed = np.tanh(w_h @ (gate_r * h) + w_x @ x + b)
        return (gate_u * h + (1 - gate_u) * proposed,)

    return step


def gru_after(r: Gate, u: Gate, candidate: Gate, inner_bias: Array) -> Step:
    """C8, reset after the product (cuDNN): h^ = tanh(W_x x + b_x + r (W_h h + b_h))."""

    def step(x: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
        (h,) = state
        gate_r, gate_u = (sigmoid(w_h @ h + w_x @ x + b) for w_x, w_h, b in (r, u))
        w_x, w_h, b = candidate
        proposed = np.tanh(w_x @ x + b + gate_r * (w_h @ h + inner_bias))
        return (gate_u * h + (1 - gate_u) * proposed,)

    return step


def unroll(step: Step, xs: Array, state: tuple[Array, ...]) -> tuple[Array, tuple[Array, ...]]:
    """All h_t [T, H] and the last state."""
    hs = []
    for x in xs:
        state = step(x, state)
        hs.append(state[0])
    return np.stack(hs), state


def both_directions(
    forward: Step, backward: Step, xs: Array, zeros: tuple[Array, ...]
) -> tuple[Array, Array]:
    """C4: h_t of the forward network and of the backward one."""
    left, _ = unroll(forward, xs, zeros)
    right, _ = unroll(backward, xs[::-1], zeros)
    return left, right[::-1]


def decode(
    step: Step,
    xs: Array,
    state: tuple[Array, ...],
    look: Callable[[Array], Array],
    *,
    enters: str,
    readout: Callable[[Array], Array],
    fed: Array | None,
) -> Array:
    """A3: where attention enters a recurrent decoder; `look` returns the context of a query.

    late: query h_t, before the output; input: query h_{t-1}, into the cell; both: this context for both.
    """
    outputs = []
    for x in xs:
        before = look(state[0])
        parts = [x] + ([before] if enters in ("input", "both") else []) + ([] if fed is None else [fed])
        state = step(np.concatenate(parts), state)
        context = {"late": lambda: look(state[0]), "both": lambda: before}.get(enters)  # noqa: B023
        y = readout(state[0] if context is None else np.concatenate([state[0], context()]))
        fed = None if fed is None else y
        outputs.append(y)
    return np.stack(outputs)
