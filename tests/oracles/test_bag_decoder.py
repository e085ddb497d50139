"""The bag of M5 against its equation in NumPy, word by word."""

import numpy as np
import pytest
import torch

from weft.nn.decoders.decoder import BagDecoder
from weft.nn.embed.tokens import Beside
from weft.tasks.language.data import Stream, rarity
from weft.text.vocabulary import EOS

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
