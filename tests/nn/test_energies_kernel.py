"""Law 7 for additive attention: energies, contexts and gradients are those of the formula in float64."""

import pytest
import torch
from torch import Tensor

from tests.laws.members import close, normal
from tests.nn.ways import near, needs, on_threads, second_derivatives
from weft.nn.kernels import choice
from weft.nn.kernels.attention import additive, look, plain_additive
from weft.nn.kernels.linear import repeating

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
    assert torch.equal(additive(*parts), plain_additive(*parts))
    parts = given(5, torch.float32)
    with choice.use(fused="torch"):
        assert torch.equal(additive(*parts), plain_additive(*parts))


MASK = torch.tensor([[1] * 7, [1, 1, 1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0, 0]]).bool()


def places_for(size: int, dtype: torch.dtype = torch.float64, *, scale: float = 1.0) -> list[Tensor]:
    """Queries [3, 4, A]; keys [3, 7, A] and values [3, 7, 5], parts of larger tensors; weight [1, A]."""
    keys, values = normal(3, 7, 2 * size, seed=2) * scale, normal(3, 7, 11, seed=4)
    made = [normal(3, 4, size) * scale, keys, normal(1, size, seed=3), values]
    query, keys, weight, values = (tensor.to(dtype).requires_grad_() for tensor in made)
    return [query, keys[..., :size], weight, values[..., :5]]


def looked(way: str, parts: list[Tensor]) -> list[Tensor]:
    with choice.use(fused=way):  # type: ignore[arg-type]
        context = look(*parts, MASK)
        return [context.detach(), *torch.autograd.grad(context, parts, normal(3, 4, 5, seed=5).to(context))]


def stepwise(way: str, parts: list[Tensor]) -> list[Tensor]:
    """One query after the other, as a decoder looks."""
    query, *rest = parts
    with choice.use(fused=way), repeating():  # type: ignore[arg-type]
        context = torch.cat([look(one[:, None], *rest, MASK) for one in query.unbind(1)], 1)
    again = [torch.autograd.grad(context.sum(), query, retain_graph=True)[0]]  # asks for nothing shared
    found = torch.autograd.grad(context, parts, normal(3, 4, 5, seed=5).to(context))
    return [context.detach(), *again, *found]


@pytest.mark.parametrize("scale", [1.0, 30.0], ids=["small", "out of range of the powers"])
@pytest.mark.parametrize("size", [1, 16, 37])
@pytest.mark.parametrize("threads", [1, 2])
def test_contexts_and_gradients_are_those_of_float64(size: int, threads: int, scale: float) -> None:
    with on_threads(threads):
        for computed in (looked, stepwise):
            mine = computed("auto", places_for(size, torch.float32, scale=scale))
            exact = computed("torch", places_for(size, scale=scale))
            near(mine, exact, 5e-5 if scale == 1 else 5e-4)  # energies of a hundred


@pytest.mark.usefixtures("unforced")
def test_law_2_padding_may_hold_anything() -> None:
    found = []
    for filler in (0.0, 1e4, float("nan")):
        query, keys, weight, values = (one.detach() for one in places_for(5, torch.float32))
        inputs = [query.requires_grad_(), keys, weight, values.masked_fill(~MASK[..., None], filler)]
        context = look(*inputs, MASK)
        found.append((context, torch.autograd.grad(context.sum(), query)[0]))
    for context, gradient in found[1:]:
        assert torch.equal(context, found[0][0]) and torch.equal(gradient, found[0][1])


def test_a_row_without_a_real_place_gets_equal_weights_and_nan_is_kept() -> None:
    query, keys, weight, values = (one.detach() for one in places_for(5, torch.float32))
    nothing = torch.zeros(3, 7, dtype=torch.bool)
    close(look(query, keys, weight, values, nothing), values.mean(1, keepdim=True).expand(3, 4, 5), 1e-6)
    query = query.clone()
    query[1, 2, 0] = torch.nan
    wrong = look(query, keys, weight, values, MASK).isnan().any(-1)
    assert wrong.nonzero().tolist() == [[1, 2]]


def test_a_second_derivative_of_contexts_is_the_formula_s() -> None:
    found = []
    for way, dtype in (("auto", torch.float32), ("torch", torch.float64)):
        with choice.use(fused=way), repeating():  # type: ignore[arg-type]
            found.append(second_derivatives(lambda *parts: look(*parts, MASK), places_for(5, dtype)))
    near(*found, 1e-3)
