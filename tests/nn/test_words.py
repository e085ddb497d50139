"""Words from a table and from their letters: equal words have equal vectors, whatever their neighbours."""

import pytest
import torch

from tests.laws.members import close, ready
from weft.errors import ConfigError
from weft.nn.embed.characters import Characters
from weft.nn.embed.words import Spelled, Words
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
