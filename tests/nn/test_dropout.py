"""Dropout from 16 random bits per element: rate, mean, and gradients where the output is not zero."""

import pytest
import torch

from weft.errors import ConfigError
from weft.nn.kernels.dropout import Dropout, dropout


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.9])
def test_the_share_and_the_mean(share: float) -> None:
    torch.manual_seed(1)
    y = dropout(
        torch.ones(1000, 401, dtype=torch.float64), share, training=True
    )  # 401 is not a multiple of four
    # 401,000 draws: the standard error of the share is at most 0.0008
    assert (y == 0).double().mean().item() == pytest.approx(share, abs=0.004)
    assert y.mean().item() == pytest.approx(1.0, abs=0.04)
    assert y[y != 0].unique().tolist() == pytest.approx([1 / (1 - share)], rel=2e-4 / (1 - share))


def test_elements_are_dropped_independently() -> None:
    torch.manual_seed(1)
    kept = dropout(torch.ones(200_000, 2), 0.5, training=True) > 0
    assert (kept[:, 0] & kept[:, 1]).double().mean().item() == pytest.approx(0.25, abs=0.005)
    again = dropout(torch.ones(200_000, 2), 0.5, training=True) > 0
    assert (kept == again).double().mean().item() == pytest.approx(0.5, abs=0.005)


def test_the_gradient_is_scaled_like_the_output() -> None:
    torch.manual_seed(1)
    x = torch.randn(13, 7, requires_grad=True)
    y = dropout(x, 0.4, training=True)
    y.sum().backward()
    torch.testing.assert_close(x.grad * x.detach(), y.detach())


def test_the_same_seed_drops_the_same() -> None:
    drawn = []
    for _ in range(2):
        torch.manual_seed(7)
        drawn.append(dropout(torch.ones(3, 5), 0.5, training=True))
    assert torch.equal(*drawn)


def test_nothing_happens_in_evaluation_or_at_share_zero() -> None:
    x = torch.randn(3, 5)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0)(x) is x
    assert not Dropout(1.0)(x).any()


@pytest.mark.parametrize("share", [-0.1, 1.5])
def test_a_share_is_between_zero_and_one(share: float) -> None:
    with pytest.raises(ConfigError, match=r"dropout: "):
        Dropout(share)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_dtype_stays(dtype: torch.dtype) -> None:
    assert dropout(torch.ones(5, dtype=dtype), 0.1, training=True).dtype == dtype
