"""Law 6 for attention: scores, weights, multi-head attention, masks and positions equal NumPy's equations."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.laws.members import ROWS, SIZE, SOURCE, SOURCE_LENGTHS, TARGET, normal, ready, source
from tests.oracles import attention as oracle
from weft import masks, probe
from weft.nn.attention import Attention, Heads, MultiHead
from weft.nn.encoders.encoder import Memory
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


def numpy(tensor: Tensor) -> np.ndarray:
    return tensor.detach().numpy()


def equation(score: Score) -> oracle.Score:
    """The oracle with this score's weights."""
    if isinstance(score, Bilinear):
        return oracle.bilinear(numpy(score.weight.weight))
    if isinstance(score, Additive):
        joint = np.hstack([numpy(score.query.weight), numpy(score.key.weight)])
        return oracle.additive(numpy(score.weight.weight)[0], joint, numpy(score.query.bias))
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
    got, want = numpy(score(q, score.prepare(k))), equation(score)
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
        k = h @ numpy(attention.key.weight).T if projected else h
        v = h @ numpy(attention.value.weight).T if projected else h
        for t in range(TARGET):
            alpha, out = oracle.attention(equation(attention.score), q[row, t].numpy(), k, v)
            np.testing.assert_allclose(numpy(got[row, t]), out, rtol=1e-10, atol=1e-10)
            np.testing.assert_allclose(numpy(weights[row, t, :length]), alpha, rtol=1e-10, atol=1e-10)
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
    return np.vstack([numpy(weight).T, numpy(bias)])


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
        np.testing.assert_allclose(numpy(got[row]), want, rtol=1e-10, atol=1e-10)


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
    want = x.numpy() + numpy(learned.table.weight)[3 : 3 + SOURCE]
    np.testing.assert_allclose(numpy(learned(x, at)), want, rtol=1e-10, atol=1e-10)
