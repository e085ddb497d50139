"""A weighted cross-entropy is torch's, in training only."""

import torch
import torch.nn.functional as F

from weft.nn.heads.categorical import Categorical

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
