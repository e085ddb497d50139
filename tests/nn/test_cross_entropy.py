"""The fused softmax and cross-entropy equals the simple implementation, in any chunks, compiled or not."""

import pytest
import torch
from torch import Tensor

from tests.laws.members import close, normal
from tests.nn.ways import near, needs, on_threads
from tests.slow import leading
from weft.errors import ShapeError
from weft.nn.kernels import choice
from weft.nn.kernels import losses as kernel
from weft.nn.kernels.losses import cross_entropy, plain_cross_entropy

N, D, V = 13, 5, 7


compiled = needs("losses")
ways = pytest.mark.parametrize("way", [pytest.param("native", marks=compiled), "torch"])
smoothings = pytest.mark.parametrize("smoothing", [0.0, 0.1])
biases = pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])


@pytest.fixture(params=[1, 3 * V, 1 << 20], ids=["a row a chunk", "three rows a chunk", "one chunk"])
def chunks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "ELEMENTS", request.param)


def inputs(bias: bool, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
    h = normal(N, D, dtype=dtype).requires_grad_()
    weight = normal(V, D, seed=2, dtype=dtype).requires_grad_()
    b = normal(V, seed=3, dtype=dtype).requires_grad_() if bias else None
    return h, weight, b, torch.arange(N) * 3 % V


@smoothings
@biases
@pytest.mark.usefixtures("chunks")
def test_law_7_values_and_gradients_equal_the_plain_twin(smoothing: float, bias: bool) -> None:
    results = []
    for function in (cross_entropy, plain_cross_entropy):
        h, weight, b, target = inputs(bias)
        total, plain = function(h, weight, b, target, smoothing)
        (1.7 * total).backward()  # a factor, as in gradient accumulation or loss scaling
        results.append((total, plain, h.grad, weight.grad, b.grad if b is not None else None))
    close(results[0], results[1])
    assert not results[0][1].requires_grad


@pytest.mark.parametrize(
    ("smoothing", "bias"), leading([(0.1, True), (0.0, True), (0.1, False), (0.0, False)])
)
@pytest.mark.usefixtures("chunks")
def test_law_5_gradcheck(smoothing: float, bias: bool) -> None:
    h, weight, b, target = inputs(bias)

    def total(h: Tensor, weight: Tensor, *rest: Tensor) -> Tensor:
        return cross_entropy(h, weight, *(rest or (None,)), target, smoothing)[0]

    assert torch.autograd.gradcheck(total, (h, weight) if b is None else (h, weight, b))


@pytest.mark.parametrize("learns", ["h", "weight"])
def test_only_one_side_learns(learns: str) -> None:
    h, weight, b, target = inputs(True)
    (weight if learns == "h" else h).requires_grad_(False)
    cross_entropy(h, weight, b, target)[0].backward()
    other = inputs(True)
    plain_cross_entropy(*other)[0].backward()
    wanted = {"h": (h, other[0]), "weight": (weight, other[1])}[learns]
    close(wanted[0].grad, wanted[1].grad)


def test_without_gradients_the_values_are_the_same() -> None:
    h, weight, b, target = inputs(True)
    with torch.no_grad():
        close(cross_entropy(h, weight, b, target, 0.1), plain_cross_entropy(h, weight, b, target, 0.1))


def test_large_logits_stay_finite() -> None:
    h, weight, _, target = inputs(False)
    total, _ = cross_entropy(h * 1e4, weight, None, target, 0.1)
    total.backward()
    assert total.isfinite() and h.grad.isfinite().all() and weight.grad.isfinite().all()


def test_no_rows_cost_nothing() -> None:
    h, weight, b, target = inputs(True)
    total, plain = cross_entropy(h[:0], weight, b, target[:0])
    total.backward()
    assert (total.detach().item(), plain.item(), weight.grad.abs().sum().item()) == (0.0, 0.0, 0.0)


@pytest.mark.usefixtures("chunks")
def test_bfloat16_autocast_stays_near_float32() -> None:
    exact, rounded = inputs(True, torch.float32), inputs(True, torch.float32)
    want = plain_cross_entropy(*exact, 0.1)[0]
    want.backward()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        got = cross_entropy(*rounded, 0.1)[0]
    got.backward()
    assert got.dtype == torch.float32
    close(got, want, 0.01)  # bfloat16 has 8 significant bits, 1/256 = 0.004
    for one, other in zip(rounded[:3], exact[:3], strict=True):
        assert one.grad.dtype == torch.float32
        assert (one.grad - other.grad).norm() < 0.02 * other.grad.norm()


def wide_row(dtype: torch.dtype, classes: int) -> list[Tensor]:
    """More classes than one register or four can hold, and large logits."""
    made = [normal(21, 6), 3 * normal(classes, 6, seed=2), normal(classes, seed=3)]
    return [tensor.to(dtype).requires_grad_() for tensor in made]


@ways
@smoothings
@pytest.mark.parametrize("classes", [1, 15, 64, 150])
@pytest.mark.parametrize("threads", [1, 2])
def test_law_7_either_way_is_the_formula_in_float64(
    way: str, smoothing: float, classes: int, threads: int
) -> None:
    target = torch.arange(21) * 7 % classes
    results = []
    with on_threads(threads):
        for dtype, name in ((torch.float32, way), (torch.float64, "torch")):
            h, weight, b = wide_row(dtype, classes)
            with choice.use(fused=name):  # type: ignore[arg-type]
                total, plain = cross_entropy(h, weight, b, target, smoothing)
            total.backward()
            results.append([total.detach(), plain, h.grad, weight.grad, b.grad])
    near(*results, 1e-5)


@compiled
@smoothings
def test_law_7_bfloat16_both_ways_alike(smoothing: float) -> None:
    results = []
    for way in ("native", "torch"):
        h, weight, b = wide_row(torch.float32, 150)
        with choice.use(fused=way), torch.autocast("cpu", dtype=torch.bfloat16):  # type: ignore[arg-type]
            total, plain = cross_entropy(h, weight, b, torch.arange(21) * 7 % 150, smoothing)
        total.backward()
        results.append([total.detach(), plain, h.grad, weight.grad, b.grad])
    near(*results, 1e-3)  # both round the same logits and nearly the same gradients


@ways
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_logit_that_is_no_number_is_not_hidden(way: str, bad: float) -> None:
    h, weight, b = wide_row(torch.float32, 40)
    with torch.no_grad():
        b[17] = bad
    with choice.use(fused=way):  # type: ignore[arg-type]
        total, plain = cross_entropy(h, weight, b, torch.zeros(21, dtype=torch.long))
    total.backward()
    assert not total.isfinite() and not plain.isfinite() and not h.grad.isfinite().any()


@compiled
@pytest.mark.parametrize("wrong", [-1, 7])
def test_a_target_outside_of_the_vocabulary_is_refused(wrong: int) -> None:
    h, weight, b, target = inputs(True, torch.float32)
    target[3] = wrong
    with pytest.raises(ShapeError, match=rf"targets from 0 to 6, got .*{wrong}"):
        cross_entropy(h, weight, b, target)


@ways
def test_a_class_that_cannot_be_costs_nothing(way: str) -> None:
    h, weight, b = wide_row(torch.float32, 40)
    with torch.no_grad():
        b[17] = -float("inf")
    with choice.use(fused=way):  # type: ignore[arg-type]
        total, _ = cross_entropy(h, weight, b, torch.zeros(21, dtype=torch.long))
    assert total.isfinite()
    total.mul_(2)  # allowed: not a view


@ways
@pytest.mark.parametrize("wrong", ["int32", "too few", "bias"])
def test_what_compiled_code_would_read_beyond_is_refused(way: str, wrong: str) -> None:
    h, weight, b, target = inputs(True, torch.float32)
    target = {"int32": target.int(), "too few": target[:5]}.get(wrong, target)
    with choice.use(fused=way), pytest.raises(ShapeError, match="expected"):  # type: ignore[arg-type]
        cross_entropy(h, weight, b[:3] if wrong == "bias" else b, target)


@compiled
def test_torchs_default_type_changes_nothing() -> None:
    found = []
    for dtype in (torch.float32, torch.float64):
        h, weight, b, target = inputs(True, torch.float32)
        before = torch.get_default_dtype()
        try:
            torch.set_default_dtype(dtype)
            cross_entropy(h, weight, b, target)[0].backward()
        finally:
            torch.set_default_dtype(before)
        found.append(b.grad)
    close(found[0], found[1])
