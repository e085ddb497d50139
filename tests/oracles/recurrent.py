"""Recurrent equations of C0 to C10, C12 and A3 in NumPy, one row at a time, as written.

A gate is (W_x, W_h, b), or (W_x, b) if the state is not multiplied by a matrix. A step returns the
output first and then the cell's state. Read next: attention.py.
"""

from collections.abc import Callable

import numpy as np

Array = np.ndarray
Gate = tuple[Array, Array, Array]  # W_x [H, D], W_h [H, H], b [H]
Plain = tuple[Array, Array]  # W_x [H, D], b [H]
Step = Callable[[Array, tuple[Array, ...]], tuple[Array, tuple[Array, ...]]]


def sigmoid(z: Array) -> Array:
    """1 / (1 + exp(-z))."""
    return 1 / (1 + np.exp(-z))


def g(name: str, *energies: Array) -> Array:
    """An activation of C0; maxout takes the maximum of its energies."""
    (z, *_) = energies
    return {
        "sigmoid": lambda: sigmoid(z),
        "tanh": lambda: np.tanh(z),
        "relu": lambda: np.maximum(0, z),
        "leaky_relu": lambda: np.where(z > 0, z, 0.1 * z),
        "elu": lambda: np.where(z > 0, z, np.exp(np.minimum(z, 0)) - 1),
        "maxout": lambda: np.maximum(*energies),
        "softmax": lambda: np.exp(z) / np.exp(z).sum(),
        "identity": lambda: z,
    }[name]()


def stepwise(u: list[Plain], v: list[Plain], g1: str, g2: str) -> Step:
    """C0: h = g1(U x + b), o = g2(V h + d)."""

    def step(x: Array, _: tuple[Array, ...]) -> tuple[Array, tuple[Array, ...]]:
        h = g(g1, *(w @ x + b for w, b in u))
        o = g(g2, *(w @ h + b for w, b in v))
        return o, (o,)

    return step


def elman(gates: list[Gate], name: str) -> Step:
    """C1 with any activation; modReLU has the bias inside."""

    def step(x: Array, state: tuple[Array, ...]) -> tuple[Array, tuple[Array, ...]]:
        if name == "modrelu":
            ((w_x, w_h, b),) = gates
            z = w_h @ state[0] + w_x @ x
            h = np.sign(z) * np.maximum(0, np.abs(z) + b)
            return h, (h,)
        h = g(name, *(w_h @ state[0] + w_x @ x + b for w_x, w_h, b in gates))
        return h, (h,)

    return step


def jordan(gates: list[Gate], v: list[Plain], g1: str, g2: str) -> Step:
    """C2: h = g1(W o + U x + b), o = g2(V h + d)."""

    def step(x: Array, state: tuple[Array, ...]) -> tuple[Array, tuple[Array, ...]]:
        h = g(g1, *(w @ state[0] + u @ x + b for u, w, b in gates))
        o = g(g2, *(w @ h + b for w, b in v))
        return o, (o,)

    return step


def normed(gain: Array, z: Array) -> Array:
    """Layer normalisation, epsilon 1e-5 added to the variance."""
    return gain * (z - z.mean()) / np.sqrt(z.var() + 1e-5)


def lstm(
    gates: dict[str, Gate],
    *,
    candidate: str = "tanh",
    full: dict[str, Array] | None = None,
    diagonal: dict[str, Array] | None = None,
    gains: dict[str, tuple[Array, Array]] | None = None,
    gain_c: Array | None = None,
) -> Step:
    """C5 and C6. A missing gate is 1; `coupled` means i = 1 - f (C7), with the gate "f" alone.

    full: W_c c_{t-1} in each named gate; diagonal: w c_{t-1} in i and f, w c_t in o.
    """

    def step(x: Array, state: tuple[Array, ...]) -> tuple[Array, tuple[Array, ...]]:
        h, before = state

        def energy(name: str, c: Array) -> Array:
            w_x, w_h, b = gates[name]
            read, kept = w_x @ x, w_h @ h
            if gains:
                read, kept = normed(gains[name][0], read), normed(gains[name][1], kept)
            z = read + kept + b
            if full and name in full:
                z = z + full[name] @ before
            if diagonal and name in diagonal:
                z = z + diagonal[name] * c
            return z

        f = sigmoid(energy("f", before)) if "f" in gates else 1.0
        i = sigmoid(energy("i", before)) if "i" in gates else (1 - f if "coupled" in gates else 1.0)
        c = f * before + i * g(candidate, energy("c", before))
        o = sigmoid(energy("o", c))
        h = o * np.tanh(c if gain_c is None else normed(gain_c, c))
        return h, (h, c)

    return step


def gru(
    gates: dict[str, Gate],
    inner_bias: Array | None,
    *,
    candidate: str = "tanh",
    gains: dict[str, tuple[Array, Array]] | None = None,
) -> Step:
    """C8: reset before the product if there is no inner bias, otherwise after it."""

    def norm(name: str, which: int, z: Array) -> Array:
        return normed(gains[name][which], z) if gains else z

    def step(x: Array, state: tuple[Array, ...]) -> tuple[Array, tuple[Array, ...]]:
        (h,) = state
        r, u = (
            sigmoid(norm(name, 0, gates[name][0] @ x) + norm(name, 1, gates[name][1] @ h) + gates[name][2])
            for name in "ru"
        )
        w_x, w_h, b = gates["n"]
        inside = norm("n", 1, w_h @ (r * h if inner_bias is None else h))
        past = inside if inner_bias is None else r * (inside + inner_bias)
        h = u * h + (1 - u) * g(candidate, norm("n", 0, w_x @ x) + b + past)
        return h, (h,)

    return step


def mingru(u: Plain, n: Plain) -> Step:
    """C10: h = u h + (1 - u) h^."""

    def step(x: Array, state: tuple[Array, ...]) -> tuple[Array, tuple[Array, ...]]:
        gate = sigmoid(u[0] @ x + u[1])
        h = gate * state[0] + (1 - gate) * (n[0] @ x + n[1])
        return h, (h,)

    return step


def minlstm(f: Plain, i: Plain, n: Plain) -> Step:
    """C10: h = (f h + i h^) / (f + i)."""

    def step(x: Array, state: tuple[Array, ...]) -> tuple[Array, tuple[Array, ...]]:
        forget, enter = sigmoid(f[0] @ x + f[1]), sigmoid(i[0] @ x + i[1])
        h = (forget * state[0] + enter * (n[0] @ x + n[1])) / (forget + enter)
        return h, (h,)

    return step


def ssru(f: Plain, w: Array) -> Step:
    """C10: c = f c + (1 - f) W x, h = relu(c)."""

    def step(x: Array, state: tuple[Array, ...]) -> tuple[Array, tuple[Array, ...]]:
        gate = sigmoid(f[0] @ x + f[1])
        c = gate * state[0] + (1 - gate) * (w @ x)
        return np.maximum(0, c), (c,)

    return step


def sru(w: Array, f: Plain, r: Plain, w_x: Array, v: Array) -> Step:
    """C10: f, r = sigmoid(W x + v c + b), c = f c + (1 - f) W x, h = r c + (1 - r) W_x x."""

    def step(x: Array, state: tuple[Array, ...]) -> tuple[Array, tuple[Array, ...]]:
        before = state[1]
        forget, keep = sigmoid(f[0] @ x + v[0] * before + f[1]), sigmoid(r[0] @ x + v[1] * before + r[1])
        c = forget * before + (1 - forget) * (w @ x)
        h = keep * c + (1 - keep) * (w_x @ x)
        return h, (h, c)

    return step


def unitary_matrix(angles: Array, mirrors: Array, permutation: Array) -> Array:
    """C9: W = D_3 R_2 F^-1 D_2 P R_1 F D_1, multiplied out."""
    size = angles.shape[1]
    d_1, d_2, d_3 = (np.diag(np.exp(1j * angle)) for angle in angles)
    row = np.arange(size)
    fourier = np.exp(-2j * np.pi * np.outer(row, row) / size) / np.sqrt(size)
    r_1, r_2 = (
        np.eye(size) - 2 * np.outer(v, v.conj()) / np.vdot(v, v).real
        for v in (real + 1j * imaginary for real, imaginary in mirrors)
    )
    return d_3 @ r_2 @ fourier.conj().T @ d_2 @ np.eye(size)[permutation] @ r_1 @ fourier @ d_1


def unitary(w: Array, u: Array, b: Array, v: Array, d: Array) -> Step:
    """C9: z = W h + U x, h = z relu(|z| + b) / |z|, y = V [Re h; Im h] + d."""

    def step(x: Array, state: tuple[Array, ...]) -> tuple[Array, tuple[Array, ...]]:
        z = w @ (state[0] + 1j * state[1]) + u @ x
        length = np.sqrt(np.abs(z) ** 2 + 1e-10)
        h = z * np.maximum(0, length + b) / length
        return v @ np.concatenate([h.real, h.imag]) + d, (h.real, h.imag)

    return step


def unroll(step: Step, xs: Array, state: tuple[Array, ...]) -> tuple[Array, tuple[Array, ...]]:
    """All outputs [T, H] and the last state."""
    ys = []
    for x in xs:
        y, state = step(x, state)
        ys.append(y)
    return np.stack(ys), state


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
        _, state = step(np.concatenate(parts), state)
        context = {"late": lambda: look(state[0]), "both": lambda: before}.get(enters)  # noqa: B023
        y = readout(state[0] if context is None else np.concatenate([state[0], context()]))
        fed = None if fed is None else y
        outputs.append(y)
    return np.stack(outputs)
