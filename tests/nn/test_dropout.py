"""Dropout from 16 random bits per element, and law 7 for its compiled code: it drops and adds the same."""

import pytest
import torch

from tests.nn.ways import needs, on_threads
from tests.slow import leading
from weft.errors import ConfigError
from weft.nn.kernels import choice
from weft.nn.kernels.dropout import Dropout, _hashes, dropout
from weft.nn.randomness import Rows, part_of_batch


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


needs_native = needs("dropping")


def plain_hash(n: int, key: int) -> int:
    """triple32 with a second word of the key, in Python's integers."""
    word = (1 << 32) - 1
    n = (n + (key & word)) & word
    n = ((n ^ n >> 17) * 0xED5AD4BB + (key >> 32 & word)) & word
    n = (n ^ n >> 11) * 0xAC4C1B51 & word
    n = (n ^ n >> 15) * 0x31848BAB & word
    return n ^ n >> 14


@pytest.mark.parametrize("key", [0, 1, -1, 0x123456789ABCDEF0, -(2**63)])
def test_hashes_are_those_of_integers(key: int) -> None:
    found = [n & 0xFFFFFFFF for n in _hashes(37, key).tolist()]
    assert found == [plain_hash(n, key) for n in range(37)]


@needs_native
@pytest.mark.parametrize("shape", [(1,), (31,), (32,), (5, 7, 11), (3, 100, 1009), ()])
@pytest.mark.parametrize("share", leading([0.15, 1e-6, 0.5, 0.999999], 2))
@pytest.mark.parametrize("threads", leading([2, 1]))
@pytest.mark.parametrize("summed", [False, True])
def test_compiled_code_agrees_with_torch(
    shape: tuple[int, ...], share: float, threads: int, summed: bool
) -> None:
    found = []
    with on_threads(threads):
        for way in ("native", "torch"):
            torch.manual_seed(3)
            x, onto, asked = (torch.randn(shape) for _ in range(3))
            given = [x.requires_grad_(), onto.requires_grad_()][: 1 + summed]
            with choice.use(fused=way):  # type: ignore[arg-type]
                y = dropout(x, share, training=True, onto=onto if summed else None)
            found.append((y.detach(), *torch.autograd.grad(y, given, asked)))
    for one, other in zip(*found, strict=True):
        assert torch.equal(one == 0, other == 0)
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-6)


@needs_native
def test_the_gradient_has_a_gradient() -> None:
    torch.manual_seed(1)
    x, dy = torch.randn(7, 11, requires_grad=True), torch.randn(7, 11, requires_grad=True)
    y = dropout(x.transpose(0, 1), 0.4, training=True)
    (dx,) = torch.autograd.grad(y, x, dy.transpose(0, 1), create_graph=True)
    (ddy,) = torch.autograd.grad(dx.sum(), dy)
    torch.testing.assert_close(ddy * dy.detach(), dx.detach())


def test_a_part_of_a_batch_drops_what_the_whole_drops() -> None:
    torch.manual_seed(1)
    x = torch.randn(5, 7, 3)
    torch.manual_seed(2)
    whole = dropout(x, 0.4, training=True, onto=x)
    torch.manual_seed(2)
    with part_of_batch(Rows(1, 3, 5)):
        part = dropout(x[1:3], 0.4, training=True, onto=x[1:3])
    torch.testing.assert_close(part, whole[1:3])


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_a_sum_without_training_or_with_all_dropped(share: float) -> None:
    x, onto = torch.randn(3, 5), torch.randn(3, 5)
    assert torch.equal(dropout(x, share, training=False, onto=onto), onto + x)
    if share == 1.0:
        assert torch.equal(dropout(x, share, training=True, onto=onto), onto)
