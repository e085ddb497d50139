"""D2: professor forcing is its costs; the discriminator's gradient reaches the model with the right sign."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.train.writing import SOURCES, Writes, batch, every_model, model, seeded, words
from weft.tasks.seq2seq.encoding import collate_pairs
from weft.text.vocabulary import SOS, Vocabulary
from weft.train.objectives.professor_forcing import Adversaries, ProfessorForcing


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return words()


def forced(kind: str, vocabulary: Vocabulary, **settings: Any) -> Adversaries:
    usual = {"fools_above": 0.0, "learns_below": 1.0, "size": 5}
    made = ProfessorForcing(**(usual | settings)).build(Writes(vocabulary), model(kind, dropout=0.0))
    assert isinstance(made, Adversaries)
    return made


@every_model
@pytest.mark.parametrize("both", [False, True])
def test_professor_forcing_is_its_costs_and_nothing_crosses(
    kind: str, both: bool, vocabulary: Vocabulary
) -> None:
    """Lamb et al.: C_d moves the discriminator alone, NLL + strength (C_f + C_t) the model alone."""
    made, given = forced(kind, vocabulary, both=both, strength=0.6), batch()
    with seeded():
        loss = made.loss(given)
    with seeded():
        true, free = made.model.features(given), made.model.free_running(given)
    likelihood = made.model.loss(given)
    assert loss.total.item() == pytest.approx(likelihood.total.item(), abs=1e-10)
    assert int(loss.count) == int(likelihood.count)
    told_true = made.own(true, given.target_mask).sigmoid()
    told_free = made.own(free, given.target_mask).sigmoid()
    tokens = given.target_mask.sum(1)
    critic = -(tokens * (told_true.log() + (1 - told_free).log())).sum()
    fool = -(tokens * told_free.log()).sum() - both * (tokens * (1 - told_true).log()).sum()
    mine = list(made.model.parameters())
    theirs = list(made.own.parameters())
    wanted = torch.autograd.grad(likelihood.total + 0.6 * fool, mine, retain_graph=True)
    wanted += torch.autograd.grad(critic, theirs)
    for one, other in zip(torch.autograd.grad(loss.total, [*mine, *theirs]), wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-9)


def test_the_model_learns_to_be_mistaken_for_the_truth(vocabulary: Vocabulary) -> None:
    made, given = forced("recurrent", vocabulary), batch()

    def told() -> tuple[Tensor, Tensor]:
        with seeded():
            true, free = made.model.features(given), made.model.free_running(given, drawn=False)
        costs = made.costs(true, free, given.target_mask)
        return costs.fool.sum(), made.own(free, given.target_mask).sigmoid().sum()

    fool, before = told()
    gradients = torch.autograd.grad(fool, list(made.model.parameters()), allow_unused=True)
    with torch.no_grad():
        for parameter, gradient in zip(made.model.parameters(), gradients, strict=True):
            parameter.sub_(0.001 * (0 if gradient is None else gradient))
    assert told()[1] > before


def test_who_is_far_ahead_waits(vocabulary: Vocabulary) -> None:
    given = batch()
    for settings, still in (({"learns_below": 0.0}, "own"), ({"fools_above": 1.0, "strength": 1e6}, "model")):
        made = forced("recurrent", vocabulary, **settings)
        with seeded():
            loss = made.loss(given).total
        if still == "own":
            found = torch.autograd.grad(loss, list(made.own.parameters()))
            assert not any(bool(one.any()) for one in found)
        else:
            found = torch.autograd.grad(loss, list(made.model.parameters()))
            plain = torch.autograd.grad(made.model.loss(given).total, list(made.model.parameters()))
            for one, other in zip(found, plain, strict=True):
                torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


def test_own_words_are_drawn_by_their_probability() -> None:
    net = model("recurrent", dropout=0.0).eval()
    rows = 4000
    given = collate_pairs([SOURCES[0]] * rows, [[4, 5]] * rows)
    first = net.step(torch.tensor([SOS]), net.start(given.source[:1], given.source_mask[:1]))[0][0].exp()
    seen: list[Tensor] = []
    table = net.embed.table  # type: ignore[union-attr]
    handle = table.register_forward_pre_hook(lambda layer, inputs: seen.append(inputs[0]))  # type: ignore[union-attr]
    with seeded(), torch.no_grad():
        net.free_running(given)
    handle.remove()
    second = next(words for words in seen[2:] if words.shape == (rows, 1))  # source, <sos>, first own word
    share = torch.bincount(second[:, 0], minlength=len(first)) / rows
    assert np.abs(share.numpy() - first.detach().numpy()).max() < 5 * 0.5 / math.sqrt(rows)
