"""Law 7 for the one linear product: oneDNN's and torch's agree."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from tests.laws.members import normal
from tests.nn.ways import needs_tiles, on_threads
from weft.errors import ConfigError
from weft.nn.kernels import choice
from weft.nn.kernels.linear import linear, onednn, tiled

needs_onednn = pytest.mark.skipif(onednn() is None, reason="this torch has no oneDNN product")
other_ways = pytest.mark.parametrize(
    "way", [pytest.param("onednn", marks=needs_onednn), pytest.param("tiles", marks=needs_tiles)]
)


@pytest.fixture(autouse=True)
def _no_product_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "SMALL_PRODUCT", 0)


def both(*sizes: int, bias: bool, way: str) -> list[tuple[Tensor, ...]]:
    results = []
    for each in ("torch", way):
        x = normal(*sizes[:-1], seed=1, dtype=torch.float32).requires_grad_()
        weight = normal(sizes[-1], sizes[-2], seed=2, dtype=torch.float32).requires_grad_()
        b = normal(sizes[-1], seed=3, dtype=torch.float32).requires_grad_() if bias else None
        wanted = [x, weight, *([b] if b is not None else [])]
        with choice.use(linear=each):  # type: ignore[arg-type]
            y = linear(x, weight, b)
            grads = torch.autograd.grad((y * y).sum(), wanted, create_graph=True)
            again = torch.autograd.grad(sum((g * g).sum() for g in grads), wanted)
        results.append((y, *grads, *(g / 1e3 for g in again)))
    return results


@other_ways
@pytest.mark.parametrize(
    "sizes", [(5, 7, 11), (3, 5, 7, 11), (1, 13, 2), (2, 1, 17, 3), (150, 33, 49), (17, 1100, 20)], ids=str
)
@pytest.mark.parametrize("bias", [True, False])
def test_law_7_values_gradients_and_second_derivatives_agree(
    sizes: tuple[int, ...], bias: bool, way: str
) -> None:
    one, other = both(*sizes, bias=bias, way=way)
    for a, b in zip(one, other, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5 * float(a.detach().abs().max()))


@needs_tiles
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("sizes", [(1, 1, 1), (33, 40, 17), (300, 512, 97), (100, 3200, 130)], ids=str)
@pytest.mark.parametrize("turned", [(False, False), (False, True), (True, False), (True, True)], ids=str)
def test_tiles_are_as_exact_as_float32(
    sizes: tuple[int, int, int], turned: tuple[bool, bool], threads: int
) -> None:
    rows, inputs, outputs = sizes
    x, weight = normal(rows, inputs, seed=1), normal(outputs, inputs, seed=2)
    x = x.float().mT.contiguous().mT if turned[0] else x.float()
    weight = weight.float().mT.contiguous().mT if turned[1] else weight.float()
    exact = x.double() @ weight.double().mT
    with on_threads(threads):
        split, plain = tiled(x, weight, None), x @ weight.mT
    assert (split - exact).abs().max() <= 2 * (plain - exact).abs().max() + 1e-6


@needs_tiles
def test_numbers_of_every_size_are_cut_without_loss() -> None:
    x = torch.tensor([[3e38, 1e-30, -1.0000001, 16777217.0, 0.1, -0.0, 1 / 3, 123456.789]])
    assert torch.equal(tiled(x, torch.eye(8), None), x)
    bad = torch.tensor([[torch.nan, 1.0], [torch.inf, 1.0], [1.0, 1.0]])
    y = tiled(bad, torch.ones(3, 2), None)
    assert not y[:2].isfinite().any() and (y[2] == 2).all()


@needs_tiles
def test_tiles_are_shared_with_onednn() -> None:
    half, other = normal(64, 128, seed=1).bfloat16(), normal(256, 128, seed=2).bfloat16()
    x, weight = normal(64, 128, seed=3).float(), normal(96, 128, seed=4).float()
    theirs, ours = F.linear(half, other), tiled(x, weight, None)
    for _ in range(20):
        assert torch.equal(F.linear(half, other), theirs)
        assert torch.equal(tiled(x, weight, None), ours)


@pytest.mark.parametrize("odd", ["float64", "bfloat16", "one row", "autocast", "wrong sizes"])
def test_what_onednn_does_not_serve_goes_to_torch(odd: str) -> None:
    x, weight = torch.ones(3, 5), torch.ones(7, 5)
    if odd in {"float64", "bfloat16"}:
        x, weight = (t.to(getattr(torch, odd)) for t in (x, weight))
    if odd == "one row":
        x = x[0]
    if odd == "wrong sizes":
        with choice.use(linear="onednn"), pytest.raises(RuntimeError, match="shapes cannot be"):
            linear(x[:, :4], weight)
        return
    with torch.autocast("cpu", enabled=odd == "autocast"), choice.use(linear="onednn"):
        y = linear(x, weight)
    assert y.dtype == (torch.bfloat16 if odd == "autocast" else x.dtype)
    assert (y == 5).all()


def test_a_name_that_does_not_exist_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="mkl"), choice.use(linear="mkl"):  # type: ignore[arg-type]
        pass
    with pytest.raises(ConfigError, match="cells: "), choice.use(cells="fast"):
        pass
    monkeypatch.setattr(choice, "_forced", {})
    monkeypatch.setenv("WEFT_CELLS", "triton")  # kernels that Weft once had
    with pytest.raises(ConfigError, match=r"^WEFT_CELLS: expected one of auto, native, .* got 'triton'$"):
        choice.forced("cells")


class Multiplications(TorchDispatchMode):
    """The names of the operations that torch runs."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


@torch.no_grad()
def test_a_transposed_batch_is_one_product() -> None:
    x, weight = normal(3, 5, 7, dtype=torch.float32).transpose(0, 1), normal(11, 7, dtype=torch.float32)
    with Multiplications() as seen:
        y = linear(x, weight)
    assert "bmm" not in seen.names
    torch.testing.assert_close(y, x.contiguous() @ weight.T, atol=1e-5, rtol=1e-5)
