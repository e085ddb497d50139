"""One step of a recurrence between two products, forward and backward; one program per row of the batch.

The input is W_h h_{t-1} for the step's rows, computed by torch. The output is the state, or the gradients
that the next product needs. A step therefore takes two launches instead of ten to twenty with torch's own
operations, and layer normalisation takes none, because one program holds a whole row. Read next: layer.py.

z [T, B, G H] holds W_x x + b and is overwritten by the activations; `product` is [B, G H], states are
[T + 1, B, H]. NORMAL: the gates' products are layer-normalised (nn/cells/initial.py); `hat` [T, B, G H] and
`rate` [T, B, G] keep the normalised numbers and 1 / sqrt(variance + epsilon).
"""

import triton
import triton.language as tl


@triton.jit
def sigmoid(x):
    """1 / (1 + e^-x); no exponent is above 0, so nothing overflows."""
    e = tl.exp(-tl.abs(x))
    return tl.where(x < 0, e, 1.0) / (1.0 + e)


@triton.jit
def tangent(x):
    """tanh x; near 0 by its series, because (1 - e) / (1 + e) would cancel there."""
    size = tl.abs(x)
    e = tl.exp(-2.0 * size)
    squared = x * x
    near = size * (1.0 + squared * (-1 / 3 + squared * (2 / 15 - squared * (17 / 315))))
    y = tl.where(size < 0.02, near, (1.0 - e) / (1.0 + e))
    return tl.where(x < 0, -y, y)


@triton.jit
def activated(z, bias, NAME: tl.constexpr):
    """The activation NAME of z, as in nn/activations.py; only modrelu reads the bias."""
    if NAME == "tanh":
        y = tangent(z)
    elif NAME == "sigmoid":
        y = sigmoid(z)
    elif NAME == "relu":
        y = tl.where(z < 0, 0.0, z)  # keeps NaN
    elif NAME == "leaky_relu":
        y = tl.where(z < 0, 0.1 * z, z)
    elif NAME == "elu":
        y = tl.where(z < 0, tl.exp(tl.minimum(z, 0.0)) - 1.0, z)
    else:
        size = tl.abs(z) + bias
        y = tl.where(z < 0, -1.0, tl.where(z > 0, 1.0, z)) * tl.where(size < 0, 0.0, size)
    return y


@triton.jit
def slope(y, NAME: tl.constexpr):
    """g'(z) from y = g(z)."""
    if NAME == "tanh":
        s = 1.0 - y * y
    elif NAME == "sigmoid":
        s = y * (1.0 - y)
    elif NAME == "relu":
        s = tl.where(y > 0, 1.0, y * 0.0)
    elif NAME == "leaky_relu":
        s = tl.where(y > 0, 1.0, y * 0.0 + 0.1)
    elif NAME == "elu":
        s = tl.where(y > 0, 1.0, y + 1.0)
    else:
        s = tl.where(y != 0, 1.0, y * 0.0)
    return s


@triton.jit
def normed(z, real, H):
    """(z - mean) / sqrt(variance + 1e-5) over the real units, and `rate` = 1 / sqrt(..)."""
    centred = tl.where(real, z - tl.sum(tl.where(real, z, 0.0), 0) / H, 0.0)
    rate = 1.0 / tl.sqrt(tl.sum(centred * centred, 0) / H + 1e-5)
    return centred * rate, rate


@triton.jit
def before_norm(grad, hat, rate, H):
    """The gradient of z from that of its normalised numbers; both are 0 beyond H."""
    return rate * (grad - tl.sum(grad, 0) / H - hat * (tl.sum(grad * hat, 0) / H))


@triton.jit
def energy(
    product, hat, rate, gain, at, row, u, real, H, G: tl.constexpr, g: tl.constexpr, NORMAL: tl.constexpr
):
    """Gate g's product, layer-normalised if NORMAL; the input term is added by the caller."""
    e = tl.load(product + row * G * H + g * H + u, real, 0.0)
    if NORMAL:
        e, r = normed(e, real, H)
        tl.store(hat + at * G * H + g * H + u, e, real)
        tl.store(rate + at * G + g, r)
        e = e * tl.load(gain + g * H + u, real, 0.0)
    return e


@triton.jit
def put(
    d, through, hat, rate, gain, grad, at, u, real, H, G: tl.constexpr, g: tl.constexpr, NORMAL: tl.constexpr
):
    """Store gate g's gradient in d and, if NORMAL, the gradient before the normalisation in `through`."""
    place = at * G * H + g * H + u
    tl.store(d + place, grad, real)
    if NORMAL:
        scaled = tl.where(real, grad * tl.load(gain + g * H + u, real, 0.0), 0.0)
        scaled = before_norm(scaled, tl.load(hat + place, real, 0.0), tl.load(rate + at * G + g), H)
        tl.store(through + place, scaled, real)


@triton.jit(do_not_specialize=["t"])
def elman_forward(z, product, hs, bias, t, B, H, BLOCK: tl.constexpr, NAME: tl.constexpr):
    """h_t = g(z + W_h h_{t-1})."""
    row, u = tl.program_id(0), tl.arange(0, BLOCK)
    real, at = u < H, t.to(tl.int64) * B + row
    e = tl.load(product + row * H + u, real, 0.0) + tl.load(z + at * H + u, real, 0.0)
    b = tl.load(bias + u, real, 0.0) if NAME == "modrelu" else 0.0
    tl.store(hs + (at + B) * H + u, activated(e, b, NAME), real)


@triton.jit(do_not_specialize=["t"])
def elman_backward(hs, dy, dh, d, t, B, H, BLOCK: tl.constexpr, NAME: tl.constexpr):
    """Gradients of the pre-activations into d; dL/dh_t is the sum of dh (next step) and dy (output)."""
    row, u = tl.program_id(0), tl.arange(0, BLOCK)
    real, at = u < H, t.to(tl.int64) * B + row
    whole = tl.load(dh + row * H + u, real, 0.0) + tl.load(dy + at * H + u, real, 0.0)
    tl.store(d + at * H + u, whole * slope(tl.load(hs + (at + B) * H + u, real, 0.0), NAME), real)


@triton.jit(do_not_specialize=["t"])
def lstm_forward(
    z,
    product,
    hs,
    cs,
    peep,
    hat,
    rate,
    gain,
    hat_c,
    rate_c,
    gain_c,
    t,
    B,
    H,
    BLOCK: tl.constexpr,
    NAME: tl.constexpr,
    NORMAL: tl.constexpr,
    PEEPHOLE: tl.constexpr,
):
    """Gates i, f, candidate, o; `peep` [3, H] for i, f, o; with NORMAL c is normalised before its tanh."""
    row, u = tl.program_id(0), tl.arange(0, BLOCK)
    real, at = u < H, t.to(tl.int64) * B + row
    mine = z + at * 4 * H + u
    i = energy(product, hat, rate, gain, at, row, u, real, H, 4, 0, NORMAL) + tl.load(mine, real, 0.0)
    f = energy(product, hat, rate, gain, at, row, u, real, H, 4, 1, NORMAL) + tl.load(mine + H, real, 0.0)
    n = energy(product, hat, rate, gain, at, row, u, real, H, 4, 2, NORMAL) + tl.load(mine + 2 * H, real, 0.0)
    o = energy(product, hat, rate, gain, at, row, u, real, H, 4, 3, NORMAL) + tl.load(mine + 3 * H, real, 0.0)
    before = tl.load(cs + at * H + u, real, 0.0)
    if PEEPHOLE:
        i += tl.load(peep + u, real, 0.0) * before
        f += tl.load(peep + H + u, real, 0.0) * before
    i, f, n = sigmoid(i), sigmoid(f), activated(n, 0.0, NAME)
    c = f * before + i * n
    if PEEPHOLE:
        o += tl.load(peep + 2 * H + u, real, 0.0) * c
    o = sigmoid(o)
    tl.store(cs + (at + B) * H + u, c, real)
    if NORMAL:
        c, r = normed(c, real, H)
        tl.store(hat_c + at * H + u, c, real)
        tl.store(rate_c + at, r)
        c = c * tl.load(gain_c + u, real, 0.0)
    tl.store(hs + (at + B) * H + u, o * tangent(c), real)
    tl.store(mine, i, real)
    tl.store(mine + H, f, real)
    tl.store(mine + 2 * H, n, real)
    tl.store(mine + 3 * H, o, real)


@triton.jit(do_not_specialize=["t"])
def lstm_backward(
    z,
    cs,
    peep,
    hat,
    rate,
    gain,
    hat_c,
    rate_c,
    gain_c,
    dy,
    dh,
    dc,
    d,
    through,
    dshown,
    t,
    B,
    H,
    BLOCK: tl.constexpr,
    NAME: tl.constexpr,
    NORMAL: tl.constexpr,
    PEEPHOLE: tl.constexpr,
):
    """Gradients of the pre-activations into d; dc [B, H] of c_t is overwritten by that of c_{t-1}."""
    row, u = tl.program_id(0), tl.arange(0, BLOCK)
    real, at = u < H, t.to(tl.int64) * B + row
    mine, here = z + at * 4 * H + u, at * H + u
    i, f = tl.load(mine, real, 0.0), tl.load(mine + H, real, 0.0)
    n, o = tl.load(mine + 2 * H, real, 0.0), tl.load(mine + 3 * H, real, 0.0)
    before, shown = tl.load(cs + here, real, 0.0), tl.load(cs + here + B * H, real, 0.0)
    if NORMAL:
        normal, gain_here = tl.load(hat_c + here, real, 0.0), tl.load(gain_c + u, real, 0.0)
        shown = normal * gain_here
    shown = tangent(shown)
    whole = tl.load(dh + row * H + u, real, 0.0) + tl.load(dy + here, real, 0.0)
    do = whole * shown * o * (1.0 - o)
    by_c = whole * o * (1.0 - shown * shown)
    if NORMAL:
        tl.store(dshown + here, by_c, real)
        by_c = before_norm(by_c * gain_here, normal, tl.load(rate_c + at), H)
    by_c += tl.load(dc + row * H + u, real, 0.0)
    if PEEPHOLE:
        by_c += do * tl.load(peep + 2 * H + u, real, 0.0)
    di, df = by_c * n * i * (1.0 - i), by_c * before * f * (1.0 - f)
    back = by_c * f
    if PEEPHOLE:
        back += di * tl.load(peep + u, real, 0.0) + df * tl.load(peep + H + u, real, 0.0)
    tl.store(dc + row * H + u, back, real)
    put(d, through, hat, rate, gain, di, at, u, real, H, 4, 0, NORMAL)
    put(d, through, hat, rate, gain, df, at, u, real, H, 4, 1, NORMAL)
    put(d, through, hat, rate, gain, by_c * i * slope(n, NAME), at, u, real, H, 4, 2, NORMAL)
    put(d, through, hat, rate, gain, do, at, u, real, H, 4, 3, NORMAL)
