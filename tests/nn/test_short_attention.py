"""Law 7 for compiled attention over short sequences: results and gradients are those in float64."""

import pytest
import torch
from torch import Tensor

from tests.laws.members import close, normal
from tests.nn.ways import near, needs, on_threads, second_derivatives
from tests.slow import leading
from weft import masks
from weft.nn.kernels import choice
from weft.nn.kernels.attention import LONGEST, WIDEST, attention, plain_attention, suits_short

pytestmark = needs("attention")
B, H = 5, 3


def parts(steps: int, places: int, size: int, dtype: torch.dtype) -> list[Tensor]:
    """Queries [B, T, D] and keys beside values [B, S, 2 D], D = H K."""
    made = normal(B, steps, H * size, seed=1), normal(B, places, 2 * H * size, seed=2)
    return [tensor.to(dtype).requires_grad_() for tensor in made]


def heads(given: list[Tensor]) -> list[Tensor]:
    """q [B, H, T, K], k and v [B, H, S, K], as views."""
    return [each.unflatten(2, (H, -1)).transpose(1, 2) for each in (given[0], *given[1].chunk(2, -1))]


def derived(given: list[Tensor], mask: Tensor | None, *, causal: bool) -> tuple[Tensor, ...]:
    exact = given[0].dtype == torch.float64
    y = (plain_attention if exact else attention)(*heads(given), mask, causal=causal)
    return y.detach(), *torch.autograd.grad(y, given, normal(*y.shape, seed=3).to(y.dtype))


def real(*lengths: int) -> Tensor:
    return masks.from_lengths(torch.tensor(lengths), max(lengths))[:, None, None]


CASES = {
    "everything": (7, 13, None, False),
    "one step, one key": (1, 1, None, False),
    "ragged keys": (11, 17, real(17, 1, 16, 5, 2), False),
    "one mask for all rows": (3, 7, masks.from_lengths(torch.tensor([5]), 7)[:, None, None], False),
    "nothing seen in a row": (3, 7, real(7, 0, 3, 0, 5), False),
    "causal": (19, 19, None, True),
    "whole registers": (32, 32, None, True),
    "longest": (LONGEST, LONGEST, None, True),
}


@pytest.mark.parametrize(("steps", "places", "mask", "causal"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("size", [16, 32, WIDEST])
@pytest.mark.parametrize("threads", leading([2, 1]))
def test_results_and_gradients_are_those_of_float64(
    steps: int, places: int, mask: Tensor | None, causal: bool, size: int, threads: int
) -> None:
    given = parts(steps, places, size, torch.float32)
    assert suits_short(*heads(given), mask, None, 0.0)
    with on_threads(threads):
        mine = derived(given, mask, causal=causal)
    exact = derived(parts(steps, places, size, torch.float64), mask, causal=causal)
    near(mine, exact, 1e-5)


def test_a_hidden_key_changes_no_bit_and_nan_is_kept() -> None:
    mask = real(7, 7, 7, 7, 3)
    given = parts(2, 7, 16, torch.float32)
    first = attention(*heads(given), mask).detach()
    with torch.no_grad():
        given[1][4, 3:] = 1e30
    assert torch.equal(attention(*heads(given), mask), first)
    with torch.no_grad():
        given[0][0, 1, 0] = torch.nan
    y = attention(*heads(given), mask)
    assert y[0, 0, 1].isnan().all() and not y[0, 0, 0].isnan().any() and not y[1:].isnan().any()


def test_a_query_that_sees_nothing_gets_the_mean() -> None:
    mask = real(7, 7, 7, 7, 7).clone()
    mask[2] = False
    q, k, v = heads(parts(2, 7, 16, torch.float32))
    close(attention(q, k, v, mask)[2], v[2].mean(1, keepdim=True).expand(-1, 2, -1), 1e-5)


def test_a_second_derivative_is_the_formula_s() -> None:
    mask = real(5, 1, 2, 3, 4)
    mine, exact = (
        second_derivatives(lambda *given, run=run: run(*heads(list(given)), mask), parts(3, 5, 16, dtype))
        for run, dtype in ((attention, torch.float32), (plain_attention, torch.float64))
    )
    near(mine, exact, 1e-3, relative=True)


@pytest.mark.parametrize("asks", [True, False])
def test_a_second_derivative_reaches_features_that_are_apart(asks: bool) -> None:
    found = []
    for function in (attention, plain_attention):
        q = normal(2, H, 16, 3, dtype=torch.float32).mT.requires_grad_(asks)
        k, v = (normal(2, H, 5, 16, seed=n, dtype=torch.float32).requires_grad_() for n in (2, 3))
        (first,) = torch.autograd.grad(function(q, k, v, None).square().sum(), k, create_graph=True)
        found.append(torch.autograd.grad(first.square().sum(), [q, k, v][not asks :]))
    near(*found, 1e-4, relative=True)


def test_other_cases_are_left_to_torch() -> None:
    given = parts(3, 5, 16, torch.float32)
    q, k, v = heads(given)
    mask = masks.causal(3, 5)[None, None]
    assert suits_short(q, k, v, None, None, 0.0)
    assert not suits_short(q, k, v, mask, None, 0.0)
    assert not suits_short(q, k, v, None, torch.zeros(1, H, 3, 5), 0.0)
    assert not suits_short(q, k, v, None, None, 0.1)
    assert not suits_short(q.double(), k, v, None, None, 0.0)
    assert not suits_short(q[..., :5], k[..., :5], v[..., :5], None, None, 0.0)
    assert not suits_short(*heads(parts(LONGEST + 1, 5, 16, torch.float32)), None, None, 0.0)
    with torch.no_grad():
        assert not suits_short(q, k, v, None, None, 0.0)
    with choice.use(fused="torch"):
        assert not suits_short(q, k, v, None, None, 0.0)
