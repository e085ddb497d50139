"""Vectors of words from a table, from their letters and by their n-grams."""

import pytest
import torch

from tests.laws.members import close, normal, ready
from weft import masks
from weft.errors import ConfigError
from weft.nn.embed.grams import Grams, GramTable
from weft.nn.embed.tokens import Tokens
from weft.nn.embed.words import Characters, Spelled, Words
from weft.nn.encoders.filters import FilterEncoder
from weft.tasks.classify.model import Bag, LabelModel
from weft.testing.values import every_parameter_reached

GIVEN = Spelled(
    torch.tensor([[4, 5, 4], [6, 0, 0]]),
    torch.tensor([[3, 2, 0, 0], [2, 0, 0, 0], [5, 4, 3, 2]]),
    torch.tensor([[0, 1, 0], [2, 0, 0]]),
)


@pytest.mark.parametrize("kind", ["convolution", "recurrent"])
def test_padding_letters_change_nothing_and_gradients_reach_everything(kind) -> None:
    letters = ready(lambda: Characters(7, 6, kind=kind, letter_size=3))
    together = letters(GIVEN.letters)
    for row, n in enumerate((2, 1, 4)):
        close(letters(GIVEN.letters[row : row + 1, :n])[0], together[row])
    every_parameter_reached(letters, together)


def test_a_vector_is_the_tables_and_the_letters() -> None:
    words = ready(lambda: Words(7, 5, characters=Characters(7, 6, letter_size=3)))
    out = words(GIVEN)
    assert out.shape == (2, 3, 11)
    close(out[0, 0], out[0, 2], 0.0)
    close(out[0, 0, :5], words.table.weight[4])
    close(out[1, 0, 5:], words.characters(GIVEN.letters)[2])


def test_rare_words_become_unknown_in_training_alone() -> None:
    words = ready(lambda: Words(7, 5, replaced=0.25))
    words.learn_from(torch.tensor([1e9, 1e9, 1, 1, 1, 1e9, 1]))
    unknown = words.table.weight[1]
    given = GIVEN._replace(words=torch.full((100, 30), 4), which=torch.zeros(100, 30, dtype=torch.int64))
    assert not words(given).eq(unknown).all(-1).any()
    torch.manual_seed(1)
    share = words.train()(given).eq(unknown).all(-1).double().mean()
    assert abs(float(share) - 0.25 / 1.25) < 0.03
    often = given._replace(words=torch.full((100, 30), 5))
    assert not words(often).eq(unknown).all(-1).any()


def test_fixed_vectors_stay_beside_a_table_that_knows_only_counted_words() -> None:
    words = ready(lambda: Words(7, 5, replaced=0.0, fixed_size=3)).train()
    words.learn_from(torch.tensor([1e9, 1e9, 1, 1, 1, 0, 1]))
    vectors = torch.randn(7, 3, dtype=torch.float64)
    vectors[6] = 0
    words.fix(vectors)
    out = words(GIVEN)  # words 4, 5, 4 and 6
    close(out[0, 0, :5], words.table.weight[4])
    close(out[0, 1, :5], words.table.weight[1])  # a word that training never saw
    close(out[0, :2, 5:] * vectors[:6].square().mean().sqrt(), vectors[4:6])
    assert not out[1, 0, 5:].any()
    assert not words.get_buffer("fixed").requires_grad
    assert "fixed" in words.state_dict() and "fixed" not in Words(7, 5).state_dict()


def test_letters_of_several_widths_share_the_features() -> None:
    letters = ready(lambda: Characters(7, 6, letter_size=3, widths=(2, 3)))
    together = letters(GIVEN.letters)
    assert together.shape == (3, 6)
    every_parameter_reached(letters, together)
    with pytest.raises(ConfigError, match="widths"):
        Characters(7, 6, widths=(2, 3, 4, 5))


def test_letters_alone_are_enough() -> None:
    assert Words(7, 0, characters=Characters(7, 6))(GIVEN).shape == (2, 3, 6)


@pytest.mark.parametrize("size", [7, 131])
def test_features_of_a_new_table_have_variance_one(size: int) -> None:
    tokens = torch.arange(1009)[None]
    embed = Tokens(1009, size)
    assert embed(tokens).var().item() == pytest.approx(1.0, abs=0.1)
    assert embed.table.weight.var().item() == pytest.approx(1 / size, rel=0.1)


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


def test_a_filter_is_its_equation() -> None:
    encoder = ready(lambda: FilterEncoder(3, widths=(2, 3), features=5))
    x, mask = normal(1, 7, 3), torch.ones(1, 7, dtype=torch.bool)
    states = encoder(x, mask).states[0].detach()
    padded = torch.cat([torch.zeros(1, 3), x[0], torch.zeros(1, 3)]).double()  # one more at each end
    for number, (width, start) in enumerate([(2, 1), (3, 0)]):  # an even width reads one more to the right
        weight, bias = encoder.layers[0][number].weight.detach(), encoder.layers[0][number].bias.detach()
        for j in range(7):
            seen = padded[j + start : j + start + width]  # [width, 3]
            want = (torch.einsum("fdk,kd->f", weight, seen) + bias).relu()
            close(states[j, 5 * number : 5 * number + 5], want)
