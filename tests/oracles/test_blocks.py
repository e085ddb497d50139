"""The block around a cell, the short convolution and local attention against plain NumPy."""

import re

import numpy as np
import pytest
import torch

from tests.laws.members import READ, ROWS, SIZE, SOURCE, SOURCE_LENGTHS, normal, ready, source
from tests.oracles.attention import array
from tests.oracles.recurrent import Array, sigmoid
from weft import rooms, tree
from weft.config import build, parse
from weft.errors import ConfigError
from weft.nn import cells
from weft.nn.cells.block import Block
from weft.nn.cells.cell import Cell
from weft.nn.cells.convolution import ShortConvolution
from weft.nn.cells.elman import Elman
from weft.nn.cells.gru import GRU
from weft.nn.cells.local_attention import LocalAttention
from weft.nn.cells.mamba import Mamba
from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.encoders.encoder import Encoder
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.recurrent import Stack


def rms(x: Array, gain: Array) -> Array:
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * gain


def gelu(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def convolved(of: ShortConvolution, x: Array) -> Array:
    """[T, D], with zeros before the first."""
    weight, y = array(of.weight), np.zeros_like(x)
    for t in range(len(x)):
        for back in range(min(t + 1, len(weight))):
            y[t] += weight[len(weight) - 1 - back] * x[t - back]
    return y + array(of.bias)


def elman(of: Elman, x: Array) -> Array:
    h, ys = np.zeros(of.size), []
    for u in x:
        h = np.tanh(array(of.weight_x) @ u + array(of.weight_h) @ h + array(of.bias))
        ys.append(h)
    return np.stack(ys)


@pytest.mark.parametrize("gate", ["none", "input", "output"])
@pytest.mark.parametrize("convolution", [0, 4])
@pytest.mark.parametrize("network", [0, 5])
def test_a_block_is_its_equation(gate: str, convolution: int, network: int) -> None:
    inner = SIZE if gate == "none" else 7
    block = ready(
        lambda: Block(
            READ, SIZE, cell=Elman, inner=inner, convolution=convolution, gate=gate, network=network
        )
    )
    x, mask = source()
    y, _ = block(x, block.start(x), mask)
    for row, length in enumerate(SOURCE_LENGTHS):
        z = x[row, :length].numpy() @ array(block.entry.weight).T
        u = rms(z, array(block.norm.weight))
        if gate == "input":
            u, w = np.split(u @ array(block.enter.weight).T + array(block.enter.bias), 2, -1)
        u = elman(block.cell, convolved(block.convolution, u) if convolution else u)
        if gate == "input":
            u = (u * gelu(w)) @ array(block.leave.weight).T + array(block.leave.bias)
        elif gate == "output":
            u = gelu(u) @ array(block.leave.weight).T + array(block.leave.bias)
            u = u[:, :SIZE] * sigmoid(u[:, SIZE:])
        z = z + u
        if network:
            f = block.network
            v = rms(z, array(block.network_norm.weight)) @ array(f.first.weight).T + array(f.first.bias)
            v = gelu(v[:, :network]) * v[:, network:]
            z = z + v @ array(f.second.weight).T + array(f.second.bias)
        np.testing.assert_allclose(array(y[row, :length]), z, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("heads", "groups", "rotary"), [(1, 1, 4), (4, 2, 2), (6, 1, 4)])
def test_local_attention_is_attention_to_the_last_positions(heads: int, groups: int, rotary: int) -> None:
    cell = ready(
        lambda: LocalAttention(
            READ, SIZE, num_heads=heads, key_value_heads=groups, head_size=4, window=3, rotary=rotary
        )
    )
    x, mask = source()
    y, _ = cell(x, cell.start(x), mask)
    for row, length in enumerate(SOURCE_LENGTHS):
        u = x[row, :length].numpy()
        q = (u @ array(cell.query.weight).T).reshape(length, heads, 4)
        k, v = ((u @ w.T).reshape(length, groups, 4) for w in np.split(array(cell.key_value.weight), 2))
        for t in range(length):
            outs = []
            for head in range(heads):
                own = head // (heads // groups)
                seen = range(max(0, t - 2), t + 1)
                energy = [turn(q[t, head], t, rotary) @ turn(k[s, own], s, rotary) / 2 for s in seen]
                weight = np.exp(energy - np.max(energy))
                outs.append(sum(w * v[s, own] for w, s in zip(weight / weight.sum(), seen, strict=True)))
            want = array(cell.out.weight) @ np.concatenate(outs) + array(cell.out.bias)
            np.testing.assert_allclose(array(y[row, t]), want, rtol=1e-10, atol=1e-10)


def turn(x: Array, position: int, features: int) -> Array:
    """Su et al. 2021: pairs rotated by position / 10000^(2 i / features)."""
    y = x.copy()
    for i in range(features // 2):
        angle = position / 10000 ** (2 * i / features)
        turned = (x[2 * i] + 1j * x[2 * i + 1]) * np.exp(1j * angle)
        y[2 * i], y[2 * i + 1] = turned.real, turned.imag
    return y


def test_layers_of_a_list_take_turns_and_the_last_norm_is_of_the_output() -> None:
    taking_turns = (Elman, lambda a, b: LocalAttention(a, b, num_heads=1, window=3))
    stack = ready(lambda: Stack(READ, (SIZE,) * 5, cell=taking_turns, bidirectional=True, last_norm="rms"))
    for half in (stack.forwards, stack.backwards):
        assert [type(cell) for cell in half] == [Elman, LocalAttention, Elman, LocalAttention, Elman]
    plain = ready(lambda: Stack(READ, (SIZE,) * 5, cell=taking_turns, bidirectional=True))
    plain.load_state_dict({k: v for k, v in stack.state_dict().items() if not k.startswith("last_norm")})
    x, mask = source()
    y, finals = stack(x, mask=mask)
    z, _ = plain(x, mask=mask)
    want = torch.nn.functional.rms_norm(z, (2 * SIZE,), stack.last_norm.weight, 1e-5) * mask[..., None]
    torch.testing.assert_close(y, want, rtol=1e-10, atol=1e-10)
    ends = [(z[row, length - 1, :SIZE], z[row, 0, SIZE:]) for row, length in enumerate(SOURCE_LENGTHS)]
    both = torch.stack([torch.cat(each) for each in ends])
    want = torch.nn.functional.rms_norm(both, (2 * SIZE,), stack.last_norm.weight, 1e-5)
    torch.testing.assert_close(stack.shown(finals[-1]), want, rtol=1e-10, atol=1e-10)


def test_a_convolution_carries_its_window_over_segments_and_padding() -> None:
    convolution = ready(lambda: ShortConvolution(5, 4))
    x = normal(ROWS, SOURCE, 5)
    whole, last = convolution(x, convolution.start(x), None)
    window, ys = convolution.start(x), []
    for piece in (x[:, :2], x[:, 2:3], x[:, 3:]):
        y, window = convolution(piece, window, None)
        ys.append(y)
    torch.testing.assert_close(torch.cat(ys, 1), whole, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(window, last)
    torch.testing.assert_close(
        whole[0], torch.from_numpy(convolved(convolution, x[0].numpy())), rtol=1e-10, atol=1e-10
    )


def test_a_bridge_leaves_large_states_alone_and_reads_the_summary_of_an_encoder_that_has_them() -> None:
    both = (Mamba, GRU)
    encoder = ready(lambda: RecurrentEncoder(READ, sizes=(SIZE, 5), cell=both, bidirectional=True))
    assert encoder.carry_sizes == (((), ()), ((5,), (5,)))
    decoder = ready(lambda: RecurrentDecoder(2, encoder, sizes=(7, 11), cell=(GRU, Mamba), enters="late"))
    assert [len(row) for row in decoder.bridge.maps] == [1, 0]
    assert decoder.bridge.maps[0][0].weight.shape == (7, 2 * 5)  # the summary: the top layer's last outputs
    x, mask = source()
    memory = encoder(x, mask)
    (h,), large = decoder.start(memory, ROWS).layers
    want = torch.tanh(decoder.bridge.maps[0][0](memory.summary))
    torch.testing.assert_close(h, want, rtol=1e-10, atol=1e-10)
    assert not any(leaf.any() for leaf in large)


@pytest.mark.parametrize(
    ("cell", "sentence"),
    [
        ("[lru, {use: block, cell: ltsm}]", "unknown cell 'ltsm'; did you mean 'lstm'?"),
        ("[]", "expected a cell or a list of at least one, got an empty list"),
        ("{use: block, gate: inptu}", "did you mean 'input'?"),
        ("{use: block, convolution: 1}", "expected at least 2 steps, or 0 for none, got 1"),
        ("{use: slstm, num_heads: 3}", "expected a divisor of the size 8, got 3"),
        ("{use: lru, min_radius: 1.5}", "expected 0 <= min_radius < max_radius <= 1, got 1.5"),
        ("{use: local_attention, key_value_heads: 3}", "expected a divisor of num_heads, 4, got 3"),
    ],
)
def test_cells_that_cannot_be_are_one_sentence(cell: str, sentence: str) -> None:
    recipe = parse(f"{{use: recurrent, sizes: [8, 8], cell: {cell}}}", "recipe.yaml")
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        build(recipe, Encoder, in_size=3)


@pytest.mark.parametrize("name", sorted({*rooms.parts(cells, Cell)} - {"block", "projected"}))
def test_every_cell_fits_a_block(name: str) -> None:
    kind = rooms.find(cells, Cell, name)
    block = ready(lambda: Block(READ, 8, cell=kind, convolution=3, gate="input", network=5))
    x, mask = source()
    got, want = block(x, block.start(x), mask), Cell.run(block, x, block.start(x), mask)
    for one, other in zip(tree.leaves(got), tree.leaves(want), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)
