"""Heads of classes: in a search, with weights of classes, and the adaptive softmax."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.laws.members import normal
from weft.errors import ConfigError
from weft.nn.heads.adaptive import Adaptive
from weft.nn.heads.categorical import Categorical


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("tied", [None, nn.Embedding(71, 7)], ids=["own", "tied"])
def test_without_gradients_the_same_log_probabilities(dtype: torch.dtype, tied: nn.Embedding | None) -> None:
    head = Categorical(13, 71, tied=tied).to(dtype)
    head.bias.data = normal(71, seed=3).to(dtype)
    h = normal(5, 3, 13).to(dtype)
    logits = head.project(h).double() @ head.weight.double().mT + head.bias.double()
    want = logits.log_softmax(-1)
    near = {torch.float64: 1e-10, torch.float32: 1e-5, torch.bfloat16: 0.05}[dtype]
    with torch.no_grad():
        plain = head(h)
    for got in (head(h), plain):
        assert got.dtype == torch.promote_types(dtype, torch.float32)
        torch.testing.assert_close(got.double(), want, rtol=near, atol=near)


def test_labels_are_smoothed_in_training_alone() -> None:
    head = Categorical(5, 7, smoothing=0.3).double()
    h, target = normal(2, 3, 5), torch.tensor([[6, 0, 3], [1, 1, 2]])
    mask = torch.tensor([[True, True, False], [True, False, False]])
    logp = head(h).detach()
    right, mean = (
        one[mask].sum().item() for one in (logp.gather(2, target[..., None])[..., 0], logp.mean(2))
    )
    assert head.train().loss(h, target, mask).total.item() == pytest.approx(-0.7 * right - 0.3 * mean)
    assert head.eval().loss(h, target, mask).total.item() == pytest.approx(-right)


WEIGHTS = [0.5, 2.0, 1.25]
GIVEN = torch.randn(4, 1, 5).double(), torch.tensor([[0], [1], [2], [1]]), torch.ones(4, 1).bool()
"""Features, targets and mask."""


def head(weights: list[float], smoothing: float) -> Categorical:
    torch.manual_seed(2)
    return Categorical(5, 3, smoothing=smoothing, class_weights=weights).double()


def test_the_loss_is_torchs_with_gradients() -> None:
    h, target = torch.randn(7, 1, 5, dtype=torch.float64), torch.tensor([0, 1, 2, 1, 0, 2, 2])
    mask = torch.tensor([True] * 6 + [False])[:, None]
    for smoothing in (0.0, 0.1):
        one, plain = head(WEIGHTS, smoothing), head([], smoothing)
        found = one.loss(h, target[:, None], mask)
        logits = F.linear(h[:6, 0], plain.weight, plain.bias)
        weights = torch.tensor(WEIGHTS, dtype=torch.float64)
        want = F.cross_entropy(
            logits, target[:6], weight=weights, label_smoothing=smoothing, reduction="none"
        )
        torch.testing.assert_close(found.total, want.sum(), rtol=0, atol=1e-10)
        assert int(found.count) == 6
        found.total.backward()
        assert one.weight.grad is not None and bool(one.weight.grad.abs().sum() > 0)


def test_one_weight_for_all_is_the_plain_loss() -> None:
    one, plain = head([1.0] * 3, 0.1), head([], 0.1)
    torch.testing.assert_close(one.loss(*GIVEN).total, plain.loss(*GIVEN).total, rtol=0, atol=1e-10)


def test_validation_and_saved_weights_do_not_know_them() -> None:
    one, plain = head(WEIGHTS, 0.0).eval(), head([], 0.0).eval()
    assert torch.equal(one.loss(*GIVEN).total, plain.loss(*GIVEN).total)
    assert sorted(one.state_dict()) == sorted(plain.state_dict())


CUTOFFS = (3, 7)
GROUPS = (range(3, 7), range(7, 17))


def head_of(tied: bool = False) -> Adaptive:
    table = nn.Embedding(17, 5) if tied else None
    head = Adaptive(13, 17, cutoffs=CUTOFFS, tied=table).double()
    for seed, parameter in enumerate(head.parameters()):
        parameter.data = normal(*parameter.shape, seed=seed)
    return head


def by_hand(head: Adaptive, h: torch.Tensor) -> list[float]:
    """p of each symbol for features [D]."""
    h = head.words.project(h)
    logits = (head.words.weight @ h + head.words.bias).tolist()
    group = (head.groups @ h + head.group_bias).tolist()
    total = sum(math.exp(one) for one in (*logits[:3], *group))
    found = [math.exp(one) / total for one in logits[:3]]
    for share, symbols in zip(group, GROUPS, strict=True):
        inside = sum(math.exp(logits[symbol]) for symbol in symbols)
        found += [math.exp(share) / total * math.exp(logits[symbol]) / inside for symbol in symbols]
    return found


@pytest.mark.parametrize("tied", [False, True])
def test_the_probabilities_are_the_formula_and_the_loss_is_theirs(tied: bool) -> None:
    head, h = head_of(tied), normal(2, 11, 13, seed=9)
    logp = head(h)
    for row, place in ((0, 0), (1, 10)):
        want = by_hand(head, h[row, place])
        assert math.isclose(sum(want), 1.0)
        torch.testing.assert_close(logp[row, place].exp().tolist(), want, rtol=0, atol=1e-10)
    target = torch.randint(0, 17, (2, 11), generator=torch.Generator().manual_seed(5))
    mask = torch.ones(2, 11, dtype=torch.bool)
    want = -logp.gather(-1, target[..., None]).sum()
    torch.testing.assert_close(head.loss(h, target, mask).total, want, rtol=0, atol=1e-10)


@pytest.mark.parametrize("symbols", [range(3), GROUPS[1]], ids=["no group", "one group"])
def test_a_batch_without_targets_in_a_group_leaves_its_rows_alone(symbols: range) -> None:
    head, h = head_of(), normal(2, 11, 13, seed=9)
    target = torch.full((2, 11), symbols[-1])
    head.loss(h, target, torch.ones(2, 11, dtype=torch.bool)).total.backward()
    reached = head.words.weight.grad.abs().sum(1) > 0  # type: ignore[union-attr]
    assert reached.nonzero()[:, 0].tolist() == sorted({*range(3), *symbols})


@pytest.mark.parametrize("cutoffs", [(), (0, 4), (7, 7), (9, 4), (17,)])
def test_cutoffs_must_rise_within_the_symbols(cutoffs: tuple[int, ...]) -> None:
    with pytest.raises(ConfigError, match="cutoffs: expected rising numbers"):
        Adaptive(5, 17, cutoffs=cutoffs)
