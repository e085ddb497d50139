"""Attention, its scores, its windows and positions are their equations in NumPy, and torch's."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.laws.members import READ, ROWS, SIZE, SOURCE, SOURCE_LENGTHS, TARGET, WRITE, normal, ready, source
from tests.oracles import attention as oracle
from tests.oracles.attention import array
from weft import masks, probe
from weft.errors import ConfigError
from weft.nn.attention import Attention, Heads, MultiHead
from weft.nn.decoders.window import WindowDecoder
from weft.nn.embed.tokens import Tokens
from weft.nn.embed.weighted import Weighted, idf
from weft.nn.encoders.bag import BagEncoder
from weft.nn.encoders.convolution import ConvolutionEncoder
from weft.nn.encoders.encoder import Memory
from weft.nn.encoders.ngram import NgramEncoder
from weft.nn.positions import Learned, Sinusoidal, sinusoid
from weft.nn.scores import Additive, Bilinear, Cosine, Dot, ScaledScore, Score, Uniform

OTHER = 11
SCORES: dict[str, tuple[type[Score], int]] = {
    "dot": (Dot, SIZE),
    "scaled": (ScaledScore, SIZE),
    "cosine": (Cosine, SIZE),
    "uniform": (Uniform, OTHER),
    "bilinear": (Bilinear, OTHER),
    "additive": (Additive, OTHER),
}
every_score = pytest.mark.parametrize("name", SCORES)


def equation(score: Score) -> oracle.Score:
    """The oracle with this score's weights."""
    if isinstance(score, Bilinear):
        return oracle.bilinear(array(score.weight.weight))
    if isinstance(score, Additive):
        joint = np.hstack([array(score.query.weight), array(score.key.weight)])
        return oracle.additive(array(score.weight.weight)[0], joint, array(score.query.bias))
    plain = {Dot: oracle.dot, ScaledScore: oracle.scaled, Cosine: oracle.cosine, Uniform: oracle.uniform}
    return plain[type(score)]


def memory_of(width: int) -> Memory:
    states, mask = normal(ROWS, SOURCE, width, seed=5), source()[1]
    return Memory(states, mask, masks.mean(states, mask))


@every_score
def test_a_score_is_its_equation(name: str) -> None:
    kind, width = SCORES[name]
    score = ready(lambda: kind(SIZE, width))
    q, k = normal(ROWS, TARGET, SIZE), normal(ROWS, SOURCE, width, seed=2)
    got, want = array(score(q, score.prepare(k))), equation(score)
    for row in range(ROWS):
        expected = [[want(one, other) for other in k[row].numpy()] for one in q[row].numpy()]
        np.testing.assert_allclose(got[row], expected, rtol=1e-10, atol=1e-10)


def test_a_scale_multiplies_the_cosine() -> None:
    score, q, k = Cosine(2, 2, scale=3.0), torch.tensor([[[3.0, 4.0]]]), torch.tensor([[[0.0, 2.0]]])
    assert score(q, score.prepare(k)).item() == pytest.approx(3 * 0.8)


@every_score
@pytest.mark.parametrize("projected", [False, True], ids=["states", "projected"])
def test_attention_is_its_equation_and_a_probe_sees_the_weights(name: str, projected: bool) -> None:
    kind, width = SCORES[name]
    keys, values = (width, 3) if projected else (None, None)
    attention = ready(
        lambda: Attention(kind(SIZE, width), 5 if projected else width, key_size=keys, value_size=values)
    )
    memory, q = memory_of(5 if projected else width), normal(ROWS, TARGET, SIZE)
    with probe.probe() as seen:
        got = attention(q, attention.prepare(memory))
    (weights,) = seen["attention"]
    assert attention.size == got.shape[2] == (3 if projected else width)
    for row, length in enumerate(SOURCE_LENGTHS):
        h = memory.states[row, :length].numpy()
        k = h @ array(attention.key.weight).T if projected else h
        v = h @ array(attention.value.weight).T if projected else h
        for t in range(TARGET):
            alpha, out = oracle.attention(equation(attention.score), q[row, t].numpy(), k, v)
            np.testing.assert_allclose(array(got[row, t]), out, rtol=1e-10, atol=1e-10)
            np.testing.assert_allclose(array(weights[row, t, :length]), alpha, rtol=1e-10, atol=1e-10)
            assert not weights[row, t, length:].any()


def test_a0_is_the_mean_of_all_states() -> None:
    memory = memory_of(OTHER)
    attention = Attention(Uniform(SIZE, OTHER), OTHER)
    got = attention(normal(ROWS, 1, SIZE), attention.prepare(memory))[:, 0]
    for row, length in enumerate(SOURCE_LENGTHS):
        np.testing.assert_allclose(got[row], memory.states[row, :length].numpy().mean(0), atol=1e-10)


def test_scaling_keeps_the_variance_at_one() -> None:
    # q^T k of independent features has variance d; d_k = 256, 20,000 pairs: its standard error is 1 %
    q, k = normal(200, 100, 256), normal(200, 100, 256, seed=2)
    assert Dot(256, 256)(q, k).var().item() == pytest.approx(256, rel=0.05)
    assert ScaledScore(256, 256)(q, k).var().item() == pytest.approx(1, rel=0.05)


def test_a_query_of_a_source_without_any_real_position_never_gives_nan() -> None:
    memory = memory_of(SIZE)
    memory.mask[2] = False
    attention = Attention(Dot(SIZE, SIZE), SIZE)
    assert attention(normal(ROWS, 2, SIZE), attention.prepare(memory)).isfinite().all()


def multi_head(width: int | None = None) -> MultiHead:
    return ready(lambda: MultiHead(6, 2, memory_size=width))


def with_bias(weight: Tensor, bias: Tensor) -> np.ndarray:
    return np.vstack([array(weight).T, array(bias)])


@pytest.mark.parametrize("kind", ["self", "causal", "cross"])
def test_multi_head_attention_is_its_equation(kind: str) -> None:
    module = multi_head(OTHER if kind == "cross" else None)
    x = normal(ROWS, SOURCE, 6)
    y = normal(ROWS, SOURCE, OTHER, seed=2) if kind == "cross" else x
    mask = None if kind == "causal" else source()[1][:, None, None]
    got = module(x, *module.keys_values(y), mask, causal=kind == "causal")
    w_k, w_v = module.key_value.weight.chunk(2)
    b_k, b_v = module.key_value.bias.chunk(2)
    matrices = [
        with_bias(module.query.weight, module.query.bias),
        with_bias(w_k, b_k),
        with_bias(w_v, b_v),
        with_bias(module.out.weight, module.out.bias),
    ]
    for row, length in enumerate(SOURCE_LENGTHS):
        seen = SOURCE if kind == "causal" else length
        m = oracle.causal(SOURCE, SOURCE) if kind == "causal" else 0.0
        want = oracle.multi_head(x[row].numpy(), y[row, :seen].numpy(), 2, *matrices, m)
        np.testing.assert_allclose(array(got[row]), want, rtol=1e-10, atol=1e-10)


@torch.no_grad()
def test_shared_keys_and_values_are_repeated_ones() -> None:
    """Query heads 1 to 3 share the first head of keys and values, 4 to 6 the second (Ainslie et al. 2023)."""
    shared = MultiHead(12, 6, heads=Heads(key_value=2)).double()
    whole = MultiHead(12, 6).double()
    whole.query.load_state_dict(shared.query.state_dict())
    whole.out.load_state_dict(shared.out.state_dict())
    for ours, theirs in zip(whole.key_value.parameters(), shared.key_value.parameters(), strict=True):
        each = theirs.unflatten(0, (2, 2, 2)).repeat_interleave(3, 1)  # keys and values, heads, features
        ours.copy_(each.flatten(0, 2))
    x = normal(ROWS, SOURCE, 12)
    found, expected = (one(x, *one.keys_values(x), None) for one in (shared, whole))
    torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)


@torch.no_grad()
def test_weights_are_dropped_in_training_alone() -> None:
    module, x = MultiHead(6, 2, dropout=0.5).double(), normal(ROWS, SOURCE, 6)
    plain = MultiHead(6, 2).double()
    plain.load_state_dict(module.state_dict())
    want = plain(x, *plain.keys_values(x), None)
    torch.testing.assert_close(module.eval()(x, *module.keys_values(x), None), want, rtol=1e-10, atol=1e-10)
    assert not torch.allclose(module.train()(x, *module.keys_values(x), None), want)


@pytest.mark.parametrize("width", [6, OTHER], ids=["same", "other"])
@pytest.mark.parametrize("causal", [False, True])
def test_same_numbers_as_torch_multi_head_attention(width: int, causal: bool) -> None:
    module = multi_head(width)
    theirs = nn.MultiheadAttention(6, 2, kdim=width, vdim=width, batch_first=True, dtype=torch.float64)
    w_k, w_v = module.key_value.weight.data.chunk(2)
    if width == 6:
        theirs.in_proj_weight.data = torch.cat([module.query.weight.data, w_k, w_v])
    else:
        theirs.q_proj_weight.data, theirs.k_proj_weight.data, theirs.v_proj_weight.data = (
            module.query.weight.data,
            w_k,
            w_v,
        )
    theirs.in_proj_bias.data = torch.cat([module.query.bias.data, module.key_value.bias.data])
    theirs.out_proj.load_state_dict(module.out.state_dict())
    x, y, mask = normal(ROWS, SOURCE, 6), normal(ROWS, SOURCE, width, seed=2), source()[1]
    seen = masks.causal(SOURCE, SOURCE)
    want, weights = theirs(
        x, y, y, key_padding_mask=~mask, attn_mask=~seen if causal else None, average_attn_weights=False
    )
    ours = mask[:, None, None] & seen if causal else mask[:, None, None]
    with probe.probe() as shown:
        got = module(x, *module.keys_values(y), ours)
    torch.testing.assert_close(got, want, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(shown["self_attention"][0], weights, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("causal", [False, True])
def test_what_a_probe_sees_are_the_weights_that_were_used(causal: bool) -> None:
    module, x = multi_head(), normal(ROWS, SOURCE, 6)
    keys, values = module.keys_values(x)
    with probe.probe() as seen:
        module(x, keys, values, None, causal=causal)
    (weights,) = seen["self_attention"]
    want = module.out((weights @ values).transpose(1, 2).flatten(2))
    torch.testing.assert_close(module(x, keys, values, None, causal=causal), want, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("size", [1, 4, 7, 10])
@pytest.mark.parametrize("base", [100.0, 10000.0])
def test_sinusoid_is_its_equation(size: int, base: float) -> None:
    got = sinusoid(torch.arange(1013), size, base, dtype=torch.float64)
    np.testing.assert_allclose(got, oracle.sinusoid(1013, size, base), rtol=1e-10, atol=1e-10)
    near = sinusoid(torch.arange(1013), size, base)
    assert near.dtype == torch.float32
    # an angle of 1000 carries a rounding error of 1000 x 2^-23 in float32
    np.testing.assert_allclose(near, oracle.sinusoid(1013, size, base), atol=3e-4)


def test_sinusoid_gives_the_worked_row() -> None:
    row = sinusoid(torch.tensor([3]), 4, base=100.0)[0]
    assert [round(value, 2) for value in row.tolist()] == [0.14, -0.99, 0.3, 0.96]


def test_positions_are_added() -> None:
    x = normal(ROWS, SOURCE, 6)
    at = torch.arange(3, 3 + SOURCE)
    table = oracle.sinusoid(3 + SOURCE, 6)[3:]
    np.testing.assert_allclose(Sinusoidal(6)(x, at), x.numpy() + table, rtol=1e-10, atol=1e-10)
    learned = ready(lambda: Learned(6, max_length=11))
    want = x.numpy() + array(learned.table.weight)[3 : 3 + SOURCE]
    np.testing.assert_allclose(array(learned(x, at)), want, rtol=1e-10, atol=1e-10)


def affine(layer: nn.Linear, x: np.ndarray) -> np.ndarray:
    return x @ array(layer.weight).T + (0.0 if layer.bias is None else array(layer.bias))


def window(x: np.ndarray, t: int, length: int) -> np.ndarray:
    """x_{t-n+1} .. x_t concatenated, zeros before the first."""
    return np.concatenate([x[s] if s >= 0 else np.zeros(x.shape[1]) for s in range(t - length + 1, t + 1)])


@pytest.mark.parametrize("reduce", ["mean", "sum"])
def test_a_bag_is_its_equation(reduce: str) -> None:
    encoder = ready(lambda: BagEncoder(READ, size=SIZE, reduce=reduce))
    x, mask = source()
    got = encoder(x, mask)
    for row, length in enumerate(SOURCE_LENGTHS):
        words = affine(encoder.project, x[row, :length].numpy())
        want = words.mean(0) if reduce == "mean" else words.sum(0)
        np.testing.assert_allclose(array(got.summary[row]), want, rtol=1e-10, atol=1e-10)
    order = torch.randperm(7)
    np.testing.assert_allclose(array(encoder(x[:1, order], mask[:1]).summary), array(got.summary[:1]))


def test_idf_weighs_each_word() -> None:
    embed = Tokens(5, 3)
    weights = idf(torch.tensor([7, 3, 1, 0, 2]), 7)
    np.testing.assert_allclose(weights, np.log(8 / (1 + np.array([7, 3, 1, 0, 2]))) + 1, rtol=1e-6)
    tokens = torch.tensor([[4, 0], [2, 2]])
    got = Weighted(embed, weights)(tokens)
    want = array(embed(tokens)) * weights.numpy()[tokens.numpy()][..., None]
    np.testing.assert_allclose(array(got), want, rtol=1e-6)


@pytest.mark.parametrize("length", [1, 2, 5])
@pytest.mark.parametrize("size", [None, SIZE])
def test_n_grams_are_their_equation(length: int, size: int | None) -> None:
    encoder = ready(lambda: NgramEncoder(READ, length=length, size=size))
    x, mask = source()
    got = encoder(x, mask)
    for row, real in enumerate(SOURCE_LENGTHS):
        grams = np.stack([window(x[row].numpy(), t, length) for t in range(real)])
        want = np.tanh(affine(encoder.hidden[0], grams)) if size else grams
        np.testing.assert_allclose(array(got.states[row, :real]), want, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(array(got.summary[row]), want[-1], rtol=1e-10, atol=1e-10)


def test_gated_convolutions_are_their_equation() -> None:
    encoder = ready(lambda: ConvolutionEncoder(READ, size=6, num_layers=2, kernel=5))
    x, mask = source()
    got = encoder(x, mask)
    for row, real in enumerate(SOURCE_LENGTHS):
        h = affine(encoder.project, x[row, :real].numpy()) + oracle.sinusoid(real, 6)
        for layer in encoder.layers:
            w, b = array(layer.weight), array(layer.bias)  # [2 D, D, k]
            y = np.tile(b, (real, 1))
            for t in range(real):
                for k in range(5):
                    if 0 <= t + k - 2 < real:
                        y[t] += w[:, :, k] @ h[t + k - 2]
            h = (h + y[:, :6] / (1 + np.exp(-y[:, 6:]))) * 0.5**0.5
        np.testing.assert_allclose(array(got.states[row, :real]), h, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("direct", [False, True])
@pytest.mark.parametrize("reads", ["nothing", "summary", "attention"])
def test_a_window_decoder_is_its_equation(direct: bool, reads: str) -> None:
    encoder = None if reads == "nothing" else ready(lambda: BagEncoder(READ, size=11))
    enters = "late" if reads == "attention" else "never"
    decoder = ready(lambda: WindowDecoder(WRITE, encoder, length=3, size=SIZE, enters=enters, direct=direct))
    memory = None if encoder is None else encoder(*source())
    x = normal(ROWS, TARGET, WRITE, seed=2)
    got, _ = decoder(x, decoder.start(memory, ROWS))
    for row, real in enumerate(SOURCE_LENGTHS):
        for t in range(TARGET):
            seen = window(x[row].numpy(), t, 3)
            h = affine(decoder.hidden, seen)
            if memory is not None:
                h = h + affine(decoder.given, array(memory.summary[row]))
            h = np.tanh(h)
            if reads == "attention":
                states, score = array(memory.states[row, :real]), decoder.attention.score
                joint = np.hstack([array(score.query.weight), array(score.key.weight)])
                equation = oracle.additive(array(score.weight.weight)[0], joint, array(score.query.bias))
                context = oracle.attention(equation, h, states, states)[1]
                h = np.tanh(affine(decoder.readout, np.concatenate([h, context])))
            want = np.concatenate([h, seen]) if direct else h
            np.testing.assert_allclose(array(got[row, t]), want, rtol=1e-10, atol=1e-10)


def test_windows_and_kernels_of_no_size_are_refused() -> None:
    for make in (lambda: NgramEncoder(2, length=0), lambda: WindowDecoder(2, length=0)):
        with pytest.raises(ConfigError, match="length: "):
            make()
    with pytest.raises(ConfigError, match="kernel: "):
        ConvolutionEncoder(2, kernel=4)
