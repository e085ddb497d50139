"""Every objective, found in its room, obeys the laws; what cannot be is refused.

Read next: test_minimum_risk.py, test_professor_forcing.py.
"""

from typing import Any

import pytest
import torch
import torch.nn.functional as F

import weft.train.objectives
from tests.train.writing import Writes, batch, every_model, model, seeded, words
from weft import rooms
from weft.errors import ConfigError
from weft.tasks.seq2seq.encoding import PairBatch
from weft.text.vocabulary import Vocabulary
from weft.train.feeding import ConstantFeeding
from weft.train.objectives.minimum_risk import MinimumRisk
from weft.train.objectives.objective import Objective, mirror
from weft.train.objectives.professor_forcing import ProfessorForcing
from weft.train.settings import TrainingSettings

OBJECTIVES = rooms.parts(weft.train.objectives, Objective)
every_objective = pytest.mark.parametrize("name", sorted(OBJECTIVES))


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return words()


def test_the_room_holds_its_parts() -> None:
    assert {"likelihood", "minimum_risk", "professor_forcing"} <= set(OBJECTIVES)


@every_objective
@every_model
def test_gradients_reach_every_parameter_and_the_same_seed_gives_the_same_bits(
    name: str, kind: str, vocabulary: Vocabulary
) -> None:
    found = []
    for _ in range(2):
        criterion = OBJECTIVES[name]().build(Writes(vocabulary), model(kind))
        criterion.model.train()
        with seeded():
            loss = criterion.loss(batch())
        parameters = list(criterion.learner.parameters())
        gradients = torch.autograd.grad(loss.total, parameters, allow_unused=True)
        assert all(one is not None and bool(one.isfinite().all()) for one in gradients)
        assert criterion.model.training and int(loss.count) > 0
        found.append([loss.total.detach(), *gradients])
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


@every_objective
def test_padding_changes_nothing(name: str, vocabulary: Vocabulary) -> None:
    values = []
    given = batch()
    wide = PairBatch(*(F.pad(part, (0, 3)) for part in given[:5]), given.target_tokens)
    for one in (given, wide):
        criterion = OBJECTIVES[name]().build(Writes(vocabulary), model("recurrent", dropout=0.0))
        with seeded():
            loss = criterion.loss(one)
        values.append((loss.total.item() / int(loss.count), int(loss.count)))
    assert values[0] == pytest.approx(values[1], abs=1e-12)


@every_objective
def test_what_an_objective_learns_beside_the_model_has_names_of_its_own(
    name: str, vocabulary: Vocabulary
) -> None:
    criterion = OBJECTIVES[name]().build(Writes(vocabulary), model("recurrent"))
    own = 0 if criterion.own is None else len(list(criterion.own.parameters()))
    assert len(list(criterion.learner.named_parameters())) == own + len(list(criterion.model.parameters()))


def test_a_mirror_follows_and_is_never_trained() -> None:
    original = model("recurrent").train()
    other = mirror(original)
    with torch.no_grad():
        for parameter in original.parameters():
            parameter.add_(1.0)
    pairs = list(zip(original.parameters(), other.parameters(), strict=True))
    assert all(torch.equal(one, two) and not two.requires_grad for one, two in pairs)
    assert original.training and not other.training
    assert other.head.bias is not original.head.bias


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: MinimumRisk(candidates=0), "candidates: .*got 0"),
        (lambda: MinimumRisk(candidates=1), "the risk of one candidate has no gradient"),
        (lambda: MinimumRisk(sharpness=0.0), "sharpness: .*got 0.0"),
        (lambda: ProfessorForcing(size=0), "size: .*got 0"),
        (lambda: ProfessorForcing(fools_above=1.5), "fools_above: .*got 1.5"),
        (lambda: MinimumRisk().build(Writes(None), model("recurrent")), "minimum_risk needs a task"),
        (
            lambda: ProfessorForcing().build(Writes(None), model("recurrent")),
            "professor_forcing needs a model",
        ),
        (
            lambda: TrainingSettings(max_updates=1, objective=MinimumRisk(), feeding=ConstantFeeding(p=0.5)),
            "training.feeding: .*MinimumRisk",
        ),
    ],
)
def test_what_cannot_be_is_refused(make: Any, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        make()
