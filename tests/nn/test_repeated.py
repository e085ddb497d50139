"""Law 7 for weights that steps share: their summed gradient is autograd's, pass by pass."""

import gc
import weakref
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from tests.laws.members import normal
from tests.nn.ways import near, needs_native
from weft.nn.cells.gru import GRU
from weft.nn.cells.lstm import LSTM
from weft.nn.kernels import choice
from weft.nn.kernels.linear import Products, linear, repeating, shared
from weft.nn.randomness import recomputing
from weft.nn.recurrent import Stack


class Steps:
    """h_t = tanh(W h_{t-1} + b + x_t), five times."""

    def __init__(self, bias: bool = True) -> None:
        self.weight = nn.Parameter(normal(3, 3, seed=2).float())
        self.bias = nn.Parameter(normal(3, seed=3).float()) if bias else None
        self.x = normal(5, 7, 3).float().requires_grad_()
        self.wanted = [self.weight, self.x, *([] if self.bias is None else [self.bias])]

    def __call__(self) -> Tensor:
        h = torch.zeros(7, 3)
        with repeating():
            for one in self.x:
                h = torch.tanh(linear(h, self.weight, self.bias) + one)
        return h


def plainly(run: Callable[[], list[Tensor]]) -> list[Tensor]:
    with choice.use(fused="torch"):
        return run()


@pytest.mark.parametrize("rows", [1, 20, 2048], ids=["a step a product", "three steps", "all steps"])
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
def test_gradients_are_autograd_s(bias: bool, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.nn.kernels.linear.WAITING_ROWS", rows)
    steps = Steps(bias)

    def run() -> list[Tensor]:
        return list(torch.autograd.grad(steps().square().sum(), steps.wanted))

    near(run(), plainly(run), 1e-5)


def test_every_backward_pass_has_its_own_sum() -> None:
    steps = Steps()

    def run() -> list[Tensor]:
        loss = steps().square().sum()
        first = torch.autograd.grad(loss, [steps.x], retain_graph=True)  # leaves factors that nobody takes
        second = torch.autograd.grad(loss, steps.wanted, retain_graph=True)
        return [*first, *second, *torch.autograd.grad(loss, [steps.weight])]

    near(run(), plainly(run), 1e-5)


def test_a_second_derivative_and_recomputation_are_autograd_s() -> None:
    steps = Steps()

    def second() -> list[Tensor]:
        first = torch.autograd.grad(steps().sum(), steps.wanted, create_graph=True)
        return list(torch.autograd.grad(sum(one.square().sum() for one in first), steps.wanted))

    def again() -> list[Tensor]:
        with recomputing():
            return list(torch.autograd.grad(steps().sum(), steps.wanted))

    for run in (second, again):
        near(run(), plainly(run), 1e-5)


def test_nothing_is_shared_without_gradients() -> None:
    steps = Steps()
    with torch.no_grad():
        assert not steps().requires_grad
    assert shared(steps.weight, None, lambda: Products(torch.matmul)) is None


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("rows", [2, 7], ids=["weights as they are", "packed"])
def test_law_7_a_loop_of_compiled_steps_equals_the_plain_cell(cell: str, rows: int) -> None:
    made: LSTM | GRU = {"lstm": LSTM, "gru": GRU}[cell](5, 3)
    stack = Stack(5, (3,), cell=lambda *_: made)
    x = normal(rows, 6, 5).float().requires_grad_()

    def run() -> list[Tensor]:
        states, ys = stack.start(x), []
        with repeating():
            for one in x.unbind(1):
                y, finals = stack(one[:, None], states)
                states = tuple(layer[0] for layer in finals)
                ys.append(y)
        y = torch.cat(ys, 1)
        found = torch.autograd.grad(y.square().sum(), [x, *stack.parameters()], create_graph=False)
        return [y.detach(), *found]

    near(run(), plainly(run), 1e-5)


@needs_native
@pytest.mark.usefixtures("unforced")
def test_a_loop_leaves_nothing_behind() -> None:
    gc.collect()
    gc.disable()
    try:
        for cell in (LSTM(5, 3), GRU(5, 3)):
            stack, x = Stack(5, (3,), cell=lambda *_, made=cell: made), normal(7, 1, 5).float()
            with repeating(), choice.use(cells="native"):
                y, _ = stack(x, stack.start(x))
                y, _ = stack(x, stack.start(y))
            sums = [weakref.ref(one) for one in gc.get_objects() if type(one) is Products]
            y.sum().backward()
            del y, _
            assert sums and not any(one() for one in sums)
    finally:
        gc.enable()
