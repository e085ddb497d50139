"""Law 7 for recurrent layers: compiled code, torch's operations and those written by hand are the loop."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.laws.members import close, normal
from tests.nn.ways import COMPILED, needs_narrow, needs_native, on_threads, second_derivatives, weighed
from weft import masks, native
from weft.errors import ConfigError
from weft.native import jobs
from weft.nn.cells.gru import GRU
from weft.nn.kernels import choice
from weft.nn.kernels.cells.compiled import APART, sort
from weft.nn.kernels.cells.layer import LayerInput, one_step, recurrent, run_layer
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


class OnGpu(Tensor):
    """A tensor of the CPU that says it is on a GPU."""

    is_cuda = True  # type: ignore[assignment]


def given(*arguments: Any) -> tuple[Any, ...]:
    return arguments


def weights(*, learns: bool) -> list[Tensor]:
    """Two matrices, two biases and a projection: 3 units, 2 inputs, 1 output."""
    shapes = (12, 2), (12, 1), (12,), (12,), (1, 3)
    return [nn.Parameter(normal(*shape).float(), requires_grad=learns) for shape in shapes]


def test_a_gpu_is_told_to_train_only_where_gradients_are_wanted() -> None:
    x, state = normal(4, 5, 2).float(), (torch.zeros(1, 4, 1), torch.zeros(1, 4, 3))
    on_gpu = x.as_subclass(OnGpu)
    assert recurrent(given, on_gpu, state, weights(learns=True))[6] is True
    assert recurrent(given, on_gpu, state, weights(learns=False))[6] is False
    assert recurrent(given, on_gpu.clone().requires_grad_(), state, weights(learns=False))[6] is True
    with torch.no_grad():
        assert recurrent(given, on_gpu, state, weights(learns=True))[6] is False
    assert recurrent(given, x, state, weights(learns=True))[6] is False  # a CPU needs no telling


def test_a_gpu_gets_its_weights_in_one_piece_matrices_first() -> None:
    whole = weights(learns=True)
    x = normal(4, 5, 2).float().as_subclass(OnGpu)
    _, _, parts, biased, *_ = recurrent(given, x, (torch.zeros(1, 4, 1), torch.zeros(1, 4, 3)), whole)
    assert biased is True
    assert all(torch.equal(part, one) for part, one in zip(parts, whole, strict=True))
    assert len({part.untyped_storage().data_ptr() for part in parts}) == 1
    assert [part.storage_offset() for part in parts] == [0, 24, 39, 51, 36]
    torch.stack([part.sum() for part in parts]).sum().backward()
    assert all(one.grad is not None and bool((one.grad == 1).all()) for one in whole)


def test_states_of_a_gpu_lie_in_one_piece() -> None:
    state = torch.zeros(1, 3, 4).transpose(1, 2)
    assert not state.is_contiguous()
    x = normal(4, 5, 2).float().as_subclass(OnGpu)
    assert recurrent(given, x, (state,), weights(learns=False)[:2])[1].is_contiguous()


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("name", ["lstm", "gru", "rnn_tanh", "rnn_relu"])
def test_one_step_by_a_cell_is_that_of_the_layer(name: str, biased: bool) -> None:
    gates = {"lstm": 4, "gru": 3}.get(name, 1)
    shapes = [(gates * 3, 2), (gates * 3, 3), *([(gates * 3,)] * 2 if biased else [])]
    parts = [normal(*shape, seed=seed).requires_grad_() for seed, shape in enumerate(shapes)]
    x = normal(5, 1, 2, seed=7).requires_grad_()
    state = [normal(1, 5, 3, seed=8 + k) for k in range(1 + (name == "lstm"))]
    function, found = getattr(torch, name), []
    for run in (recurrent, one_step):
        results = run(function, x, state, parts)
        total = sum(result.sin().sum() for result in results)
        found.append([*results, *torch.autograd.grad(total, [x, *parts])])
    torch.testing.assert_close(found[1], found[0], rtol=1e-12, atol=1e-12)


def test_a_gpu_takes_one_step_by_a_cell() -> None:
    x, state = normal(4, 1, 2).float().as_subclass(OnGpu), (torch.zeros(1, 4, 3),) * 2
    whole = [normal(12, 2).float(), normal(12, 3).float(), normal(12).float(), normal(12).float()]
    y, h, c = recurrent(torch.lstm, x, state, whole)
    assert (y.shape, h.shape, c.shape) == ((4, 1, 3), (1, 4, 3), (1, 4, 3))
    assert recurrent(given, x, (state[0], state[1]), weights(learns=False))[2]  # with a projection by cuDNN


SHAPES = [(1, 7, 5, 67), (3, 7, 7, 13), (5, 7, 3, 13), (23, 7, 131, 17), (40, 7, 20, 48), (2, 7, 1, 1)]


def under_autocast(cell: str, given: list[Tensor], mask: Tensor | None, way: Any) -> tuple[Tensor, ...]:
    with torch.autocast("cpu", torch.bfloat16):
        return call(cell, given, mask, way)


@needs_narrow
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("cell", jobs.CELLS)
def test_rounded_numbers_are_multiplied_exactly(cell: str, shape: tuple[int, int, int, int]) -> None:
    rows, _, read, size = shape
    given = [t.bfloat16().double() for t in inputs(cell, (rows, 1, read, size), torch.float64)]
    found = under_autocast(cell, [t.float() for t in given], None, "narrow")
    close(tuple(t.double() for t in found), call(cell, given, None, "steps"), 2e-5)


@needs_narrow
@pytest.mark.parametrize("lengths", [None, [7, 4, 1, 6, 2], [3, 0, 7, 0, 5]], ids=str)
@pytest.mark.parametrize("cell", jobs.CELLS)
@pytest.mark.parametrize("threads", [1, 2])
def test_gradients_are_near_those_of_the_loop(cell: str, lengths: list[int] | None, threads: int) -> None:
    with on_threads(threads):
        rows = 29 if lengths is None else 5
        given = [0.2 * t for t in inputs(cell, (rows, 7, 31, 37), torch.float32)]
        found, want = (
            grads(cell, given, mask_of(lengths), way, low)
            for way, low in (("narrow", True), ("steps", False))
        )
        for ours, exact in zip(found, want, strict=True):
            assert ours.dtype == torch.float32
            assert float((ours - exact).norm()) <= 0.02 * float(exact.norm()) + 1e-6


def grads(cell: str, given: list[Tensor], mask: Tensor | None, way: Any, low: bool) -> list[Tensor]:
    """Results and gradients of a random combination of them."""
    leaves = [t.clone().requires_grad_() for t in given]
    with torch.autocast("cpu", torch.bfloat16, enabled=low):
        outs = call(cell, leaves, mask, way)
    total = sum((normal(*o.shape, seed=k) * o).sum() for k, o in enumerate(outs))
    return [*(o.detach() for o in outs), *torch.autograd.grad(total, leaves)]


@needs_native
@pytest.mark.parametrize("cell", jobs.CELLS)
def test_in_float32_autocast_changes_nothing(cell: str) -> None:
    given, mask = inputs(cell, (5, 7, 3, 13), torch.float32), mask_of([7, 4, 1, 6, 2])
    low, plain = (tuple(grads(cell, given, mask, "native", low=on)) for on in (True, False))
    close(low, plain, 0.0)


@needs_native
@pytest.mark.parametrize("steps", [1, 3, 7])
@pytest.mark.parametrize("cell", jobs.CELLS)
def test_a_state_without_gradient_leaves_the_others_right(cell: str, steps: int) -> None:
    given = [0.3 * t for t in inputs(cell, (3, steps, 5, 19), torch.float32)]
    states = 2 if given[2].dim() == 2 and given[2].shape == given[1].shape else 1
    found = []
    for way, dtype in (("native", torch.float32), ("steps", torch.float64)):
        leaves = [t.to(dtype).requires_grad_(not 1 <= k <= states) for k, t in enumerate(given)]
        y = call(cell, leaves, None, way)[0]
        found.append(torch.autograd.grad(y.square().sum(), [t for t in leaves if t.requires_grad]))
    close(tuple(t.double() for t in found[0]), found[1], 2e-5)


@needs_narrow
def test_bfloat16_is_forced_only_under_autocast() -> None:
    cell, x = GRU(3, 5), torch.zeros(2, 9, 3)
    with choice.use(cells="narrow"), pytest.raises(ConfigError, match="only under autocast"):
        cell(x, cell.start(x))
