"""ELMo: neither direction reads its targets; padding changes nothing; the frozen model stays frozen."""

import numpy as np
import pytest
import torch
from torch import Tensor

from weft.nn.embed.contextual import BothWays, InContext, Mix, Sentences, Twice
from weft.nn.embed.words import Spelled, Words
from weft.nn.heads.head import Loss

V, LETTERS, H = 11, 7, 5


def given(words: list[list[int]]) -> Sentences:
    """Word n has the letters of n; rows have different lengths, 0 is padding."""
    numbers = torch.tensor(words)
    letters = torch.tensor([[1 + n % 6, 1 + n % 5] for n in range(V)])
    mask = numbers > 0
    return Sentences(Spelled(numbers, letters, numbers), mask, int(mask.sum()) + len(words))


def made(layers: int = 2) -> BothWays:
    torch.manual_seed(5)
    return BothWays(V, LETTERS, H, num_layers=layers, letter_size=3, spelled=8).double().eval()


ROWS = [[3, 4, 5, 9, 2], [7, 0, 0, 0, 0], [2, 2, 8, 0, 0]]


def test_a_row_alone_equals_the_row_in_a_batch() -> None:
    model = made()
    batch = given(ROWS)
    whole = model(batch.given, batch.mask)
    totals = np.zeros(2)
    for row, words in enumerate(ROWS):
        alone = given([[word for word in words if word]])
        for layer, layer_alone in zip(whole, model(alone.given, alone.mask), strict=True):
            torch.testing.assert_close(layer[row, : layer_alone.shape[1]], layer_alone[0], atol=1e-10, rtol=0)
        totals += [part.total.item() for part in model.directions(alone)]
    both = model.directions(batch)
    np.testing.assert_allclose([part.total.item() for part in both], totals, atol=1e-10)
    assert [int(part.count) for part in both] == [9 + 3, 9 + 3] and int(model.loss(batch).count) == 12


def test_each_direction_sees_its_own_side_alone() -> None:
    model = made()
    one, other = given([[3, 4, 5, 9, 2]]), given([[3, 4, 6, 9, 2]])
    lowest, _, top = model(one.given, one.mask)
    lowest_other, _, top_other = model(other.given, other.mask)
    same = lambda a, b: bool((a == b).all())  # noqa: E731
    assert same(top[0, :2, :H], top_other[0, :2, :H]) and same(top[0, 3:, H:], top_other[0, 3:, H:])
    assert not same(top[0, 3:, :H], top_other[0, 3:, :H]) and not same(top[0, :2, H:], top_other[0, :2, H:])
    assert same(lowest[0, [0, 1, 3, 4]], lowest_other[0, [0, 1, 3, 4]])


def test_the_loss_is_the_log_probability_of_each_word_and_end() -> None:
    model = made(1)
    batch = given([[3, 4, 5]])
    ahead, back, _ = model._layers(batch.given, batch.mask)
    words = [0, 3, 4, 5, 0]
    wanted = [0.0, 0.0]
    for t in range(4):
        wanted[0] -= model.head(ahead[-1][0, t])[words[t + 1]].item()
        wanted[1] -= model.head(back[-1][0, t + 1])[words[t]].item()
    found = model.directions(batch)
    assert [part.total.item() for part in found] == pytest.approx(wanted, abs=1e-10)


def test_the_backward_model_is_the_forward_one_on_the_sentence_turned_round() -> None:
    model = made()
    model.backwards.load_state_dict(model.forwards.state_dict())
    with torch.no_grad():
        model.ends[1] = model.ends[0]
    batch, turned = given([[3, 4, 5, 9]]), given([[9, 5, 4, 3]])
    ahead = model.directions(batch).forward.total.item()
    assert model.directions(turned).backward.total.item() == pytest.approx(ahead, abs=1e-10)


def test_the_mix_is_its_formula() -> None:
    mix = Mix(3).double()
    layers = [torch.randn(2, 3, 4).double() for _ in range(3)]
    with torch.no_grad():
        mix.scores.copy_(torch.tensor([0.5, -1.0, 2.0]))
        mix.gamma.fill_(1.7)
    share = np.exp([0.5, -1.0, 2.0]) / np.exp([0.5, -1.0, 2.0]).sum()
    wanted = 1.7 * sum(s * layer.numpy() for s, layer in zip(share, layers, strict=True))
    np.testing.assert_allclose(mix(layers).detach().numpy(), wanted, atol=1e-10)


def test_a_tagger_learns_the_mix_and_leaves_the_model_as_it_is() -> None:
    batch = given(ROWS)
    front = InContext(Words(V, 3).double(), made()).double().train()
    assert not front.model.training and front.words.training
    out: Tensor = front(Twice(batch.given, batch.given, batch.mask))
    assert out.shape == (3, 5, 3 + 2 * H) and front.size == 13
    Loss(out.square().sum(), torch.tensor(1)).total.backward()
    moved = {name for name, parameter in front.named_parameters() if parameter.grad is not None}
    assert moved == {"words.table.weight", "mix.scores", "mix.gamma"}
