"""Law 7 for recurrent layers: compiled code, torch's operations and those written by hand are the loop."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.laws.members import close, normal
from tests.nn.ways import COMPILED, needs_native, on_threads, second_derivatives, weighed
from weft import masks, native
from weft.errors import ConfigError
from weft.native import jobs
from weft.nn.kernels import choice
from weft.nn.kernels.cells.compiled import APART, sort
from weft.nn.kernels.cells.layer import LayerInput, run_layer
from weft.nn.kernels.equations import ELMAN_CELLS
from weft.nn.kernels.light import recurrence, sequence
from weft.nn.kernels.linear import linear

T = 7
OTHERS = [name for name in ELMAN_CELLS.values() if name.startswith("elman_")]
GATES = {"lstm": 4, "peephole": 4, "coupled": 3, "gru": 3, "gru_before": 3, "elman": 1, "relu": 1}
GATES |= dict.fromkeys(OTHERS, 1)
WITH_C = ("lstm", "peephole", "coupled")

Call = Callable[..., Any]


def call(cell: str, given: list[Tensor], mask: Tensor | None, way: Any) -> tuple[Tensor, ...]:
    x, *states, weight_x, weight_h, bias = given[: 5 + (cell in WITH_C)]
    extra = given[len(states) + 4 :] or [None]
    states = states if cell in WITH_C else [*states, None]
    with choice.use(cells=way):
        found = run_layer(cell, LayerInput(x, *states, weight_x, weight_h, bias, *extra, mask))
    return found if cell in WITH_C else found[:2]


def inputs(cell: str, shape: tuple[int, int, int, int], dtype: torch.dtype) -> list[Tensor]:
    count, steps, read, size = shape
    gates = GATES[cell]
    shapes = [(count, steps, read), (count, size)]
    shapes += [(count, size)] if cell in WITH_C else []
    shapes += [(gates * size, read), (gates * size, size), (gates * size,)]
    shapes += {"peephole": [(3, size)], "gru": [(size,)]}.get(cell, [])
    scale = 1.0 if size < 20 else 0.2
    return [scale * normal(*s, seed=k, dtype=dtype).div_(1 + (k > 2)) for k, s in enumerate(shapes)]


def everything(cell: str, given: list[Tensor], mask: Tensor | None, way: str) -> tuple[Tensor, ...]:
    """Results without and with gradients, and the gradients of a random combination of them."""
    with torch.no_grad():
        plain = call(cell, given, mask, way)
    leaves = [t.clone().requires_grad_() for t in given]
    outs = call(cell, leaves, mask, way)
    total = weighed(outs)
    return (*plain, *outs, *torch.autograd.grad(total, leaves))


LENGTHS = {"whole": None, "ragged": [7, 4, 1, 6, 2], "empty row": [3, 0, 7, 0, 5], "one": [1, 1, 1, 1, 1]}


def mask_of(lengths: list[int] | None) -> Tensor | None:
    return None if lengths is None else masks.from_lengths(torch.tensor(lengths), T)


@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
@pytest.mark.parametrize("cell", GATES)
def test_law_7_an_operation_is_the_loop_in_float64(cell: str, lengths: list[int] | None) -> None:
    given, mask = inputs(cell, (5, T, 3, 13), torch.float64), mask_of(lengths)
    want = everything(cell, given, mask, "steps")
    for way in ("operation", "auto"):
        if way == "auto" or cell in choice.OPERATIONS:
            close(everything(cell, given, mask, way), want)


@pytest.mark.parametrize("way", COMPILED)
@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
@pytest.mark.parametrize("cell", jobs.CELLS)
@pytest.mark.parametrize("threads", [1, 2])
def test_law_7_compiled_is_the_loop(cell: str, lengths: list[int] | None, threads: int, way: str) -> None:
    with on_threads(threads):
        count = 5 if lengths else 23
        given, mask = inputs(cell, (count, T, 3, 13), torch.float32), mask_of(lengths)
        close(everything(cell, given, mask, way), everything(cell, given, mask, "steps"), 2e-5)
        given, mask = inputs(cell, (11, T, 3, 13), torch.float32), mask_of([7, 7, 1, 2, 6, 0, 5, 4, 3, 7, 2])
        close(everything(cell, given, mask, way), everything(cell, given, mask, "steps"), 2e-5)


@pytest.mark.parametrize("way", COMPILED)
@pytest.mark.parametrize("cell", jobs.CELLS)
@pytest.mark.parametrize(
    "shape",
    # the last two: as many units as a register of AVX2 and of AVX-512 has numbers
    [
        (1, 3, 5, 67),
        (2, 2, 131, 17),
        (13, 2, 1, 1),
        (3, 1, 7, 131),
        (40, 3, 20, 48),
        (7, 3, 5, 8),
        (7, 3, 5, 16),
    ],
    ids=str,
)
def test_every_tile_of_rows_and_units(cell: str, shape: tuple[int, int, int, int], way: str) -> None:
    given = inputs(cell, shape, torch.float32)
    close(everything(cell, given, None, way), everything(cell, given, None, "steps"), 2e-5)


@needs_native
def test_few_rows_with_large_weights_multiply_the_inputs_beforehand() -> None:
    given = [0.05 * t for t in inputs("lstm", (3, 5, 660, 211), torch.float32)]
    assert given[3].numel() >= APART
    close(everything("lstm", given, None, "native"), everything("lstm", given, None, "steps"), 2e-5)


def test_law_5_gradcheck_of_what_is_written() -> None:
    given = [t.requires_grad_() for t in inputs("gru_before", (3, 4, 2, 5), torch.float64)]
    mask = masks.from_lengths(torch.tensor([4, 1, 2]), 4)

    def run(*leaves: Tensor) -> tuple[Tensor, ...]:
        return call("gru_before", list(leaves), mask, "operation")

    assert torch.autograd.gradcheck(run, given, fast_mode=True)


@pytest.mark.parametrize(
    ("cell", "way"),
    [*(pytest.param(cell, "native", marks=needs_native) for cell in jobs.CELLS), ("gru_before", "operation")],
)
def test_a_second_derivative_is_that_of_the_loop(cell: str, way: str) -> None:
    given, mask = inputs(cell, (3, 4, 2, 5), torch.float32), masks.from_lengths(torch.tensor([2, 4, 1]), 4)
    mine, true = (
        second_derivatives(lambda *leaves, each=each: call(cell, list(leaves), mask, each), given)
        for each in (way, "steps")
    )
    close(mine, true, 1e-4)


@pytest.mark.parametrize("cell", GATES)
@pytest.mark.parametrize("way", ["auto", "torch"])
def test_bfloat16_autocast_is_near_float32(cell: str, way: str) -> None:
    given = inputs(cell, (5, T, 16, 32), torch.float32)
    mask = mask_of([7, 4, 1, 6, 2])
    want = everything(cell, given, mask, "steps")
    with torch.autocast("cpu", torch.bfloat16):
        got = everything(cell, given, mask, way)
    for one, other in zip(got, want, strict=True):
        assert (one.float() - other).norm() < 0.05 * other.norm()  # bfloat16 keeps 8 bits


def test_an_lstm_in_bfloat16_where_torch_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.nn.kernels.cells.layer.lacks_bfloat16", lambda: True)
    given = inputs("lstm", (5, T, 16, 32), torch.float32)
    given[0] = given[0].bfloat16()  # as a layer below writes it under autocast
    want = call("lstm", [each.float() for each in given], mask_of([7, 4, 1, 6, 2]), "steps")
    with torch.autocast("cpu", torch.bfloat16):
        got = call("lstm", given, mask_of([7, 4, 1, 6, 2]), "torch")
    assert {out.dtype for out in got} == {torch.float32}
    close(got, want, 1e-5)


@pytest.mark.parametrize("way", [*COMPILED, "torch", "steps"])
@pytest.mark.parametrize("cell", GATES)
def test_a_nan_stays_in_its_row(cell: str, way: str) -> None:
    given = inputs(cell, (5, T, 3, 13), torch.float32)
    if way in ("native", "tiles") and cell not in jobs.CELLS:
        pytest.skip("not compiled")
    given[0][2, 3] = torch.nan
    y = call(cell, given, None, way)[0]
    assert y[2, 3:].isnan().all()
    assert y[[0, 1, 3, 4]].isfinite().all() and y[2, :3].isfinite().all()


def test_functional_transforms_go_step_by_step() -> None:
    given = inputs("peephole", (2, 3, 2, 5), torch.float32)

    def total(x: Tensor) -> Tensor:
        return call("peephole", [x, *given[1:]], None, None)[0].square().sum()

    x = given[0].clone().requires_grad_()
    close(torch.func.grad(total)(given[0]), torch.autograd.grad(total(x), x)[0], 1e-4)


def test_tiles_that_are_not_there_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "tiles", lambda: False)
    with pytest.raises(ConfigError, match=r"lstm: "):
        call("lstm", inputs("lstm", (2, 3, 2, 5), torch.float32), None, "tiles")
    monkeypatch.setattr(choice, "SMALL_PRODUCT", 0)
    with choice.use(linear="tiles"), pytest.raises(ConfigError, match=r"linear: "):
        linear(torch.ones(2, 3), torch.ones(4, 3))


def test_a_way_that_cannot_compute_this_is_refused() -> None:
    given = inputs("lstm", (2, 3, 2, 5), torch.float64)
    with pytest.raises(ConfigError, match=r"lstm: "):
        call("lstm", given, None, "native")
    with pytest.raises(ConfigError, match="fast"):
        call("lstm", given, None, "fast")
    with choice.use(cells="narrow"), pytest.raises(ConfigError, match="lstm: "):
        call("lstm", given, None, None)


def test_without_compiled_code_torch_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        native, "loaded", lambda source="cells": native.LoadedLibrary(None, "they were not compiled")
    )
    for cell in GATES:
        given = inputs(cell, (3, 4, 2, 5), torch.float32)
        close(call(cell, given, None, None), call(cell, given, None, "steps"), 1e-5)
        with pytest.raises(ConfigError, match="native"):
            call(cell, given, None, "native")


def test_rows_are_sorted_and_dealt_to_the_threads() -> None:
    mask = masks.from_lengths(torch.tensor([2, 5, 0, 3, 5, 1, 4]), 5)
    plan = sort(torch.zeros(7, 5, 1), mask, 2)
    assert plan.bounds.tolist() == [0, 4, 7]
    assert plan.lengths.tolist() == [5, 4, 2, 0, 5, 3, 1]
    assert plan.active.tolist() == [[3, 3, 2, 2, 1], [3, 2, 2, 1, 1]]
    x = normal(7, 5, 1)
    assert torch.equal(plan.give_back(plan.take(x)), x)


def test_law_7_the_elementwise_recurrence_is_its_plain_twin() -> None:
    found = []
    for function in (recurrence, sequence):
        a, b, c = (normal(5, T, 13), normal(5, T, 13, seed=2), normal(5, 13, seed=3))
        given = [t.requires_grad_() for t in (a, b, c)]
        out = function(*given)
        grads = torch.autograd.grad((out * out).sum(), given, create_graph=True)
        again = torch.autograd.grad(sum((grad * grad).sum() for grad in grads), given)
        with torch.no_grad():
            plain = function(*given)
        first = torch.autograd.grad((function(*given) * normal(5, T, 13, seed=4)).sum(), given)
        found.append((out, plain, *grads, *(grad / grad.norm() for grad in again), *first))
    close(found[0], found[1])
