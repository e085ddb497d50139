"""Law 6 for A5, A9 and A10: positions within attention, sparse weights, non-local blocks, similarity."""

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.laws.members import ROWS, SIZE, SOURCE, SOURCE_LENGTHS, close, gradcheck, normal, ready, source
from tests.oracles import attention as formulas
from tests.oracles import places as oracle
from tests.oracles.attention import array
from weft.errors import ConfigError, ShapeError
from weft.nn.attention import Attention, MultiHead, entmax15, sparsemax, weights_of
from weft.nn.distances import Alibi, Relative, Rotary, turned
from weft.nn.encoders.encoder import Memory
from weft.nn.encoders.non_local import NonLocal
from weft.nn.encoders.self_attention import SelfAttentionEncoder
from weft.nn.kernels.attention import attention, plain_attention
from weft.nn.positions import Concatenated, Sinusoidal, distance_of
from weft.nn.scores import Dot


@pytest.mark.parametrize("base", [100.0, 10000.0])
def test_rotary_is_its_equation(base: float) -> None:
    x, at = normal(ROWS, 2, SOURCE, 6), torch.tensor([0, 1, 2, 3, 11, 500, 1013])
    got = turned(x, Rotary(6, base=base)(at, at, x).turn)
    for head in range(2):
        for t, position in enumerate(at.tolist()):
            want = oracle.rotated(x[3, head, t].numpy(), position, base)
            np.testing.assert_allclose(got[3, head, t], want, rtol=1e-9, atol=1e-9)  # angles of 1,000


def test_rotary_sees_distances_alone() -> None:
    q, k, rotary = normal(1, 1, 1, 6), normal(1, 1, 1, 6, seed=2), Rotary(6)

    def energy(here: int, there: int) -> Tensor:
        return (
            turned(q, rotary(range(here, here + 1), (), q).turn)
            @ turned(k, rotary(range(there, there + 1), (), q).turn).mT
        )

    close(energy(7, 3), energy(104, 100))
    assert abs(float(energy(7, 3) - energy(7, 4))) > 1e-3


def test_rotary_needs_pairs() -> None:
    sentence = r"^rotary positions need an even number of features per head, got 3; change the"
    with pytest.raises(ShapeError, match=sentence):
        Rotary(3)


def test_alibi_is_its_equation() -> None:
    at = range(5, 12)
    got = Alibi(8)(at, range(12), normal(1, 1, 1)).bias
    for head in range(8):
        slope = 1 / 2 ** (head + 1)  # the paper's example for eight heads
        want = [[-slope * abs(t - s) for s in range(12)] for t in at]
        np.testing.assert_allclose(got[0, head], want, rtol=1e-12)
    twelve = [2**-0.5, 2**-1, 2**-1.5]
    assert Alibi(12).slopes.tolist() == pytest.approx(
        [2.0**-n for n in range(1, 9)] + [twelve[0], twelve[2], 2**-2.5, 2**-3.5]
    )


@pytest.mark.parametrize("both_ways", [True, False], ids=["encoder", "decoder"])
def test_relative_buckets_are_those_of_t5(both_ways: bool) -> None:
    relative = ready(lambda: Relative(3, both_ways=both_ways))
    keys = range(301)
    got = relative(range(150, 151), keys, normal(1, 1, 1)).bias
    for key in keys:
        bucket = oracle.bucket(key - 150, both_ways=both_ways)
        np.testing.assert_array_equal(array(got[0, :, 0, key]), array(relative.table.weight)[bucket])


def test_concatenated_positions_are_their_equation() -> None:
    module = ready(lambda: Concatenated(6, base=100.0))
    x = normal(ROWS, SOURCE, 6)
    table = np.broadcast_to(formulas.sinusoid(SOURCE, 6, 100.0), x.shape)
    want = np.concatenate([x.numpy(), table], -1) @ array(module.project.weight).T + array(
        module.project.bias
    )
    np.testing.assert_allclose(array(module(x, range(SOURCE))), want, rtol=1e-10, atol=1e-10)
    close(
        Sinusoidal(6, base=100.0)(torch.zeros(1, 4, 6, dtype=torch.float64), range(4))[0, 3, :2],
        torch.tensor([np.sin(3.0), np.cos(3.0)]),
    )


KINDS = ["rotary", "alibi", "relative"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("causal", [False, True])
def test_law_7_fused_and_formula_agree_with_positions(kind: str, causal: bool) -> None:
    torch.manual_seed(1)
    distance = distance_of(kind, 6, 4, both_ways=not causal).double()
    q, k, v = (normal(ROWS, 4, SOURCE, 6, seed=n).requires_grad_() for n in range(3))
    order = distance(range(SOURCE), range(SOURCE), q)
    mask = None if causal else source()[1][:, None, None]
    results = []
    for function in (attention, plain_attention):
        y = function(turned(q, order.turn), turned(k, order.turn), v, mask, bias=order.bias, causal=causal)
        results.append((y, *torch.autograd.grad((normal(*y.shape, seed=9) * y).sum(), (q, k, v))))
    close(*results)


@pytest.mark.parametrize("function", [attention, plain_attention], ids=["fused", "formula"])
@pytest.mark.parametrize("bias", [False, True])
def test_a_row_that_sees_nothing_never_gives_nan(function: object, bias: bool) -> None:
    q, k, v = (normal(ROWS, 2, SOURCE, 6, seed=n, dtype=torch.float32).requires_grad_() for n in range(3))
    mask = source()[1][:, None, None].clone()
    mask[2] = False
    added = normal(1, 2, SOURCE, SOURCE, dtype=torch.float32) if bias else None
    for dropout in (0.0, 0.3):
        y = function(q, k, v, mask, bias=added, dropout=dropout)
        assert y.isfinite().all()
        assert all(g.isfinite().all() for g in torch.autograd.grad(y.square().sum(), (q, k, v)))


def test_many_heads_in_training_never_give_nan_for_a_source_of_padding() -> None:
    module = MultiHead(6, 2, dropout=0.2).train()
    x, mask = normal(ROWS, SOURCE, 6, dtype=torch.float32), source()[1].clone()
    mask[2] = False
    y = module(x, *module.keys_values(x), mask[:, None, None])
    y.square().sum().backward()
    assert y.isfinite().all() and all(p.grad.isfinite().all() for p in module.parameters())


@pytest.mark.parametrize(("function", "alpha"), [(sparsemax, 2.0), (entmax15, 1.5)])
def test_sparse_weights_are_their_equation(function: object, alpha: float) -> None:
    for scale in (0.1, 1.0, 30.0):
        z = scale * normal(ROWS, SOURCE)
        got = function(z)
        for row in range(ROWS):
            np.testing.assert_allclose(got[row], oracle.simplex(z[row].numpy(), alpha), atol=1e-10)
    z = normal(ROWS, SOURCE, seed=7)
    assert torch.autograd.gradcheck(function, z.requires_grad_())
    assert (function(3 * z) == 0).any()


@pytest.mark.parametrize("kind", ["softmax", "sparsemax", "entmax"])
def test_weights_sum_to_one_over_what_is_real(kind: str) -> None:
    energy, mask = normal(ROWS, 3, SOURCE, dtype=torch.float32).requires_grad_(), source()[1].clone()
    mask[2] = False
    got = weights_of(energy, mask[:, None], kind)
    close(got.sum(-1), torch.ones(ROWS, 3), 1e-5)
    assert not got.masked_fill(mask[:, None], 0.0)[[0, 1, 3, 4]].any()
    gradient = torch.autograd.grad(got.square().sum(), energy)[0]
    assert gradient.isfinite().all() and got.isfinite().all()


def test_shared_keys_serve_as_values() -> None:
    module = ready(lambda: Attention(Dot(11, 11), SIZE, key_size=11, shared=True))
    states, mask = normal(ROWS, SOURCE, SIZE), source()[1]
    q = normal(ROWS, 2, 11, seed=2)
    got = module(q, module.prepare(Memory(states, mask, states[:, 0])))
    for row, length in enumerate(SOURCE_LENGTHS):
        k = states[row, :length].numpy() @ array(module.key.weight).T
        want = formulas.attention(formulas.dot, q[row, 1].numpy(), k, k)[1]
        np.testing.assert_allclose(array(got[row, 1]), want, rtol=1e-10, atol=1e-10)
    with pytest.raises(ConfigError, match=r"shared: .*key_size"):
        Attention(Dot(SIZE, SIZE), SIZE, shared=True)


def test_self_attention_without_parameters_is_its_equation() -> None:
    x, mask = normal(ROWS, SOURCE, SIZE), source()[1]
    encoder = SelfAttentionEncoder(SIZE)
    assert list(encoder.parameters()) == []
    memory = encoder(x, mask)
    for row, length in enumerate(SOURCE_LENGTHS):
        words = x[row, :length].numpy()
        want = np.stack([formulas.attention(formulas.dot, word, words, words)[1] for word in words])
        np.testing.assert_allclose(memory.states[row, :length], want, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(memory.summary[row], want.mean(0), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("pairwise", ["gaussian", "embedded", "dot", "concatenation"])
@pytest.mark.parametrize("scaled", [False, True])
def test_a_non_local_block_is_its_equation(pairwise: str, scaled: bool) -> None:
    block = ready(lambda: NonLocal(6, inner=5, pairwise=pairwise, scaled=scaled))
    x = 0.5 * normal(2, 3, 4, 5, 6)  # rows, time, height, width, features
    got = block(x).flatten(1, -2)
    scale = (6 if pairwise == "gaussian" else 5) ** -0.5 if scaled else 1.0

    def f(here: np.ndarray, there: np.ndarray) -> float:
        if pairwise == "gaussian":
            return scale * float(here @ there)
        theta, phi = array(block.theta.weight) @ here, array(block.phi.weight) @ there
        if pairwise == "concatenation":
            return max(0.0, float(array(block.joint) @ np.concatenate([theta, phi])))
        return float(theta @ phi) * (scale if pairwise == "embedded" else 1.0)

    g, w_z = array(block.g.weight), array(block.out.weight)
    for row in range(2):
        places = x[row].flatten(0, -2).numpy()
        want = oracle.non_local(places, f, g, w_z, pairwise in ("gaussian", "embedded"))
        np.testing.assert_allclose(array(got[row]), want, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("pairwise", ["gaussian", "embedded", "dot", "concatenation"])
def test_a_new_non_local_block_is_the_identity_and_learns(pairwise: str) -> None:
    block = NonLocal(6, pairwise=pairwise)
    x = normal(2, 3, 4, 6, dtype=torch.float32)
    assert torch.equal(block(x), x)
    block(x).square().sum().backward()
    assert block.out.weight.grad.abs().max() > 1e-3
    gradcheck(ready(lambda: NonLocal(6, pairwise=pairwise)), lambda x: block.double()(x), normal(2, 3, 6))
