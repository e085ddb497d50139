"""D2: minimum risk equals an enumeration over tiny sets of candidates, value and gradient, in float64."""

import itertools
import math

import pytest
import torch
from torch import Tensor

from tests.train.writing import SOURCES, TARGETS, Writes, batch, every_model, model, seeded, words
from weft.metrics.wer import Wer
from weft.models import Generator
from weft.text.vocabulary import EOS, SOS, Vocabulary
from weft.train.objectives.minimum_risk import MinimumRisk, Risk, expected


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return words()


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
