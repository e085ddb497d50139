"""The recurrences of C13 in chunks are the loop over steps, also where decays leave the range of float32."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.laws.members import close, normal
from weft.errors import ConfigError
from weft.nn.cells.convolution import ShortConvolution, _Depthwise
from weft.nn.cells.delta import Delta
from weft.nn.cells.hgrn2 import HGRN2
from weft.nn.cells.retention import Retention
from weft.nn.kernels import choice
from weft.nn.kernels.matrix import CHUNK, Corrected, Decayed, Replaced

ROWS, HEADS, KEYS, VALUES = 2, 3, 5, 7
Recurrence = Decayed | Replaced | Corrected
Make = Callable[[int, Tensor, torch.dtype], Recurrence]


def decayed(steps: int, decay: Tensor, dtype: torch.dtype) -> Decayed:
    q, k = (normal(ROWS, steps, HEADS, KEYS, seed=n, dtype=dtype) for n in (1, 2))
    return Decayed(q, k, normal(ROWS, steps, HEADS, VALUES, seed=3, dtype=dtype), decay.to(dtype))


def delta(steps: int, decay: Tensor, dtype: torch.dtype) -> Replaced:
    q, k, v, decay = decayed(steps, decay, dtype)
    rate = normal(ROWS, steps, HEADS, 1, seed=5, dtype=dtype).sigmoid()
    return Replaced(q, F.normalize(k, dim=-1), v, decay, rate)


def general(steps: int, decay: Tensor, dtype: torch.dtype) -> Corrected:
    q, k, v, decay = decayed(steps, decay, dtype)
    c = F.normalize(normal(ROWS, steps, HEADS, KEYS, seed=4, dtype=dtype), dim=-1)
    return Corrected(q, k, v, decay, -c, normal(ROWS, steps, HEADS, 1, seed=5, dtype=dtype).sigmoid() * c)


KINDS: dict[str, tuple[Make, int]] = {
    "decayed-head": (decayed, 1),
    "decayed-row": (decayed, KEYS),
    "delta-head": (delta, 1),
    "general-row": (general, KEYS),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def stepped(asked: Recurrence, state: Tensor) -> tuple[Tensor, Tensor]:
    outputs = []
    for t in range(asked.query.shape[1]):
        o, state = type(asked)(*(part[:, t : t + 1] for part in asked)).one(state)
        outputs.append(o)
    return torch.cat(outputs, 1), state


def made(kind: str, steps: int, low: float, high: float, dtype: torch.dtype) -> Recurrence:
    """Decays log-uniform between two numbers."""
    make, width = KINDS[kind]
    spread = normal(ROWS, steps, HEADS, width, seed=6).sigmoid()
    return make(steps, -(low ** (1 - spread) * high**spread), dtype)


@every_kind
@pytest.mark.parametrize("steps", [1, 2, 3, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK - 5])
def test_chunks_are_the_loop(kind: str, steps: int) -> None:
    asked = made(kind, steps, 1e-3, 1.0, torch.float64)
    state = normal(ROWS, HEADS, KEYS, VALUES, seed=8)
    close(asked.all(state), stepped(asked, state))


@every_kind
@pytest.mark.parametrize("way", ["auto", "torch"])
@pytest.mark.parametrize(("low", "high"), [(1e-9, 1e-6), (1e-4, 300.0), (50.0, 1e5)])
def test_decays_of_any_size_neither_overflow_nor_lose_digits(
    kind: str, low: float, high: float, way: choice.Cells
) -> None:
    steps = 2 * CHUNK + 3
    asked, exact = (made(kind, steps, low, high, dtype) for dtype in (torch.float32, torch.float64))
    state = normal(ROWS, HEADS, KEYS, VALUES, seed=8)
    parts = [part.clone().requires_grad_() for part in asked]
    with choice.use(cells=way):
        found = type(asked)(*parts).all(state.float())
    for one, other in zip(found, stepped(exact, state), strict=True):
        bound = 2e-5 * max(1.0, float(other.abs().max()))  # float32, sums of up to 131 terms
        torch.testing.assert_close(one.double(), other, rtol=0, atol=bound)
    (found[0].sum() + found[1].sum()).backward()
    assert all(part.grad is not None and part.grad.isfinite().all() for part in parts)


@every_kind
def test_gradients_of_chunks_are_those_of_the_loop(kind: str) -> None:
    found = []
    for run in (lambda asked, state: asked.all(state), stepped):
        asked = made(kind, CHUNK + 3, 1e-3, 30.0, torch.float64)
        parts = [part.clone().requires_grad_() for part in asked]
        state = normal(ROWS, HEADS, KEYS, VALUES, seed=8).requires_grad_()
        ends = run(type(asked)(*parts), state)
        total = sum((normal(*end.shape, seed=n) * end).sum() for n, end in enumerate(ends))
        found.append(torch.autograd.grad(total, [*parts, state]))
    close(found[0], found[1], 1e-9)  # sums of products of 67 steps, up to 1e3


def test_a_short_convolution_is_that_of_torch_twice_differentiated() -> None:
    short = ShortConvolution(5, 3).double()
    short.bias.data = normal(5)
    x, before = normal(2, 11, 5), normal(2, 10, seed=2)
    y, after = short(x, before, None)
    seen = torch.cat([before.view(2, 2, 5), x], 1)
    close(y, F.conv1d(seen.mT, short.weight.detach().T[:, None], short.bias, groups=5).mT)
    close(after, x[:, -2:].flatten(1))
    leaf, weight = seen.clone().requires_grad_(), short.weight.detach().requires_grad_()
    assert torch.autograd.gradcheck(_Depthwise.apply, (leaf, weight))
    assert torch.autograd.gradgradcheck(_Depthwise.apply, (leaf, weight))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Retention(2, 3, num_heads=0), "num_heads of at least 1.*got num_heads 0"),
        (lambda: Retention(2, 3, key_size=-1), "key_size -1"),
        (lambda: HGRN2(2, 3, lower_bound=1.0), "lower_bound: .*1.0"),
        (lambda: Delta(2, 3, convolution=1), "convolution: .*1"),
    ],
)
def test_settings_that_do_not_fit_are_refused(make: Callable[[], object], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        make()


@every_kind
@pytest.mark.parametrize("reset", [-1000.0, -1e5])
def test_a_step_that_forgets_all_drowns_none_after_it(kind: str, reset: float) -> None:
    asked, exact = (made(kind, CHUNK + 3, 1e-3, 0.1, dtype) for dtype in (torch.float32, torch.float64))
    for one in (asked, exact):
        one.decay[:, 17] = reset
    state = normal(ROWS, HEADS, KEYS, VALUES, seed=8)
    with choice.use(cells="torch"):
        found = asked.all(state.float())
    for one, other in zip(found, stepped(exact, state), strict=True):
        assert (one.double() - other).norm() <= 2e-6 * other.norm()
