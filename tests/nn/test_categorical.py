"""The head in a search: one block of memory instead of three, the same log-probabilities."""

import pytest
import torch
from torch import nn

from tests.laws.members import normal
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
