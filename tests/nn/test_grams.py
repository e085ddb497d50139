"""A bag's linear model is the sum of its items' weights."""

import torch

from tests.laws.members import close, normal
from weft import masks
from weft.nn.embed.grams import Grams, GramTable
from weft.tasks.classify.model import Bag, LabelModel


def test_the_logits_are_a_product_with_the_bags_vector() -> None:
    model = LabelModel(bag=Bag()).build(11, 3).double().eval()
    with torch.no_grad():
        model.embed.weight.copy_(normal(11, 3))
        model.head.bias.copy_(normal(3, seed=2))
    numbers = torch.tensor([[1, 4, 7], [9, 0, 0]])
    weights = torch.tensor([[1.0, 0.5, 2.0], [3.0, 50.0, 50.0]]).double()
    mask = masks.from_lengths(torch.tensor([3, 1]), 3)
    x = torch.zeros(2, 11).double()
    for row in range(2):
        for number, weight, real in zip(numbers[row], weights[row], mask[row], strict=True):
            x[row, number] += weight * real
    want = (x @ normal(11, 3) + normal(3, seed=2)).log_softmax(-1)
    close(model(Grams(numbers, weights), mask)[:, 0].detach(), want, 1e-6)


def test_it_begins_as_naive_bayes() -> None:
    table = GramTable(5, 3, naive_bayes=True)
    logp = normal(5, 3).log_softmax(0)
    table.begin(logp)
    given = Grams(torch.tensor([[1, 4, 2]]), torch.ones(1, 3))
    got = table(given).sum(1).log_softmax(-1).detach()
    want = logp[[1, 4, 2]].sum(0, keepdim=True).log_softmax(-1)
    close(got.double(), want.double(), 1e-6)
