"""Law 7 for additive attention: compiled energies and their gradients are those of the formula in float64."""

import pytest
import torch
from torch import Tensor

from tests.laws.members import normal
from tests.nn.ways import near, needs, on_threads, second_derivatives
from weft.nn.kernels import choice
from weft.nn.kernels.additive import additive, by_torch

pytestmark = needs("energies")


def given(size: int, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    """Queries [3, 4, A], keys [3, 9, A] that are part of a larger tensor, weight [1, A]."""
    wide = normal(3, 9, 2 * size, seed=2)
    made = [normal(3, 4, size), wide, normal(1, size, seed=3)]
    query, wide, weight = (tensor.to(dtype).requires_grad_() for tensor in made)
    return [query, wide[..., :size], weight]


def derived(way: str, parts: list[Tensor], asked: Tensor) -> tuple[Tensor, ...]:
    with choice.use(fused=way):  # type: ignore[arg-type]
        energy = additive(*parts)
        return energy.detach(), *torch.autograd.grad(energy, parts, asked.to(energy.dtype))


@pytest.mark.parametrize("size", [1, 16, 37])
@pytest.mark.parametrize("threads", [1, 2])
def test_energies_and_gradients_are_those_of_float64(size: int, threads: int) -> None:
    asked = normal(3, 4, 9, seed=5)
    asked[1, :, 5:] = 0.0  # padding
    with on_threads(threads):
        mine = derived("native", given(size, torch.float32), asked)
    near(mine, derived("torch", given(size), asked), 2e-5)


def test_bfloat16_is_widened() -> None:
    asked = normal(3, 4, 9, seed=5)
    mine = derived("native", given(37, torch.bfloat16), asked)
    assert {one.dtype for one in mine} == {torch.bfloat16}
    near(mine, derived("torch", given(37), asked), 0.15)


def test_a_second_derivative_is_the_formula_s() -> None:
    found = []
    for way, dtype in (("native", torch.float32), ("torch", torch.float64)):
        with choice.use(fused=way):  # type: ignore[arg-type]
            found.append(second_derivatives(additive, given(5, dtype)))
    near(*found, 1e-3)


def test_float64_and_forced_ways_go_by_torch() -> None:
    parts = given(5)
    assert torch.equal(additive(*parts), by_torch(*parts))
    parts = given(5, torch.float32)
    with choice.use(fused="torch"):
        assert torch.equal(additive(*parts), by_torch(*parts))
