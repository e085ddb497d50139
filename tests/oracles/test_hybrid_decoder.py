"""Decoders of both kinds and of bags of words are their equations in NumPy."""

import numpy as np
import pytest
import torch
from torch import nn

from tests.laws.members import READ, ROWS, SOURCE_LENGTHS, TARGET, WRITE, normal, ready, source
from tests.oracles import attention as formulas
from tests.oracles import recurrent as cells
from tests.oracles import transformer as oracle
from tests.oracles.attention import array
from weft.errors import ConfigError
from weft.nn.cells.cell import Cell
from weft.nn.decoders.bag import BagDecoder
from weft.nn.decoders.hybrid import HybridBlock, HybridDecoder
from weft.nn.embed.weighted import Beside
from weft.nn.encoders.transformer import TransformerEncoder
from weft.tasks.language.data import Stream, rarity
from weft.text.vocabulary import EOS

WIDTH, HEADS, INNER = 6, 2, 19


def normalised(norm: nn.Module):
    if isinstance(norm, nn.Identity):
        return lambda x: x
    return lambda x: oracle.layer_norm(x, array(norm.weight), array(norm.bias))


def recurrence(cell: Cell):
    """x [T, D] to the cell's outputs, by its equation."""
    forget, candidate = array(cell.weight_x).reshape(2, WIDTH, WIDTH)
    step = cells.ssru((forget, array(cell.bias)), candidate)

    def run(x: np.ndarray) -> np.ndarray:
        state, rows = (np.zeros(WIDTH),), []
        for row in x:
            y, state = step(row, state)
            rows.append(y)
        return np.stack(rows)

    return run


def block(module: HybridBlock, x: np.ndarray, memory: np.ndarray, norm: str) -> np.ndarray:
    look, network = module.look, module.network
    linear = [(look.query.weight, look.query.bias)]
    linear += list(zip(look.key_value.weight.chunk(2), look.key_value.bias.chunk(2), strict=True))
    matrices = [
        np.vstack([array(weight).T, array(bias)])
        for weight, bias in [*linear, (look.out.weight, look.out.bias)]
    ]
    parts = (
        (module.cell_norm, recurrence(module.cell)),
        (module.look_norm, lambda y: formulas.multi_head(y, memory, HEADS, *matrices, 0.0)),
        (
            module.network_norm,
            lambda y: oracle.feed_forward(
                y,
                array(network.first.weight),
                array(network.first.bias),
                array(network.second.weight),
                array(network.second.bias),
                oracle.relu,
            ),
        ),
    )
    for norms, part in parts:
        x = oracle.residual(x, normalised(norms), part, norm)
    return x


@pytest.mark.parametrize("norm", ["before", "after"])
@pytest.mark.parametrize("positions", ["sinusoidal", "none"])
def test_a_hybrid_decoder_is_its_equation(norm: str, positions: str) -> None:
    encoder = ready(lambda: TransformerEncoder(READ, size=10, num_heads=2))
    decoder = ready(
        lambda: HybridDecoder(
            WRITE,
            encoder,
            size=WIDTH,
            num_layers=2,
            num_heads=HEADS,
            inner=INNER,
            norm=norm,
            positions=positions,
        )
    )
    memory = encoder(*source())
    x = normal(ROWS, TARGET, WRITE, seed=2)
    got, _ = decoder(x, decoder.start(memory, ROWS))
    for row, length in enumerate(SOURCE_LENGTHS):
        h = x[row].numpy() @ array(decoder.project.weight).T + array(decoder.project.bias)
        h = h + (formulas.sinusoid(len(h), WIDTH) if positions == "sinusoidal" else 0.0)
        for layer in decoder.blocks:
            h = block(layer, h, array(memory.states[row, :length]), norm)
        np.testing.assert_allclose(array(got[row]), normalised(decoder.last_norm)(h), rtol=1e-10, atol=1e-10)


def test_learned_positions_are_counted_from_the_first_real_one() -> None:
    decoder = ready(
        lambda: HybridDecoder(WRITE, size=WIDTH, num_heads=HEADS, positions="learned", max_length=5)
    )
    x = normal(1, 3, WRITE)
    pieces, state = [], decoder.start(None, 1)
    for t in range(3):
        y, state = decoder(x[:, t : t + 1], state)
        pieces.append(y)
    torch.testing.assert_close(torch.cat(pieces, 1), decoder(x, decoder.start(None, 1))[0])


def test_parallel_norms_are_refused() -> None:
    with pytest.raises(ConfigError, match="norm"):
        HybridDecoder(WRITE, norm="parallel")  # type: ignore[arg-type]


KINDS = ["sum", "mean", "position", "idf", "dot", "additive"]


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
                bag = formulas.softmax(words @ x[row, t]) @ words
            elif n:
                q = named["score.query.weight"] @ x[row, t] + named["score.query.bias"]
                hidden = np.tanh(q + words @ named["score.key.weight"].T)
                bag = formulas.softmax(hidden @ named["score.weight.weight"][0]) @ words
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
