"""Law 6 for bags, n-grams, convolutions, windows, idf, and encoders that shorten a sequence, in NumPy."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.laws.members import READ, ROWS, SIZE, SOURCE_LENGTHS, TARGET, WRITE, normal, ready, source
from tests.oracles import attention as formulas
from tests.oracles import recurrent as oracle
from tests.oracles.test_recurrent import of_lstm
from weft.errors import ConfigError
from weft.nn.decoders.decoder import BagDecoder, WindowDecoder
from weft.nn.embed.tokens import Beside, Tokens, Weighted, idf
from weft.nn.encoders.encoder import BagEncoder, ConvolutionEncoder, NgramEncoder, Pyramid
from weft.nn.encoders.strided import StridedTransformer
from weft.tasks.language.data import Stream, rarity
from weft.text.vocabulary import EOS


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


KINDS = ["sum", "mean", "position", "idf", "dot", "additive"]


def softmax(energy: np.ndarray) -> np.ndarray:
    shifted = np.exp(energy - energy.max())
    return shifted / shifted.sum()


@pytest.mark.parametrize("kind", KINDS)
def test_the_last_word_and_the_bag_before_it(kind: str) -> None:
    torch.manual_seed(3)
    idf = kind == "idf"
    decoder = BagDecoder(5 + idf, weights=kind, max_length=3).double()
    for parameter in decoder.parameters():
        torch.nn.init.normal_(parameter)
    given = torch.randn(2, 7, 5 + idf, dtype=torch.float64)
    y, _ = decoder(given, decoder.start(None, 2))
    x, weight = given.numpy()[..., :5], given.numpy()[..., -1]
    named = {name: value.detach().numpy() for name, value in decoder.named_parameters()}
    for row in range(2):
        for t in range(7):
            words = x[row, 1:t] if t > 0 else x[row, :0]  # not the initial end of line
            n = len(words)
            bag = np.zeros(5)
            if n and kind == "sum":
                bag = words.sum(0)
            elif n and kind == "mean":
                bag = words.mean(0)
            elif n and kind == "position":
                bag = sum(named["distances"][min(t - j, 3) - 1] * x[row, j] for j in range(1, t))
            elif n and kind == "idf":
                bag = sum(weight[row, j] * x[row, j] for j in range(1, t)) / n
            elif n and kind == "dot":
                bag = softmax(words @ x[row, t]) @ words
            elif n:
                q = named["score.query.weight"] @ x[row, t] + named["score.query.bias"]
                hidden = np.tanh(q + words @ named["score.key.weight"].T)
                bag = softmax(hidden @ named["score.weight.weight"][0]) @ words
            np.testing.assert_allclose(y[row, t].detach().numpy(), [*x[row, t], *bag], atol=1e-10)


def test_idf_counts_the_lines_that_hold_a_token_and_stands_beside_its_vector() -> None:
    stream = Stream(np.array([EOS, 5, 5, 6, EOS, EOS, 6, 4, EOS]), 3, 0, 0)
    got = rarity(stream, 8).numpy()
    for token, lines in ((4, 1), (5, 1), (6, 2), (EOS, 3), (7, 0)):
        assert np.isclose(got[token], np.log((1 + 3) / (1 + lines)) + 1)
    table = torch.nn.Embedding(8, 2)
    shown = Beside(table, torch.from_numpy(got))(torch.tensor([[6, 7]]))
    torch.testing.assert_close(shown[..., :2], table(torch.tensor([[6, 7]])))
    np.testing.assert_allclose(shown[0, :, 2].detach(), got[[6, 7]])


def over(step: oracle.Step, xs: np.ndarray, size: int) -> np.ndarray:
    state, hs = (np.zeros(size), np.zeros(size)), []
    for x in xs:
        h, state = step(x, state)
        hs.append(h)
    return np.stack(hs)


def pairs(xs: np.ndarray, factor: int) -> np.ndarray:
    """[h_{ki}; ..; h_{ki+k-1}], zeros after the end."""
    count = -(-len(xs) // factor)
    filled = np.concatenate([xs, np.zeros((count * factor - len(xs), xs.shape[1]))])
    return np.stack([np.concatenate(list(filled[factor * i : factor * (i + 1)])) for i in range(count)])


def test_a_pyramid_is_its_equation() -> None:
    encoder = ready(lambda: Pyramid(READ, sizes=(5, 3, SIZE), factors=(1, 2, 3)))
    x, mask = source()
    memory = encoder(x, mask)
    for row, length in enumerate(SOURCE_LENGTHS):
        want = x[row, :length].numpy()
        for stack, factor in zip(encoder.layers, encoder.factors, strict=True):
            read = pairs(want, factor)
            ahead, back = stack.forwards[0], stack.backwards[0]
            forward = over(of_lstm(ahead), read, ahead.size)
            backward = over(of_lstm(back), read[::-1], back.size)[::-1]
            want = np.concatenate([forward, backward], 1)
        got: Tensor = memory.states[row, : len(want)]
        np.testing.assert_allclose(got.detach().numpy(), want, rtol=1e-10, atol=1e-10)
        assert memory.mask[row].sum() == len(want) == -(-length // encoder.stride)


def test_strided_convolutions_are_their_equation_before_the_transformer() -> None:
    encoder = ready(lambda: StridedTransformer(READ, size=6, num_convolutions=2, num_layers=1, num_heads=2))
    x, mask = source()
    memory = encoder(x, mask)
    for row, length in enumerate(SOURCE_LENGTHS):
        h = x[row, :length].numpy() @ encoder.project.weight.detach().numpy().T
        h = h + encoder.project.bias.detach().numpy()
        for layer in encoder.convolutions:
            weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()  # [out, in, 3]
            filled = np.pad(h, ((1, 2), (0, 0)))
            h = np.stack(
                [
                    np.maximum(np.einsum("oik,ki->o", weight, filled[2 * i : 2 * i + 3]) + bias, 0)
                    for i in range(-(-len(h) // 2))
                ]
            )
        want = encoder.encoder(torch.from_numpy(h)[None], torch.ones(1, len(h), dtype=torch.bool))
        torch.testing.assert_close(memory.states[row, : len(h)], want.states[0], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("factors", [(2, 2), (1, 0, 2), ()])
def test_factors_that_do_not_fit_are_refused(factors: tuple[int, ...]) -> None:
    with pytest.raises(ConfigError, match="factors"):
        Pyramid(READ, sizes=(5, 3, SIZE), factors=factors)
