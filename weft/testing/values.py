"""Inputs of the laws, always the same, and comparisons: what tests of Weft's own parts use too.

Read next: cells.py, the laws of a cell.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from weft import masks, tree
from weft.rooms import check_complete

# Different primes, so that confused axes raise errors.
ROWS, SOURCE, TARGET, READ, SIZE = 5, 7, 11, 3, 13
SOURCE_LENGTHS = (7, 4, 1, 6, 2)  # always includes a row with a single real position

# A gradient's share of the largest one: rounding leaves at most 1e-13 of a true zero in float64, and no true
# gradient of Weft's own parts is below 5e-6.
NOISE = 1e-9


def keeps(laws: list[Callable[..., None]], *given: Any) -> None:
    """Run the laws one after the other; the error names all that are broken, its cause is the first."""
    if given and isinstance(given[0], type):
        check_complete(given[0])
    broken: dict[str, Exception] = {}
    for law in laws:
        torch.manual_seed(1)  # no law depends on those before it
        try:
            law(*given)
        except Exception as error:  # noqa: BLE001  a part that is wrong may raise anything
            broken[law.__name__] = error
    if broken:
        name, first = next(iter(broken.items()))
        raise AssertionError(f"broken: {', '.join(broken)}; {name}: {first}") from first


def ready(make: Callable[[], nn.Module], dtype: torch.dtype = torch.float64, seed: int = 3) -> Any:
    """A member in evaluation mode with random parameters: none remains zero or one."""
    module = make().to(dtype).eval()
    generator = torch.Generator().manual_seed(seed)
    for parameter in module.parameters():
        drawn = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        parameter.data.copy_(0.4 * drawn)
    return module


def normal(*shape: int, seed: int = 1, dtype: torch.dtype = torch.float64) -> Tensor:
    """Numbers from N(0, 1), always the same for a seed."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def source(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """x [B, S, D] with large values as padding, and its mask."""
    mask = masks.from_lengths(torch.tensor(SOURCE_LENGTHS), SOURCE)
    return loud(normal(ROWS, SOURCE, READ, dtype=dtype), mask), mask


def loud(x: Tensor, mask: Tensor) -> Tensor:
    """Set padding to 50, among values around 1, so that using it changes results."""
    return x.masked_fill(~mask[..., None], 50.0)


def close(got: Any, want: Any, tolerance: float = 1e-10) -> None:
    """Assert that two trees of tensors are equal up to the tolerance."""
    gots, wants = list(tree.leaves(got)), list(tree.leaves(want))
    assert len(gots) == len(wants) > 0
    for one, other in zip(gots, wants, strict=True):
        same_kind = one.dtype == other.dtype and one.shape == other.shape and one.is_floating_point()
        if not (same_kind and torch.allclose(one, other, rtol=tolerance, atol=tolerance)):
            # which takes four times as long
            torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


class _Run(nn.Module):
    def __init__(self, module: nn.Module, function: Callable[..., Any]) -> None:
        super().__init__()
        self.module = module
        self.function = function

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(*inputs)


def gradcheck(module: nn.Module, function: Callable[..., Any], *inputs: Tensor) -> None:
    """Law 5: derivatives of `function`, which calls `module`, by its inputs and by all parameters.

    Projected on random directions (fast mode), so that a check needs a few calls instead of thousands.
    """
    run = _Run(module, function)
    names, sizes = [], []
    for name, parameter in run.named_parameters():
        names.append(name)
        sizes.append(parameter.shape)
    flat = torch.cat([torch.zeros(0, dtype=torch.float64), *(p.detach().flatten() for p in run.parameters())])

    def outputs(flat: Tensor, *inputs: Tensor) -> Any:
        parts = flat.split([size.numel() for size in sizes])
        given = {name: part.view(size) for name, part, size in zip(names, parts, sizes, strict=True)}
        return torch.func.functional_call(run, given, inputs)

    wanted = [leaf.detach().clone().requires_grad_() for leaf in (flat, *inputs) if leaf.numel()]
    if not names:
        assert torch.autograd.gradcheck(function, wanted, fast_mode=True)
    else:
        assert torch.autograd.gradcheck(outputs, wanted, fast_mode=True)


def near(got: Tensor, want: Tensor, share: float) -> None:
    """Assert that the error's norm is at most this fraction of the norm of the expected value."""
    assert float((got - want).detach().norm()) <= share * float(want.detach().norm())


def every_parameter_reached(module: nn.Module, value: Any, *, except_for: tuple[str, ...] = ()) -> None:
    """Gradients of a random combination of all tensors in `value` are finite and reach everything."""
    if not any(True for _ in module.parameters()):
        return
    parts = list(tree.leaves(value))
    total = sum(
        (normal(*leaf.shape, seed=k) * leaf).sum() for k, leaf in enumerate(parts) if leaf.is_floating_point()
    )
    module.zero_grad()
    total.backward()  # type: ignore[union-attr]
    gradients_reach_every_parameter(module, except_for=except_for)


def gradients_reach_every_parameter(module: nn.Module, *, except_for: tuple[str, ...] = ()) -> None:
    """After a backward pass: each parameter's gradient is finite and larger than rounding noise."""
    gradients = {name: parameter.grad for name, parameter in module.named_parameters()}
    for name, gradient in gradients.items():
        assert gradient is None or gradient.isfinite().all(), name
    largest = max(float(gradient.abs().max()) for gradient in gradients.values() if gradient is not None)
    for name, gradient in gradients.items():
        if not name.startswith(except_for or ("\0",)):
            assert gradient is not None, f"no gradient reaches {name}"
            assert more_than_noise(gradient, largest).any(), f"zero gradient at {name}, but for rounding"


def more_than_noise(x: Tensor, largest: float | Tensor) -> Tensor:
    """Where x is larger than rounding errors of zeros computed from numbers up to `largest`."""
    return x.abs() > NOISE * largest
