"""Minimum risk equals an enumeration, professor forcing the papers' costs; every objective obeys the laws.

The laws hold for each file of weft/train/objectives, on a recurrent model, a Transformer, a decoder alone.
"""

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import weft.train.objectives
from weft import rooms
from weft.errors import ConfigError
from weft.metrics.wer import Wer
from weft.models import Generator
from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.decoders.transformer import TransformerDecoder
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.heads.categorical import Categorical
from weft.randomness import drawing
from weft.tasks.pairs.batch import PairBatch, collate_pairs
from weft.text.vocabulary import EOS, SOS, Vocabulary
from weft.train.feeding.constant import Constant
from weft.train.objectives.minimum_risk import MinimumRisk, Risk, expected
from weft.train.objectives.objective import Objective, mirror
from weft.train.objectives.professor_forcing import Adversaries, ProfessorForcing
from weft.train.settings import Settings

OBJECTIVES = rooms.parts(weft.train.objectives, Objective)
WORDS = ["red", "green", "blue", "seven", "eleven"]
SOURCES = [[5, 6, 7, 8, 4, 5, 5], [8], [6, 4]]
TARGETS = [[4, 5, 6, 7, 8], [7], [5, 5, 4]]


class Writes:
    """A task as far as an objective looks at it."""

    def __init__(self, vocabulary: Vocabulary | None) -> None:
        self.vocabulary = vocabulary

    def writes(self) -> Vocabulary | None:
        return self.vocabulary


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return Vocabulary.train([" ".join(WORDS)], kind="word", size=None)


def model(kind: str, *, dropout: float = 0.3) -> Generator:
    torch.manual_seed(3)
    size = 4 + len(WORDS)
    embed = Tokens(size, 6)
    if kind == "prompt":
        decoder = RecurrentDecoder(6, sizes=(7,))
        return Generator(embed, decoder, Categorical(7, size), prompt="read").double()
    if kind == "recurrent":
        encoder: Any = RecurrentEncoder(6, sizes=(5,), bidirectional=True)
        written: Any = RecurrentDecoder(
            6, encoder, sizes=(7,), enters="both", input_feeding=True, dropout=dropout
        )
    else:
        encoder = TransformerEncoder(6, size=6, num_layers=1, num_heads=2, dropout=dropout)
        written = TransformerDecoder(6, encoder, size=6, num_layers=1, num_heads=2, dropout=dropout)
    return Generator(embed, written, Categorical(written.size, size), encoder=encoder).double()


def batch(sources: list[list[int]] = SOURCES, targets: list[list[int]] = TARGETS) -> PairBatch:
    return collate_pairs(sources, targets)


def seeded() -> Any:
    return drawing(torch.Generator().manual_seed(11))


every_objective = pytest.mark.parametrize("name", sorted(OBJECTIVES))
every_model = pytest.mark.parametrize("kind", ["recurrent", "transformer", "prompt"])


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


def probability_of(net: Generator, source: list[int], text: list[int]) -> Tensor:
    """P(y, <eos> | x) by the product of single steps."""
    logp, token, state = torch.zeros((), dtype=torch.float64), SOS, None
    state = net.start(torch.tensor([source]), torch.ones(1, len(source), dtype=torch.bool))
    for word in [*text, EOS]:
        after, state = net.step(torch.tensor([token]), state)
        logp, token = logp + after[0, word], word
    return logp.exp()


@every_model
@pytest.mark.parametrize("weight", [0.0, 0.3])
def test_minimum_risk_is_the_enumeration(kind: str, weight: float, vocabulary: Vocabulary) -> None:
    """Equations 5 and 6 of Shen et al., written out over a tiny set of candidates; its gradient too."""
    net = model(kind, dropout=0.0).eval()
    settings = MinimumRisk(sharpness=0.7, likelihood=weight)
    risk = settings.build(Writes(vocabulary), net)
    assert isinstance(risk, Risk)
    found = [[[4, 5], [4], [4, 5, 6, 7, 8]], [[7], []], [[5, 5, 4, 4], [5], [8, 8]]]
    loss = risk.risk(batch(), TARGETS, found)
    total = torch.zeros((), dtype=torch.float64)
    for source, true, texts in zip(SOURCES, TARGETS, found, strict=True):
        powers = [probability_of(net, source, text) ** 0.7 for text in texts]
        errors = [1 - sentence_bleu(text, true) for text in texts]
        total = total + sum(p * e for p, e in zip(powers, errors, strict=True)) / sum(powers)
        total = total - weight * probability_of(net, source, true).log() / (len(true) + 1)
    assert loss.total.item() == pytest.approx(total.item(), abs=1e-10)
    assert int(loss.count) == len(SOURCES)
    parameters = list(net.parameters())
    for one, other in zip(
        torch.autograd.grad(loss.total, parameters, allow_unused=True),
        torch.autograd.grad(total, parameters, allow_unused=True),
        strict=True,
    ):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


def sentence_bleu(text: list[int], true: list[int]) -> float:
    """Lin and Och's, counted over token numbers, each of which is a word."""
    logs = 0.0
    for n in range(1, 5):
        ours, theirs = ([tuple(x[i : i + n]) for i in range(len(x) - n + 1)] for x in (text, true))
        common = sum(min(ours.count(gram), theirs.count(gram)) for gram in set(ours))
        if n == 1 and not common:
            return 0.0
        added = int(n > 1)
        logs += math.log((common + added) / (len(ours) + added)) / 4
    return math.exp(logs + min(0.0, 1 - len(true) / max(1, len(text))))


def test_candidates_are_different_and_those_of_the_model_as_it_is_used(vocabulary: Vocabulary) -> None:
    net = model("recurrent").train()
    for search in ("sample", "beam"):
        risk = MinimumRisk(candidates=7, search=search, max_ratio=0, max_extra=3).build(
            Writes(vocabulary), net
        )
        assert isinstance(risk, Risk)
        with seeded():
            found = risk.candidates(batch())
        assert len(found) == len(SOURCES)
        for texts in found:
            assert 1 <= len(texts) <= 7 and len({tuple(text) for text in texts}) == len(texts)
            assert all(len(text) <= 3 and min(text, default=4) >= 4 for text in texts)
        with seeded():
            assert risk.candidates(batch()) == found
    assert net.training
    # the beam finds what is most probable of all texts of so many words
    net.eval()
    every = [list(text) for n in range(3) for text in itertools.product(range(4, 9), repeat=n)]
    with torch.no_grad():
        best = max(
            every, key=lambda text: float(probability_of(net, SOURCES[0], text).log()) / (len(text) + 1)
        )
    wide = MinimumRisk(candidates=200, search="beam", max_ratio=0, max_extra=3).build(Writes(vocabulary), net)
    assert isinstance(wide, Risk)
    listed = wide.candidates(batch())[0]
    assert {tuple(text) for text in every} <= {tuple(text) for text in listed}
    assert best == next(text for text in listed if len(text) < 3)


def test_the_reference_joins_once_and_a_low_score_may_be_the_good_one(vocabulary: Vocabulary) -> None:
    net = model("recurrent", dropout=0.0).eval()
    risk = MinimumRisk(metric=Wer).build(Writes(vocabulary), net)
    assert isinstance(risk, Risk)
    assert risk.errors([[4, 5], [4]], [[4, 5], [4, 5]]).tolist() == [0.0, 50.0]
    joined = MinimumRisk(candidates=1, reference=True).build(Writes(vocabulary), net)
    seen: list[list[list[list[int]]]] = []
    assert isinstance(joined, Risk)
    joined.candidates = lambda given: [[TARGETS[0], [4]], [[8]], [[]]]  # type: ignore[method-assign]
    joined.risk = lambda given, true, found: seen.append([true, found])  # type: ignore[method-assign, assignment]
    joined.loss(batch())
    assert seen == [[TARGETS, [[TARGETS[0], [4]], [TARGETS[1], [8]], [TARGETS[2], []]]]]


def test_a_step_against_the_gradient_lowers_the_risk(vocabulary: Vocabulary) -> None:
    net = model("recurrent", dropout=0.0)
    risk = MinimumRisk(sharpness=1.0, candidates=20).build(Writes(vocabulary), net)
    assert isinstance(risk, Risk)
    with seeded():
        found = risk.candidates(batch())
    before = risk.risk(batch(), TARGETS, found).total
    gradients = torch.autograd.grad(before, list(net.parameters()), allow_unused=True)
    with torch.no_grad():
        for parameter, gradient in zip(net.parameters(), gradients, strict=True):
            parameter.sub_(0.01 * (0 if gradient is None else gradient))
    assert risk.risk(batch(), TARGETS, found).total < before


def test_equal_errors_move_nothing() -> None:
    logp = torch.tensor([[-1.0, -2.0, -torch.inf]], dtype=torch.float64, requires_grad=True)
    value = expected(logp, torch.tensor([[0.4, 0.4, 0.0]], dtype=torch.float64), 0.5)
    assert value.item() == pytest.approx(0.4, abs=1e-12)
    assert torch.autograd.grad(value.sum(), logp)[0][0, :2].tolist() == pytest.approx([0, 0], abs=1e-15)


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
    for settings, still in (
        ({"learns_below": 0.0}, "own"),
        ({"fools_above": 1.0, "strength": 1e6}, "model"),
    ):
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


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: MinimumRisk(candidates=0), "candidates: 0 came, at least 1"),
        (lambda: MinimumRisk(candidates=1), "the risk of one candidate has no gradient"),
        (lambda: MinimumRisk(sharpness=0.0), "sharpness: 0.0 came, a number above 0"),
        (lambda: ProfessorForcing(size=0), "size: 0 came, at least 1"),
        (lambda: ProfessorForcing(fools_above=1.5), "fools_above: 1.5 came, a share"),
        (lambda: MinimumRisk().build(Writes(None), model("recurrent")), "minimum_risk came, and this task"),
        (
            lambda: ProfessorForcing().build(Writes(None), model("recurrent")),
            "professor_forcing came, and this",
        ),
        (
            lambda: Settings(max_updates=1, objective=MinimumRisk(), feeding=Constant(p=0.5)),
            "training.feeding: a probability below 1 came, but training.objective: MinimumRisk",
        ),
    ],
)
def test_what_cannot_be_is_refused(make: Any, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        make()
