"""Law 6 for the cells of C13 with a diagonal recurrence: each equals its paper's equation in NumPy."""

import copy
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch

from tests.laws.members import READ, ROWS, SIZE, SOURCE_LENGTHS, normal, ready, source
from tests.oracles import diagonal_cells as oracle
from tests.oracles.attention import array
from tests.oracles.recurrent import unroll
from weft import tree
from weft.nn.cells.cell import Cell
from weft.nn.cells.initial import GateNorm, Headwise
from weft.nn.cells.lru import LRU
from weft.nn.cells.mamba import Mamba
from weft.nn.cells.rglru import RGLRU
from weft.nn.cells.rwkv4 import RWKV4
from weft.nn.cells.s4d import S4D
from weft.nn.cells.slstm import SLSTM
from weft.nn.kernels.linear import Linear


def entered(entry: torch.nn.Module, size: int) -> np.ndarray:
    return array(entry.weight) if isinstance(entry, Linear) else np.eye(size)


def blocks(of: Headwise) -> list[oracle.Map]:
    """The full matrix and the bias of each stacked map."""
    found, size = [], of.weight.shape[1] * of.weight.shape[2]
    biases = np.zeros(len(of.weight) * size) if of.bias is None else array(of.bias)
    for gate, bias in zip(array(of.weight), np.split(biases, len(of.weight)), strict=True):
        heads, width = gate.shape[:2]
        whole = np.zeros((heads * width, heads * width))
        for head in range(heads):
            own = slice(head * width, (head + 1) * width)
            whole[own, own] = gate[head]
        found.append((whole, bias))
    return found


def of_lru(cell: LRU) -> oracle.Step:
    nu, theta, gamma, d = map(array, (cell.nu, cell.theta, cell.gamma, cell.weight_d))
    b_real, b_imaginary = np.split(array(cell.weight_x), 2)
    c_real, minus_c_imaginary = np.split(array(cell.weight_o), 2, 1)
    return oracle.lru(nu, theta, gamma, b_real + 1j * b_imaginary, c_real - 1j * minus_c_imaginary, d)


def of_rglru(cell: RGLRU) -> oracle.Step:
    (recurrence,), (enter,) = blocks(cell.recurrence_gate), blocks(cell.input_gate)
    return oracle.rglru(recurrence, enter, array(cell.rate), entered(cell.entry, cell.size))


def of_s4d(cell: S4D) -> oracle.Step:
    a = -np.exp(array(cell.log_decay)) + 1j * array(cell.frequency)
    c = array(cell.weight_o)
    dt = np.exp(array(cell.log_step))[:, 0]
    return oracle.s4d(dt, a, c[0] + 1j * c[1], array(cell.skip), entered(cell.entry, cell.size), cell.rule)


def of_slstm(cell: SLSTM) -> oracle.Step:
    gates = list(zip(np.split(array(cell.weight_x), 4), np.split(array(cell.bias), 4), strict=True))
    recurrent = [block for block, _ in blocks(cell.recurrent)]
    heads, short, gain = cell.recurrent.weight.shape[1], cell.convolution, None
    if isinstance(cell.norm, GateNorm):
        gain = np.split(array(cell.norm.gain), heads)
    convolution = None if short is None else (array(short.weight), array(short.bias))
    return oracle.slstm(gates, recurrent, cell.forget, gain, convolution)


def of_rwkv4(cell: RWKV4) -> oracle.Step:
    maps = [array(cell.project[name].weight) for name in "rkv"]
    return oracle.rwkv4(maps, *map(array, (cell.mix, cell.decay, cell.bonus, cell.out.weight)))


def of_mamba(cell: Mamba) -> oracle.Step:
    ends = np.cumsum([cell.rank, cell.num_states])
    rank, b, c = np.split(array(cell.select.weight), ends)
    return oracle.mamba(
        oracle.Selective(
            array(cell.enter.weight),
            (array(cell.convolution.weight), array(cell.convolution.bias)),
            (rank, b, c),
            (array(cell.step_size.weight), array(cell.step_size.bias)),
            -np.exp(array(cell.log_decay)).T,
            array(cell.skip),
            array(cell.leave.weight),
        )
    )


Case = tuple[Callable[[int, int], Cell], Callable[..., oracle.Step], int]
CASES: dict[str, Case] = {
    "lru": (LRU, of_lru, SIZE),
    "lru-wider": (partial(LRU, num_states=17), of_lru, SIZE),
    "rglru": (RGLRU, of_rglru, SIZE),
    "rglru-heads": (partial(RGLRU, num_heads=2), of_rglru, 14),
    "rglru-square": (partial(RGLRU, num_heads=3), of_rglru, READ),
    "s4d-zoh": (partial(S4D, num_states=5), of_s4d, SIZE),
    "s4d-bilinear": (partial(S4D, num_states=5, rule="bilinear"), of_s4d, SIZE),
    "slstm": (partial(SLSTM, num_heads=1), of_slstm, SIZE),
    "slstm-heads": (partial(SLSTM, num_heads=2), of_slstm, 14),
    "slstm-norm": (partial(SLSTM, num_heads=2, norm=True), of_slstm, 14),
    "slstm-convolution": (partial(SLSTM, num_heads=2, norm=True, convolution=3), of_slstm, 14),
    "slstm-exponential": (partial(SLSTM, num_heads=3, forget="exponential"), of_slstm, 21),
    "rwkv4": (RWKV4, of_rwkv4, SIZE),
    "mamba": (Mamba, of_mamba, SIZE),
    "mamba-narrow": (partial(Mamba, inner=5, num_states=2, rank=3, convolution=2), of_mamba, SIZE),
    "s4d-square": (partial(S4D, num_states=2), of_s4d, READ),
}


@pytest.mark.parametrize(("make", "equation", "size"), CASES.values(), ids=CASES)
def test_a_cell_is_its_equation(
    make: Callable[[int, int], Cell], equation: Callable[..., oracle.Step], size: int
) -> None:
    cell = ready(lambda: make(READ, size))
    x, mask = source()
    places = iter(range(7, 99))
    before = tree.tree_map(lambda leaf: normal(*leaf.shape, seed=next(places)).abs(), cell.start(x))
    y, after = cell(x, before, mask)
    for row, length in enumerate(SOURCE_LENGTHS):
        begin = tuple(leaf[row].numpy() for leaf in before)
        ys, last = unroll(equation(cell), x[row, :length].numpy(), begin)
        np.testing.assert_allclose(array(y[row, :length]), ys, rtol=1e-10, atol=1e-10)
        for got, want in zip(after, last, strict=True):
            np.testing.assert_allclose(array(got[row]), want, rtol=1e-10, atol=1e-10)


def test_s4d_over_many_chunks_is_its_steps_with_and_without_padding() -> None:
    cell = ready(lambda: S4D(READ, 5, num_states=3))
    x, lengths = normal(ROWS, 331, READ), torch.tensor([331, 64, 65, 1, 200])
    mask = torch.arange(331) < lengths[:, None]
    for given in (None, mask):
        begin = cell.start(x)
        for got, want in zip(
            tree.leaves(cell(x, begin, given)), tree.leaves(Cell.run(cell, x, begin, given)), strict=True
        ):
            torch.testing.assert_close(got, want, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("make", [LRU, RGLRU, S4D])
def test_every_eigenvalue_starts_inside_the_circle(make: type[Cell]) -> None:
    torch.manual_seed(1)
    cell = make(11, 61)
    x = torch.zeros(2, 5000, 11)
    ones = tuple(torch.ones_like(leaf) for leaf in cell.start(x[:, 0]))
    _, after = cell(x, ones)
    assert all(leaf.isfinite().all() and leaf.abs().max() < 1 for leaf in cell.carried(after))


def test_slstm_holds_energies_that_no_exponential_does() -> None:
    cell = ready(lambda: SLSTM(READ, SIZE, num_heads=1, forget="exponential"), torch.float32)
    x = 500 * normal(ROWS, 11, READ, dtype=torch.float32)
    y, state = cell(x, cell.start(x))
    y.sum().backward()
    assert y.isfinite().all() and y.abs().max() <= 1
    assert all(leaf.isfinite().all() for leaf in state)
    assert all(parameter.grad.isfinite().all() for parameter in cell.parameters())


def test_rwkv4_weighs_keys_that_no_exponential_holds() -> None:
    cell = ready(lambda: RWKV4(READ, SIZE))
    x = 500 * normal(ROWS, 11, READ)
    want, _ = cell(x, cell.start(x))
    cell, x = cell.float(), x.float()
    assert float(cell.project["k"](x).detach().abs().max()) > 500
    y, state = cell(x, cell.start(x))
    y.sum().backward()
    torch.testing.assert_close(y.double(), want, rtol=1e-3, atol=1e-3 * float(want.detach().abs().max()))
    assert all(parameter.grad.isfinite().all() for parameter in cell.parameters())
    assert all(leaf.isfinite().all() for leaf in state)


def test_s4d_with_short_steps_is_as_exact_in_float32_as_its_other_numbers() -> None:
    cell = S4D(1, 1, num_states=3, min_step=1e-4, max_step=1.0001e-4)  # A' - 1 is 1e-4 x A
    exact = copy.deepcopy(cell).double()
    got, want = (torch.complex(made.b_real, made.b_imaginary) for made in (cell._filter(), exact._filter()))
    assert float(((got - want).abs() / want.abs()).detach().max()) < 1e-6
