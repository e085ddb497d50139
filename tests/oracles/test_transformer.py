"""Law 6 for M2 and D2: blocks, encoder, decoder and smoothed cross-entropy equal NumPy and torch.nn."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from tests.laws.members import (
    CLASSES,
    READ,
    ROWS,
    SIZE,
    SOURCE,
    SOURCE_LENGTHS,
    TARGET,
    WRITE,
    normal,
    ready,
    source,
)
from tests.oracles import attention as formulas
from tests.oracles import transformer as oracle
from tests.oracles.attention import array
from weft import masks
from weft.nn.attention import Heads, MultiHead
from weft.nn.decoders.transformer import TransformerDecoder
from weft.nn.distances import Rotary
from weft.nn.encoders.encoder import Encoder
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.heads.categorical import Categorical
from weft.nn.transformer import FeedForward, TransformerBlock

WIDTH, HEADS, INNER = 6, 2, 19
norms = pytest.mark.parametrize("norm", ["before", "after"])


def normalised(norm: nn.Module) -> Callable[[np.ndarray], np.ndarray]:
    if isinstance(norm, nn.Identity):
        return lambda x: x
    if isinstance(norm, nn.RMSNorm):
        return lambda x: oracle.rms_norm(x, array(norm.weight))
    return lambda x: oracle.layer_norm(x, array(norm.weight), array(norm.bias))


def looks(module: MultiHead, y: np.ndarray | None = None, m: np.ndarray | float = 0.0):
    """x to multi-head attention over y (over itself if y is None)."""
    w_k, w_v = module.key_value.weight.chunk(2)
    b_k, b_v = module.key_value.bias.chunk(2)
    pairs = [
        (module.query.weight, module.query.bias),
        (w_k, b_k),
        (w_v, b_v),
        (module.out.weight, module.out.bias),
    ]
    matrices = [np.vstack([array(weight).T, array(bias)]) for weight, bias in pairs]
    return lambda x: formulas.multi_head(x, x if y is None else y, HEADS, *matrices, m)


def network(module: FeedForward) -> Callable[[np.ndarray], np.ndarray]:
    w1, b1, w2, b2 = (
        array(each)
        for each in (module.first.weight, module.first.bias, module.second.weight, module.second.bias)
    )
    gated = {"swiglu": oracle.swiglu, "geglu": oracle.geglu}.get(module.activation)
    if gated is not None:
        half = len(w1) // 2
        return lambda x: gated(x, w1[:half], b1[:half], w1[half:], b1[half:], w2, b2)
    known = {"relu": oracle.relu, "gelu": oracle.gelu, "gelu_tanh": oracle.gelu_tanh, "silu": oracle.silu}
    g = known[module.activation]
    return lambda x: oracle.feed_forward(x, w1, b1, w2, b2, g)


def block(
    module: TransformerBlock, x: np.ndarray, *, memory: np.ndarray | None = None, m: np.ndarray | float = 0.0
):
    """One layer by the equations."""
    x = oracle.residual(x, normalised(module.attention_norm), looks(module.attention, m=m), module.norm)
    if memory is not None:
        x = oracle.residual(x, normalised(module.look_norm), looks(module.look, memory), module.norm)
    return oracle.residual(x, normalised(module.network_norm), network(module.network), module.norm)


def embedded(module: TransformerEncoder | TransformerDecoder, x: np.ndarray) -> np.ndarray:
    x = x @ array(module.project.weight).T + array(module.project.bias)
    return x + formulas.sinusoid(len(x), WIDTH)


def encoder_of(norm: str, activation: str = "relu", norm_kind: str = "layer") -> TransformerEncoder:
    return ready(
        lambda: TransformerEncoder(
            READ,
            size=WIDTH,
            num_layers=2,
            num_heads=HEADS,
            inner=INNER,
            norm=norm,
            norm_kind=norm_kind,
            activation=activation,
        )
    )


@norms
@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_tanh", "silu", "swiglu", "geglu"])
@pytest.mark.parametrize("norm_kind", ["layer", "rms"])
def test_a_transformer_encoder_is_its_equation(norm: str, activation: str, norm_kind: str) -> None:
    encoder = encoder_of(norm, activation, norm_kind)
    x, mask = source()
    memory = encoder(x, mask)
    for row, length in enumerate(SOURCE_LENGTHS):
        h = embedded(encoder, x[row, :length].numpy())
        for layer in encoder.blocks:
            h = block(layer, h)
        h = normalised(encoder.last_norm)(h)
        np.testing.assert_allclose(array(memory.states[row, :length]), h, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(array(memory.summary[row]), h.mean(0), rtol=1e-10, atol=1e-10)


@norms
@pytest.mark.parametrize("reads", [True, False], ids=["memory", "alone"])
def test_a_transformer_decoder_is_its_equation(norm: str, reads: bool) -> None:
    encoder: Encoder | None = ready(lambda: TransformerEncoder(READ, size=10, num_heads=2)) if reads else None
    decoder = ready(
        lambda: TransformerDecoder(
            WRITE, encoder, size=WIDTH, num_layers=2, num_heads=HEADS, inner=INNER, norm=norm
        )
    )
    memory = encoder(*source()) if encoder is not None else None
    x = normal(ROWS, TARGET, WRITE, seed=2)
    got, _ = decoder(x, decoder.start(memory, ROWS))
    for row, length in enumerate(SOURCE_LENGTHS):
        h = embedded(decoder, x[row].numpy())
        seen = None if memory is None else array(memory.states[row, :length])
        for layer in decoder.blocks:
            h = block(layer, h, memory=seen, m=formulas.causal(TARGET, TARGET))
        np.testing.assert_allclose(array(got[row]), normalised(decoder.last_norm)(h), rtol=1e-10, atol=1e-10)


def copy_attention(ours: MultiHead, theirs: nn.MultiheadAttention) -> None:
    theirs.in_proj_weight.data = torch.cat([ours.query.weight.data, ours.key_value.weight.data])
    theirs.in_proj_bias.data = torch.cat([ours.query.bias.data, ours.key_value.bias.data])
    theirs.out_proj.load_state_dict(ours.out.state_dict())


@norms
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_same_numbers_as_torch_encoder_layers(norm: str, activation: str) -> None:
    encoder = encoder_of(norm, activation)
    x, mask = source()
    want = encoder.project(x)
    want = want + torch.from_numpy(formulas.sinusoid(SOURCE, WIDTH))
    for ours in encoder.blocks:
        theirs = nn.TransformerEncoderLayer(
            WIDTH, HEADS, INNER, 0.0, activation, batch_first=True, norm_first=norm == "before"
        ).double()
        copy_attention(ours.attention, theirs.self_attn)
        theirs.linear1.load_state_dict(ours.network.first.state_dict())
        theirs.linear2.load_state_dict(ours.network.second.state_dict())
        theirs.norm1.load_state_dict(ours.attention_norm.state_dict())
        theirs.norm2.load_state_dict(ours.network_norm.state_dict())
        want = theirs(want, src_key_padding_mask=~mask)
    want = encoder.last_norm(want)
    torch.testing.assert_close(encoder(x, mask).states[mask], want[mask], rtol=1e-10, atol=1e-10)


@norms
def test_same_numbers_as_torch_decoder_layers(norm: str) -> None:
    encoder = encoder_of("before")
    decoder = ready(
        lambda: TransformerDecoder(
            WRITE, encoder, size=WIDTH, num_layers=2, num_heads=HEADS, inner=INNER, norm=norm
        )
    )
    memory, x = encoder(*source()), normal(ROWS, TARGET, WRITE, seed=2)
    want = decoder.project(x)
    want = want + torch.from_numpy(formulas.sinusoid(TARGET, WIDTH))
    for ours in decoder.blocks:
        theirs = nn.TransformerDecoderLayer(
            WIDTH, HEADS, INNER, 0.0, batch_first=True, norm_first=norm == "before"
        ).double()
        copy_attention(ours.attention, theirs.self_attn)
        copy_attention(ours.look, theirs.multihead_attn)
        theirs.linear1.load_state_dict(ours.network.first.state_dict())
        theirs.linear2.load_state_dict(ours.network.second.state_dict())
        for place, norm_of in ((1, ours.attention_norm), (2, ours.look_norm), (3, ours.network_norm)):
            getattr(theirs, f"norm{place}").load_state_dict(norm_of.state_dict())
        hidden = ~masks.causal(TARGET, TARGET)
        want = theirs(want, memory.states, tgt_mask=hidden, memory_key_padding_mask=~memory.mask)
    got, _ = decoder(x, decoder.start(memory, ROWS))
    torch.testing.assert_close(got, decoder.last_norm(want), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("tied", ["no", "same", "other"])
def test_label_smoothed_cross_entropy_is_its_equation(smoothing: float, tied: str) -> None:
    table = None if tied == "no" else nn.Embedding(CLASSES, SIZE if tied == "same" else 3)
    head = ready(lambda: Categorical(SIZE, CLASSES, smoothing=smoothing, tied=table))
    h, mask = normal(ROWS, SOURCE, SIZE), source()[1]
    target = torch.arange(ROWS * SOURCE).view(ROWS, SOURCE) % CLASSES
    x = array(h[mask])
    if tied == "other":
        x = x @ array(head.project.weight).T
    logits = x @ array(head.weight).T + array(head.bias)
    total, plain = oracle.smoothed_cross_entropy(logits, target[mask].tolist(), smoothing)
    assert head.train().loss(h, target, mask).total.detach().item() == pytest.approx(total, rel=1e-10)
    assert head.eval().loss(h, target, mask).total.detach().item() == pytest.approx(plain, rel=1e-10)
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    np.testing.assert_allclose(array(head(h[mask]).exp()), p, rtol=1e-10)
    assert torch.equal(head.best(h, mask)[mask], torch.from_numpy(p.argmax(-1)))
    assert table is None or head.weight is table.weight


@torch.no_grad()
def test_a_parallel_block_adds_both_to_its_input() -> None:
    block = TransformerBlock(WIDTH, HEADS, INNER, norm="parallel", dropout=0.0).double().eval()
    x = normal(ROWS, SOURCE, WIDTH)
    y = block.attention_norm(x)
    expected = x + block.attention(y, *block.attention.keys_values(y), None)
    expected = expected + block.network(block.network_norm(x))
    torch.testing.assert_close(block.encode(x, None), expected, atol=1e-12, rtol=0)


@torch.no_grad()
def test_queries_and_keys_are_normalised_and_then_partly_rotated() -> None:
    part = MultiHead(WIDTH, 1, heads=Heads(size=6, norm=True, rotary=4), norm_epsilon=1e-3).double()
    nn.init.normal_(part.key_norm.weight)
    x = normal(ROWS, SOURCE, WIDTH)
    keys, _ = part.keys_values(x, Rotary(4)(range(SOURCE), range(SOURCE), x))
    projected = array(part.key_value(x))[..., :6]
    scale = np.sqrt((projected**2).mean(-1, keepdims=True) + 1e-3)
    projected = projected / scale * array(part.key_norm.weight)
    rotated = projected.copy()
    for t in range(SOURCE):
        for pair, speed in enumerate((1.0, 10000.0**-0.5)):
            a, b = projected[:, t, 2 * pair], projected[:, t, 2 * pair + 1]
            rotated[:, t, 2 * pair] = a * np.cos(t * speed) - b * np.sin(t * speed)
            rotated[:, t, 2 * pair + 1] = a * np.sin(t * speed) + b * np.cos(t * speed)
    np.testing.assert_allclose(array(keys[:, 0]), rotated, atol=1e-12)
