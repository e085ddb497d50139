"""The cells of C13 with a matrix as state in NumPy, one row of one sequence at a time, as in the papers.

Matrices are written in the papers' own orientation where that is [V, K]; `final` gives S as Weft keeps it,
[heads, K, V]. Weights are given by name. Read next: recurrent.py.
"""

import numpy as np

from tests.oracles.recurrent import Array, sigmoid

Weights = dict[str, Array]


def swish(z: Array) -> Array:
    """z sigmoid(z)."""
    return z * sigmoid(z)


def softplus(z: Array) -> Array:
    """log(1 + exp(z))."""
    return np.log1p(np.exp(z))


def layer_norm(z: Array, epsilon: float = 1e-5) -> Array:
    """Without gain."""
    return (z - z.mean()) / np.sqrt(z.var() + epsilon)


def rms_norm(z: Array, epsilon: float = 1e-5) -> Array:
    """Without gain."""
    return z / np.sqrt((z**2).mean() + epsilon)


def parts(z: Array, *sizes: int) -> list[Array]:
    """z cut into parts of these sizes."""
    return np.split(z, np.cumsum(sizes)[:-1])


def convolved(xs: Array, w: Array, before: Array, bias: Array | float = 0.0) -> Array:
    """swish(b + sum_j w_j x_{t - width + j}), with the inputs before the first step."""
    width = len(w)
    seen = np.concatenate([before.reshape(width - 1, -1), xs])
    return np.stack([swish(bias + sum(w[j] * seen[t + j] for j in range(width))) for t in range(len(xs))])


def retention(w: Weights, xs: Array, s: Array, t: float) -> tuple[Array, Array]:
    """Sun et al. 2023, equation 6, with the rotation as complex numbers (equation 5), and equation 8."""
    heads, keys, values = s.shape
    ys = []
    for x in xs:
        t += 1
        q, k, v, g = parts(w["project"] @ x, heads * keys, heads * keys, heads * values, heads * values)
        o = np.zeros((heads, values))
        for h in range(heads):
            turn = np.exp(1j * t * 10000.0 ** (-np.arange(keys // 2) / (keys // 2)))
            q_h, k_h = (np.concatenate([_turned(part.reshape(heads, keys)[h], turn)]) for part in (q, k))
            gamma = 1 - 2.0 ** (-5 - h)
            s[h] = gamma * s[h] + np.outer(k_h / np.sqrt(keys), v.reshape(heads, values)[h])
            o[h] = layer_norm(q_h @ s[h])
        ys.append(w["out"] @ (swish(g) * (w["norm"] * o.ravel())))
    return np.stack(ys), s


def _turned(part: Array, turn: Array) -> Array:
    pairs = len(turn)
    z = (part[:pairs] + 1j * part[pairs : 2 * pairs]) * turn
    return np.concatenate([z.real, z.imag, part[2 * pairs :]])


def gla(w: Weights, xs: Array, s: Array) -> tuple[Array, Array]:
    """Yang et al. 2023: S_t = (a_t^T 1) * S_{t-1} + k_t^T v_t, a_t = sigmoid(..)^(1/16)."""
    heads, keys, values = s.shape
    ys = []
    for x in xs:
        q, k, v, low = parts(w["project"] @ x, heads * keys, heads * keys, heads * values, 16)
        a = (sigmoid(w["decay"] @ low + w["decay_bias"]) ** (1 / 16)).reshape(heads, keys)
        q, k, v = q.reshape(heads, keys) / np.sqrt(keys), k.reshape(heads, keys), v.reshape(heads, values)
        s = np.stack([np.diag(a[h]) @ s[h] + np.outer(k[h], v[h]) for h in range(heads)])
        o = np.concatenate([layer_norm(s[h].T @ q[h]) for h in range(heads)]) * w["norm"]
        ys.append(w["out"] @ (swish(w["gate"] @ x + w["gate_bias"]) * o))
    return np.stack(ys), s


def hgrn2(w: Weights, xs: Array, s: Array, lower_bound: float) -> tuple[Array, Array]:
    """Qin et al. 2024: H_t = H_{t-1} Diag(f_t) + i_t (1 - f_t)^T, y_t = H_t q_t, H [V, K]."""
    heads, keys, values = s.shape
    states, ys = s.transpose(0, 2, 1), []
    for x in xs:
        q, i = parts(w["project"] @ x, heads * keys, heads * values)
        f = lower_bound + (1 - lower_bound) * sigmoid(w["forget"] @ x + w["forget_bias"])
        q, f, i = swish(q).reshape(heads, keys), f.reshape(heads, keys), i.reshape(heads, values)
        states = np.stack([states[h] @ np.diag(f[h]) + np.outer(i[h], 1 - f[h]) for h in range(heads)])
        o = np.concatenate([w["norm"] * rms_norm(states[h] @ q[h]) for h in range(heads)])
        ys.append(w["out"] @ o)
    return np.stack(ys), states.transpose(0, 2, 1)


def mlstm(w: Weights, xs: Array, s: Array, m: Array, cap: float) -> tuple[Array, Array]:
    """Beck et al. 2024, equations 19 to 27 without a stabiliser; at the end C and n are divided by exp(m)."""
    heads, keys, columns = s.shape
    values = columns - 1
    c = np.stack([s[h, :, :values].T * np.exp(m[h]) for h in range(heads)])
    n = np.stack([s[h, :, values] * np.exp(m[h]) for h in range(heads)])
    ys = []
    for x in xs:
        q, k, v = parts(w["project"] @ x, heads * keys, heads * keys, heads * values)
        o, i, f = parts(w["gates"] @ x + w["gates_bias"], heads * values, heads, heads)
        if cap:
            i, f = cap * np.tanh(i / cap), cap * np.tanh(f / cap)
        q, k, v = q.reshape(heads, keys), k.reshape(heads, keys) / np.sqrt(keys), v.reshape(heads, values)
        i_gate, f_gate = np.exp(i), sigmoid(f)
        hidden = []
        for h in range(heads):
            c[h] = f_gate[h] * c[h] + i_gate[h] * np.outer(v[h], k[h])
            n[h] = f_gate[h] * n[h] + i_gate[h] * k[h]
            m[h] = max(np.log(f_gate[h]) + m[h], i[h])
            floor = 1 + 1e-6 * np.exp(m[h])  # the code's epsilon is added after the division by exp(m)
            over = max(abs(n[h] @ q[h]), 1.0) + floor - 1
            hidden.append(layer_norm(c[h] @ q[h] / over))
        ys.append(w["out"] @ (sigmoid(o) * np.concatenate(hidden) * w["norm"]))
    last = [np.concatenate([c[h].T, n[h][:, None]], 1) / np.exp(m[h]) for h in range(heads)]
    return np.stack(ys), np.stack(last)


def delta(w: Weights, xs: Array, s: Array, before: Array | None, most: float = 1.0) -> tuple[Array, Array]:
    """Schlag et al. 2021, section 4.2, as old value, new value, difference: W = W + b (v - v_old) k^T."""
    heads, keys, values = s.shape
    sizes = heads * keys, heads * keys, heads * values
    mixed = xs @ w["project"].T
    qkv = swish(mixed[:, :-heads])
    if before is not None:
        qkv = convolved(mixed[:, :-heads], w["short"], before)
    ys, states = [], s.transpose(0, 2, 1).copy()
    for t in range(len(xs)):
        q, k, v = (part.reshape(heads, -1) for part in parts(qkv[t], *sizes))
        b = most * sigmoid(mixed[t, -heads:])
        o = []
        for h in range(heads):
            k_h, q_h = unit(k[h]), unit(q[h]) / np.sqrt(keys)
            old = states[h] @ k_h
            states[h] = states[h] + np.outer(b[h] * (v[h] - old), k_h)
            o.append(w["norm"] * rms_norm(states[h] @ q_h))
        ys.append(w["out"] @ np.concatenate(o))
    return np.stack(ys), states.transpose(0, 2, 1)


def unit(z: Array) -> Array:
    """z / |z| with the code's 1e-6."""
    return z / np.sqrt(z @ z + 1e-6)


def gated_delta(w: Weights, xs: Array, s: Array, before: Array, most: float = 1.0) -> tuple[Array, Array]:
    """Yang et al. 2024, equation 10: S_t = S_{t-1} (a_t (I - b_t k_t k_t^T)) + b_t v_t k_t^T, S [V, K]."""
    heads, keys, values = s.shape
    sizes = heads * keys, heads * keys, heads * values
    mixed = xs @ w["project"].T
    qkv = convolved(mixed[:, : sum(sizes)], w["short"], before)
    ys, states = [], s.transpose(0, 2, 1).copy()
    for t in range(len(xs)):
        q, k, v = (part.reshape(heads, -1) for part in parts(qkv[t], *sizes))
        z, b, a = parts(mixed[t, sum(sizes) :], heads * values, heads, heads)
        alpha = np.exp(-np.exp(w["log_rate"]) * softplus(a + w["bias"]))
        o = []
        for h in range(heads):
            k_h, q_h, rate = unit(k[h]), unit(q[h]) / np.sqrt(keys), most * sigmoid(b[h])
            erased = alpha[h] * (np.eye(keys) - rate * np.outer(k_h, k_h))
            states[h] = states[h] @ erased + rate * np.outer(v[h], k_h)
            o.append(w["norm"] * rms_norm(states[h] @ q_h, 1e-6))
        ys.append(w["out"] @ (np.concatenate(o) * swish(z)))
    return np.stack(ys), states.transpose(0, 2, 1)


def ssd(w: Weights, xs: Array, s: Array, before: Array) -> tuple[Array, Array]:
    """Dao & Gu 2024: h_t = exp(-A d_t) h_{t-1} + d_t B_t x_t, y_t = C_t^T h_t + D x_t, for each head."""
    heads, keys, values = s.shape
    inner = heads * values
    mixed = xs @ w["project"].T
    xbc = convolved(mixed[:, inner : 2 * inner + 2 * keys], w["short"], before, w["short_bias"])
    ys = []
    for t in range(len(xs)):
        u, b, c = parts(xbc[t], inner, keys, keys)
        step = softplus(mixed[t, -heads:] + w["bias"])
        o = []
        for h in range(heads):
            u_h = u.reshape(heads, values)[h]
            s[h] = np.exp(-np.exp(w["log_rate"][h]) * step[h]) * s[h] + step[h] * np.outer(b, u_h)
            o.append(c @ s[h] + w["skip"][h] * u_h)
        ys.append(w["out"] @ (w["norm"] * rms_norm(np.concatenate(o) * swish(mixed[t, :inner]))))
    return np.stack(ys), s


def rwkv7(
    w: Weights, xs: Array, s: Array, last: Array, firsts: Array | None = None, epsilon: float = 1e-5
) -> tuple[Array, Array]:
    """Peng et al. 2025: wkv_t = wkv_{t-1} (diag(w) - c^T (a * c)) + v^T k, wkv [V, K], rows as vectors.

    With the first layer's values, v = lerp(v, first, sigmoid(N_2 N_1 x_v + b)), as in flash-linear-attention.
    """
    heads, keys, values = s.shape
    states, ys = s.transpose(0, 2, 1).copy(), []
    for t, x in enumerate(xs):
        mixed = {name: x + (last - x) * w["mix"][n] for n, name in enumerate("rkvdag")}
        last = x
        r, k, v = (w[name] @ mixed[name] for name in "rkv")
        if firsts is not None:
            share = sigmoid(w["share"] @ (w["narrow"] @ mixed["v"]) + w["share_bias"])
            v = (1 - share) * v + share * firsts[t]
        d = w["decay"] @ np.tanh(w["d"] @ mixed["d"]) + w["decay_bias"]
        decay = np.exp(-np.exp(-0.5) * sigmoid(d))
        a = sigmoid(w["rate"] @ (w["a"] @ mixed["a"]) + w["rate_bias"])
        g = w["gate"] @ sigmoid(w["g"] @ mixed["g"])
        c = (k * w["remove"]).reshape(heads, keys)
        k = k * (1 + (a - 1) * w["replace"])
        r, k, a, decay = (part.reshape(heads, keys) for part in (r, k, a, decay))
        v = v.reshape(heads, values)
        o = []
        for h in range(heads):
            c_h = c[h] / np.linalg.norm(c[h])
            states[h] = states[h] @ (np.diag(decay[h]) - np.outer(c_h, a[h] * c_h)) + np.outer(v[h], k[h])
            o.append(layer_norm(states[h] @ r[h], epsilon))
        bonus = np.concatenate([(r[h] @ (w["bonus"][h] * k[h])) * v[h] for h in range(heads)])
        ys.append(w["out"] @ (g * (np.concatenate(o) * w["norm"] + w["norm_bias"] + bonus)))
    return np.stack(ys), states.transpose(0, 2, 1)


Layer = tuple[Weights, Weights, Array, Array, Array]
"""Time mixing and the rest of a layer, and its state: the matrices, and the last inputs of both parts."""


def rwkv7_layers(w: Weights, layers: list[Layer], xs: Array) -> tuple[Array, list[Array]]:
    """Peng et al. 2025, figure 1, with the first layer's values in all others; the matrices at the end."""
    xs, firsts, matrices = _normed(xs @ w["entry"].T, w, "first_norm"), None, []
    for mixing, rest, s, last, before in layers:
        us = _normed(xs, rest, "cell_norm")
        ys, matrix = rwkv7(mixing, us, s, last, firsts, 64e-5)
        if firsts is None:
            firsts = _shifted(us, last, mixing["mix"][2]) @ mixing["v"].T
        zs = xs + ys
        ks = _shifted(_normed(zs, rest, "network_norm"), before, rest["mix"]) @ rest["enter"].T
        xs = zs + np.maximum(ks, 0) ** 2 @ rest["leave"].T
        matrices.append(matrix)
    return _normed(xs, w, "last_norm"), matrices


def _shifted(us: Array, before: Array, mix: Array) -> Array:
    return us + (np.concatenate([before[None], us[:-1]]) - us) * mix


def _normed(xs: Array, w: Weights, name: str) -> Array:
    return np.stack([layer_norm(x) for x in xs]) * w[name] + w[f"{name}_bias"]
