"""The compiled ways as parameters of a test, each skipped loudly where this machine has none."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.laws.members import close, normal
from weft import native


def needs(source: str = "cells") -> Any:
    """A mark that skips where the compiled code of a source file is missing."""
    found = native.loaded(source)
    return pytest.mark.skipif(found.library is None, reason=found.reason)


@contextmanager
def on_threads(count: int) -> Iterator[None]:
    """Compute on so many threads in the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def weighed(outs: Iterable[Tensor]) -> Tensor:
    """A fixed combination of all numbers of the outputs, of which a test takes gradients."""
    return torch.stack(
        [(normal(*o.shape, seed=k, dtype=o.dtype) * o).sum() for k, o in enumerate(outs)]
    ).sum()


def second_derivatives(run: Callable[..., Any], given: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """Of the squares of all that a function gives, by copies of these tensors."""
    given = [one.detach().requires_grad_() for one in given]
    found = run(*given)
    outs = [found] if isinstance(found, Tensor) else found
    first = torch.autograd.grad(sum(out.square().sum() for out in outs), given, create_graph=True)
    return torch.autograd.grad(sum(one.square().sum() for one in first), given, materialize_grads=True)


def near(
    found: Iterable[Tensor], exact: Iterable[Tensor], bound: float = 1e-10, *, relative: bool = False
) -> None:
    """Compare tensors in float64; `relative` to the largest number of each, where sums may cancel."""
    for one, other in zip(found, exact, strict=True):
        scale = max(1.0, float(other.detach().abs().max())) if relative else 1.0
        close(one.double(), other.double(), bound * scale)


needs_native, needs_tiles = needs(), needs("tiles")
COMPILED = [pytest.param("native", marks=needs_native), pytest.param("tiles", marks=needs_tiles)]
needs_narrow = pytest.mark.skipif(not native.narrow_cells(), reason="no compiled cells in bfloat16 here")


def as_bytes(weight: Tensor) -> Tensor:
    """What compiled code multiplies in int8 for weights [O, K]: each row on a grid of its own.

    Without VNNI the sum of two neighbours must fit into a byte, too.
    """
    top = weight.abs().amax(-1, keepdim=True)
    if not native.narrow():
        pairs = F.pad(weight, (0, weight.shape[1] % 2)).unflatten(-1, (-1, 2)).sum(-1)
        top = torch.maximum(top, pairs.abs().amax(-1, keepdim=True))
    scale = torch.where(top > 1e-30, top / 127, 1.0)
    return (weight / scale).round() * scale
