"""One step of a GRU between its products, with the reset gate after or before the product.

Gates are stacked r, u, candidate. `kept` [B, H] is the part of dL/dh_t that passes directly to h_{t-1}.
Read next: layer.py.
"""

import triton
import triton.language as tl

from weft.nn.kernels.triton.steps import activated, energy, put, sigmoid, slope


@triton.jit(do_not_specialize=["t"])
def after_forward(
    z,
    product,
    hs,
    inner,
    bias_n,
    hat,
    rate,
    gain,
    t,
    B,
    H,
    BLOCK: tl.constexpr,
    NAME: tl.constexpr,
    NORMAL: tl.constexpr,
):
    """h^ = g(z_n + r q), q = W_h h + b_h, which is stored in `inner` [T, B, H]."""
    row, u = tl.program_id(0), tl.arange(0, BLOCK)
    real, at = u < H, t.to(tl.int64) * B + row
    mine = z + at * 3 * H + u
    r = energy(product, hat, rate, gain, at, row, u, real, H, 3, 0, NORMAL) + tl.load(mine, real, 0.0)
    v = energy(product, hat, rate, gain, at, row, u, real, H, 3, 1, NORMAL) + tl.load(mine + H, real, 0.0)
    q = energy(product, hat, rate, gain, at, row, u, real, H, 3, 2, NORMAL) + tl.load(bias_n + u, real, 0.0)
    r, v = sigmoid(r), sigmoid(v)
    n = activated(tl.load(mine + 2 * H, real, 0.0) + r * q, 0.0, NAME)
    before = tl.load(hs + at * H + u, real, 0.0)
    tl.store(hs + (at + B) * H + u, v * before + (1.0 - v) * n, real)
    tl.store(inner + at * H + u, q, real)
    tl.store(mine, r, real)
    tl.store(mine + H, v, real)
    tl.store(mine + 2 * H, n, real)


@triton.jit(do_not_specialize=["t"])
def after_backward(
    z,
    hs,
    inner,
    hat,
    rate,
    gain,
    dy,
    dh,
    kept,
    d,
    through,
    t,
    B,
    H,
    BLOCK: tl.constexpr,
    NAME: tl.constexpr,
    NORMAL: tl.constexpr,
):
    """Gradients of the pre-activations into d, and of W_h h into `through` (candidate: times r)."""
    row, u = tl.program_id(0), tl.arange(0, BLOCK)
    real, at = u < H, t.to(tl.int64) * B + row
    mine, here = z + at * 3 * H + u, at * H + u
    r, v, n = tl.load(mine, real, 0.0), tl.load(mine + H, real, 0.0), tl.load(mine + 2 * H, real, 0.0)
    whole = tl.load(dh + row * H + u, real, 0.0) + tl.load(kept + row * H + u, real, 0.0)
    whole += tl.load(dy + here, real, 0.0)
    dn = whole * (1.0 - v) * slope(n, NAME)
    dv = whole * (tl.load(hs + here, real, 0.0) - n) * v * (1.0 - v)
    dr = dn * tl.load(inner + here, real, 0.0) * r * (1.0 - r)
    tl.store(kept + row * H + u, whole * v, real)
    put(d, through, hat, rate, gain, dr, at, u, real, H, 3, 0, NORMAL)
    put(d, through, hat, rate, gain, dv, at, u, real, H, 3, 1, NORMAL)
    put(d, through, hat, rate, gain, dn * r, at, u, real, H, 3, 2, NORMAL)
    tl.store(d + at * 3 * H + 2 * H + u, dn, real)
    if not NORMAL:
        tl.store(through + at * 3 * H + u, dr, real)
        tl.store(through + at * 3 * H + H + u, dv, real)
        tl.store(through + at * 3 * H + 2 * H + u, dn * r, real)


@triton.jit(do_not_specialize=["t"])
def before_gates(z, product, hs, read, hat, rate, gain, t, B, H, BLOCK: tl.constexpr, NORMAL: tl.constexpr):
    """First half of a step with the reset gate before the product: r and u, and r h for the product."""
    row, u = tl.program_id(0), tl.arange(0, BLOCK)
    real, at = u < H, t.to(tl.int64) * B + row
    mine = z + at * 3 * H + u
    r = energy(product, hat, rate, gain, at, row, u, real, H, 2, 0, NORMAL) + tl.load(mine, real, 0.0)
    v = energy(product, hat, rate, gain, at, row, u, real, H, 2, 1, NORMAL) + tl.load(mine + H, real, 0.0)
    r, v = sigmoid(r), sigmoid(v)
    tl.store(mine, r, real)
    tl.store(mine + H, v, real)
    tl.store(read + at * H + u, r * tl.load(hs + at * H + u, real, 0.0), real)


@triton.jit(do_not_specialize=["t"])
def before_state(
    z, product, hs, hat, rate, gain, t, B, H, BLOCK: tl.constexpr, NAME: tl.constexpr, NORMAL: tl.constexpr
):
    """Second half of that step: the candidate and h_t; `product` [B, H] is W_h (r h)."""
    row, u = tl.program_id(0), tl.arange(0, BLOCK)
    real, at = u < H, t.to(tl.int64) * B + row
    mine = z + at * 3 * H + u
    n = energy(product, hat, rate, gain, at, row, u, real, H, 1, 0, NORMAL)
    n = activated(n + tl.load(mine + 2 * H, real, 0.0), 0.0, NAME)
    v = tl.load(mine + H, real, 0.0)
    tl.store(mine + 2 * H, n, real)
    tl.store(hs + (at + B) * H + u, v * tl.load(hs + at * H + u, real, 0.0) + (1.0 - v) * n, real)


@triton.jit(do_not_specialize=["t"])
def before_state_backward(
    z,
    dy,
    dh,
    kept,
    dn,
    through,
    hat,
    rate,
    gain,
    t,
    B,
    H,
    BLOCK: tl.constexpr,
    NAME: tl.constexpr,
    NORMAL: tl.constexpr,
):
    """Gradient of the candidate's pre-activation into dn [T, B, H], and of h_t into `kept`."""
    row, u = tl.program_id(0), tl.arange(0, BLOCK)
    real, at = u < H, t.to(tl.int64) * B + row
    v, n = tl.load(z + at * 3 * H + H + u, real, 0.0), tl.load(z + at * 3 * H + 2 * H + u, real, 0.0)
    whole = tl.load(dh + row * H + u, real, 0.0) + tl.load(kept + row * H + u, real, 0.0)
    whole += tl.load(dy + at * H + u, real, 0.0)
    put(dn, through, hat, rate, gain, whole * (1.0 - v) * slope(n, NAME), at, u, real, H, 1, 0, NORMAL)
    tl.store(kept + row * H + u, whole, real)


@triton.jit(do_not_specialize=["t"])
def before_gates_backward(
    z, hs, product, kept, d, through, hat, rate, gain, t, B, H, BLOCK: tl.constexpr, NORMAL: tl.constexpr
):
    """Gradients of the pre-activations of r and u into d [T, B, 2 H]; `product` [B, H] is that of r h."""
    row, u = tl.program_id(0), tl.arange(0, BLOCK)
    real, at = u < H, t.to(tl.int64) * B + row
    mine = z + at * 3 * H + u
    r, v, n = tl.load(mine, real, 0.0), tl.load(mine + H, real, 0.0), tl.load(mine + 2 * H, real, 0.0)
    whole, by_read = tl.load(kept + row * H + u, real, 0.0), tl.load(product + row * H + u, real, 0.0)
    h = tl.load(hs + at * H + u, real, 0.0)
    put(d, through, hat, rate, gain, by_read * h * r * (1.0 - r), at, u, real, H, 2, 0, NORMAL)
    put(d, through, hat, rate, gain, whole * (h - n) * v * (1.0 - v), at, u, real, H, 2, 1, NORMAL)
    tl.store(kept + row * H + u, whole * v + by_read * r, real)
