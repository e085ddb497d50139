"""Law 6 for inputs without recurrence: bags, n-grams, convolutions, windows, idf."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.laws.members import READ, ROWS, SIZE, SOURCE_LENGTHS, TARGET, WRITE, normal, ready, source
from tests.oracles import attention as formulas
from weft.errors import ConfigError
from weft.nn.decoders.decoder import WindowDecoder
from weft.nn.embed.tokens import Tokens, Weighted, idf
from weft.nn.encoders.encoder import BagEncoder, ConvolutionEncoder, NgramEncoder


def numpy(tensor: Tensor) -> np.ndarray:
    return tensor.detach().numpy()


def affine(layer: nn.Linear, x: np.ndarray) -> np.ndarray:
    return x @ numpy(layer.weight).T + (0.0 if layer.bias is None else numpy(layer.bias))


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
        np.testing.assert_allclose(numpy(got.summary[row]), want, rtol=1e-10, atol=1e-10)
    order = torch.randperm(7)
    np.testing.assert_allclose(numpy(encoder(x[:1, order], mask[:1]).summary), numpy(got.summary[:1]))


def test_idf_weighs_each_word() -> None:
    embed = Tokens(5, 3)
    weights = idf(torch.tensor([7, 3, 1, 0, 2]), 7)
    np.testing.assert_allclose(weights, np.log(8 / (1 + np.array([7, 3, 1, 0, 2]))) + 1, rtol=1e-6)
    tokens = torch.tensor([[4, 0], [2, 2]])
    got = Weighted(embed, weights)(tokens)
    want = numpy(embed(tokens)) * weights.numpy()[tokens.numpy()][..., None]
    np.testing.assert_allclose(numpy(got), want, rtol=1e-6)


@pytest.mark.parametrize("length", [1, 2, 5])
@pytest.mark.parametrize("size", [None, SIZE])
def test_n_grams_are_their_equation(length: int, size: int | None) -> None:
    encoder = ready(lambda: NgramEncoder(READ, length=length, size=size))
    x, mask = source()
    got = encoder(x, mask)
    for row, real in enumerate(SOURCE_LENGTHS):
        grams = np.stack([window(x[row].numpy(), t, length) for t in range(real)])
        want = np.tanh(affine(encoder.hidden[0], grams)) if size else grams
        np.testing.assert_allclose(numpy(got.states[row, :real]), want, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(numpy(got.summary[row]), want[-1], rtol=1e-10, atol=1e-10)


def test_gated_convolutions_are_their_equation() -> None:
    encoder = ready(lambda: ConvolutionEncoder(READ, size=6, num_layers=2, kernel=5))
    x, mask = source()
    got = encoder(x, mask)
    for row, real in enumerate(SOURCE_LENGTHS):
        h = affine(encoder.project, x[row, :real].numpy()) + formulas.sinusoid(real, 6)
        for layer in encoder.layers:
            w, b = numpy(layer.weight), numpy(layer.bias)  # [2 D, D, k]
            y = np.tile(b, (real, 1))
            for t in range(real):
                for k in range(5):
                    if 0 <= t + k - 2 < real:
                        y[t] += w[:, :, k] @ h[t + k - 2]
            h = (h + y[:, :6] / (1 + np.exp(-y[:, 6:]))) * 0.5**0.5
        np.testing.assert_allclose(numpy(got.states[row, :real]), h, rtol=1e-10, atol=1e-10)


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
                h = h + affine(decoder.given, numpy(memory.summary[row]))
            h = np.tanh(h)
            if reads == "attention":
                states, score = numpy(memory.states[row, :real]), decoder.attention.score
                joint = np.hstack([numpy(score.query.weight), numpy(score.key.weight)])
                equation = formulas.additive(numpy(score.weight.weight)[0], joint, numpy(score.query.bias))
                context = formulas.attention(equation, h, states, states)[1]
                h = np.tanh(affine(decoder.readout, np.concatenate([h, context])))
            want = np.concatenate([h, seen]) if direct else h
            np.testing.assert_allclose(numpy(got[row, t]), want, rtol=1e-10, atol=1e-10)


def test_windows_and_kernels_of_no_size_are_refused() -> None:
    for make in (lambda: NgramEncoder(2, length=0), lambda: WindowDecoder(2, length=0)):
        with pytest.raises(ConfigError, match="length: "):
            make()
    with pytest.raises(ConfigError, match="kernel: "):
        ConvolutionEncoder(2, kernel=4)
