"""The adaptive softmax: a distribution over all symbols, and a loss that computes only some groups."""

import math

import pytest
import torch
from torch import nn

from tests.laws.members import normal
from weft.errors import ConfigError
from weft.nn.heads.adaptive import Adaptive

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
