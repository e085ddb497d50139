"""word2vec and GloVe against their formulas, pair by pair; n-grams against fastText's own numbers."""

import numpy as np
import pytest
import torch
from torch import Tensor

from weft.nn.embed.neighbours import (
    Cells,
    Glove,
    Neighbourhood,
    Neighbours,
    Subwords,
    WordTable,
    bucket,
    ngrams,
)

V, D, K = 11, 5, 3


def batch() -> Neighbourhood:
    words = torch.tensor([[3, 5, 3, 7, 2, 1, 0], [4, 0, 0, 0, 0, 0, 0]])
    lines = torch.tensor([[0, 0, 0, 1, 1, 1, 1], [2, -1, -1, -1, -1, -1, -1]])
    reach = torch.tensor([[1, 2, 3, 1, 2, 3, 1], [2, 2, 2, 2, 2, 2, 2]])
    return Neighbourhood(words, lines, reach, torch.tensor([[1, 2, 2, 9], [8, 0, 1, 3]]), 8)


def made(objective: str) -> Neighbours:
    torch.manual_seed(7)
    model = Neighbours(WordTable(V, D), V, objective=objective, negatives=K).double()  # type: ignore[arg-type]
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    return model


def pairs(given: Neighbourhood, row: int, t: int) -> list[int]:
    lines, reach = given.lines[row].tolist(), given.reach[row].tolist()
    near = range(max(0, t - reach[t]), min(len(lines), t + reach[t] + 1))
    return [s for s in near if s != t and lines[s] == lines[t] != -1]


def nats(score: float) -> float:
    return float(np.log1p(np.exp(-score)))


@pytest.mark.parametrize("objective", ["skipgram", "cbow"])
def test_the_loss_is_that_of_the_paper_pair_by_pair(objective: str) -> None:
    model, given = made(objective), batch()
    u, v = (table.table.weight.detach().numpy() for table in (model.inner, model.outer))  # type: ignore[union-attr]
    total, count = 0.0, 0
    for row, words in enumerate(given.words.tolist()):
        noise = given.noise[row].tolist()
        for t, word in enumerate(words):
            near = pairs(given, row, t)
            if not near:
                continue
            if objective == "cbow":
                reading = [(np.mean([u[words[s]] for s in near], 0), v[word])]
            else:
                reading = [(u[word], v[words[s]]) for s in near]
            for first, second in reading:
                count += 1
                total += nats(first @ second)
                total += K * np.mean([nats(-first @ v[n]) for n in noise])
    loss = model.loss(given)
    assert int(loss.count) == count
    assert loss.total.item() == pytest.approx(total, abs=1e-10)


@pytest.mark.parametrize("objective", ["skipgram", "cbow"])
def test_more_padding_changes_nothing_and_gradients_are_true(objective: str) -> None:
    model, given = made(objective), batch()
    pad = lambda x, value: torch.nn.functional.pad(x, (0, 3), value=value)  # noqa: E731
    wide = Neighbourhood(pad(given.words, 4), pad(given.lines, -1), pad(given.reach, 5), given.noise, 8)
    assert model.loss(wide).total.item() == pytest.approx(model.loss(given).total.item(), abs=1e-10)

    class Call(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self) -> Tensor:
            return self.model.loss(given).total

    def loss(inner: Tensor, outer: Tensor) -> Tensor:
        named = {"model.inner.table.weight": inner, "model.outer.table.weight": outer}
        return torch.func.functional_call(Call(), named, ())  # type: ignore[no-any-return]

    weights = [parameter.detach().clone().requires_grad_() for parameter in model.parameters()]
    assert torch.autograd.gradcheck(loss, weights)


def test_a_line_of_one_word_has_no_neighbour() -> None:
    one = torch.tensor([[3]])
    for objective in ("skipgram", "cbow"):
        loss = made(objective).loss(Neighbourhood(one, one * 0, one, one, 1))
        assert loss.total.item() == 0 and int(loss.count) == 0


def test_glove_is_its_formula() -> None:
    torch.manual_seed(3)
    model = Glove(7, 3, most=10, alpha=0.75).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    i, j, x = torch.tensor([1, 5, 1]), torch.tensor([2, 5, 0]), torch.tensor([0.5, 10.0, 70.0]).double()
    w, o, b, c = (part.table.weight.detach().numpy() for part in _tables(model))
    wanted = sum(
        min(1, (n / 10) ** 0.75) * (w[p] @ o[q] + b[p, 0] + c[q, 0] - np.log(n)) ** 2
        for p, q, n in zip(i.tolist(), j.tolist(), x.tolist(), strict=True)
    )
    loss = model.loss(Cells(i, j, x, 3))
    assert loss.total.item() == pytest.approx(wanted, abs=1e-10) and int(loss.count) == 3
    np.testing.assert_allclose(model.vectors().detach().numpy(), w + o)


def _tables(model: Glove) -> tuple[WordTable, WordTable, WordTable, WordTable]:
    return model.inner, model.outer, model.inner_bias, model.outer_bias


def test_a_word_is_the_mean_of_its_rows_and_an_unseen_one_of_its_n_grams() -> None:
    words = ["cat", "a", "straße"]
    table = Subwords(words, D, shortest=3, longest=5, buckets=13).double()
    weight = table.bag.weight.detach().numpy()
    found = table(torch.tensor([[2, 0], [1, 2]])).detach().numpy()
    for row, numbers in enumerate([[2, 0], [1, 2]]):
        for place, number in enumerate(numbers):
            rows = [number, *(3 + bucket(gram, 13) for gram in ngrams(words[number], 3, 5))]
            np.testing.assert_allclose(found[row, place], weight[rows].mean(0), atol=1e-12)
    rows = [3 + bucket(gram, 13) for gram in ngrams("cats", 3, 5)]
    np.testing.assert_allclose(table.unseen("cats").detach().numpy(), weight[rows].mean(0), atol=1e-12)


def test_n_grams_and_their_numbers_are_those_of_gensim() -> None:
    fasttext = pytest.importorskip(
        "gensim.models.fasttext", reason="gensim is not installed: pip install --group vectors-tests"
    )

    for word in ("cat", "straße", "Ω", "the", "naïveté"):
        ours = sorted(bucket(gram, 1009) for gram in ngrams(word, 3, 6))
        assert ours == sorted(fasttext.ft_ngram_hashes(word, 3, 6, 1009))
