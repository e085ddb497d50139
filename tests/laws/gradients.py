"""Checks that gradients reach all parameters, with a threshold: a true zero may be computed as 1e-17."""

from typing import Any

from torch import Tensor, nn

from tests.laws.members import normal
from weft import tree

# A gradient's share of the largest one: rounding leaves at most 1e-13 of a true zero in float64, and no true
# gradient of the members here is below 5e-6.
NOISE = 1e-9


def every_parameter_reached(module: nn.Module, value: Any, *, except_for: tuple[str, ...] = ()) -> None:
    """Gradients of a random combination of all tensors in `value` are finite and reach everything."""
    if not any(True for _ in module.parameters()):
        return
    parts = list(tree.leaves(value))
    total = sum(
        (normal(*leaf.shape, seed=k) * leaf).sum() for k, leaf in enumerate(parts) if leaf.is_floating_point()
    )
    module.zero_grad()
    total.backward()
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
