"""Law 6 for the cells of C13 with a matrix as state: each equals its equation, over several chunks."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from tests.laws.members import READ, SIZE, normal, ready
from tests.oracles import matrix_cells as oracle
from weft import masks
from weft.nn.cells.cell import Cell
from weft.nn.cells.delta import Delta
from weft.nn.cells.gated_delta import GatedDelta
from weft.nn.cells.gla import GLA
from weft.nn.cells.hgrn2 import HGRN2
from weft.nn.cells.matrix import MatrixCell
from weft.nn.cells.mlstm import MLSTM
from weft.nn.cells.retention import Retention
from weft.nn.cells.rwkv7 import RWKV7
from weft.nn.cells.rwkv7_layers import RWKV7Layers
from weft.nn.cells.ssd import SSD
from weft.nn.kernels.matrix import CHUNK
from weft.tree import State

LENGTHS = (2 * CHUNK + 3, 1, CHUNK, 17)
SIZES = {"num_heads": 2, "key_size": 5, "value_size": 7}
VALUES = 2 * 7  # of all heads


def weights(cell: nn.Module) -> oracle.Weights:
    found = {name: tensor.detach().numpy() for name, tensor in cell.named_parameters()}
    short = {name.removesuffix(".weight").removesuffix(".gain").removeprefix("project."): value
             for name, value in found.items()}  # fmt: skip
    return {name.replace(".bias", "_bias"): value for name, value in short.items()}


Found = tuple[oracle.Array, oracle.Array]
CASES: dict[str, tuple[Callable[[int, int], MatrixCell], Callable[..., Found]]] = {
    "retention": (partial(Retention, **SIZES), lambda _, w, x, s, t: oracle.retention(w, x, s, t[0])),
    "gla": (partial(GLA, **SIZES), lambda _, *given: oracle.gla(*given)),
    "hgrn2": (partial(HGRN2, **SIZES), lambda cell, *given: oracle.hgrn2(*given, cell.lower_bound)),
    "hgrn2-bound": (
        partial(HGRN2, **SIZES, lower_bound=0.4),
        lambda cell, *given: oracle.hgrn2(*given, cell.lower_bound),
    ),
    "mlstm": (partial(MLSTM, **SIZES), lambda cell, *given: oracle.mlstm(*given, cell.cap)),
    "mlstm-cap": (partial(MLSTM, **SIZES, cap=2.0), lambda cell, *given: oracle.mlstm(*given, cell.cap)),
    "delta": (partial(Delta, **SIZES), lambda _, *given: oracle.delta(*given)),
    "delta-alone": (partial(Delta, **SIZES, convolution=0), lambda _, *given: oracle.delta(*given, None)),
    "gated_delta": (partial(GatedDelta, **SIZES), lambda _, *given: oracle.gated_delta(*given)),
    "delta-negative": (partial(Delta, **SIZES, negative=True), lambda _, *given: oracle.delta(*given, 2.0)),
    "gated_delta-negative": (
        partial(GatedDelta, **SIZES, negative=True),
        lambda _, *given: oracle.gated_delta(*given, 2.0),
    ),
    "ssd": (partial(SSD, **SIZES), lambda _, *given: oracle.ssd(*given)),
    "rwkv7": (partial(RWKV7, **SIZES), lambda _, *given: oracle.rwkv7(*given)),
    "rwkv7-first": (
        lambda read, size: RWKV7(read + VALUES, size, **SIZES, first_values=True, norm_epsilon=0.1),
        lambda _, w, x, *state: oracle.rwkv7(w, x[:, :READ], *state, x[:, READ:], 0.1),
    ),
}
every_cell = pytest.mark.parametrize("name", CASES)


def begun(cell: Cell) -> State:
    """A state of random numbers, none of which is zero."""
    start = cell.start(torch.zeros(len(LENGTHS), 1, dtype=torch.float64))
    return tuple(normal(*leaf.shape, seed=7 + k) for k, leaf in enumerate(start))


@every_cell
def test_a_cell_is_its_equation(name: str) -> None:
    make, equation = CASES[name]
    cell = ready(lambda: make(READ, SIZE))
    x, before = normal(len(LENGTHS), max(LENGTHS), cell.in_size), begun(cell)
    y, after = cell(x, before, masks.from_lengths(torch.tensor(LENGTHS), max(LENGTHS)))
    for row, length in enumerate(LENGTHS):
        given = (leaf[row].numpy().copy() for leaf in before[1:])
        ys, matrix = equation(cell, weights(cell), x[row, :length].numpy(), *given)
        np.testing.assert_allclose(y[row, :length].detach(), ys, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(after[0][row].detach(), ys[-1], rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(after[1][row].detach(), matrix, rtol=1e-10, atol=1e-10)


@every_cell
def test_chunks_of_any_length_and_steps_are_the_whole(name: str) -> None:
    cell = ready(lambda: CASES[name][0](READ, SIZE))
    x, state = normal(len(LENGTHS), max(LENGTHS), cell.in_size), begun(cell)
    whole, last = cell(x, state)
    pieces = []
    for piece in x.split([1, 2, CHUNK - 1, 3, max(LENGTHS) - CHUNK - 5], 1):
        y, state = cell(piece, state)
        pieces.append(y)
    torch.testing.assert_close(torch.cat(pieces, 1), whole, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(state, last, rtol=1e-10, atol=1e-10)


def test_layers_of_rwkv7_are_the_papers_and_hand_on_the_first_values() -> None:
    cell = ready(lambda: RWKV7Layers(READ, SIZE, num_layers=3, network=11, rank=3, **SIZES))
    x, before = normal(len(LENGTHS), max(LENGTHS), READ), begun(cell)
    y, after = cell(x, before, masks.from_lengths(torch.tensor(LENGTHS), max(LENGTHS)))
    for row, length in enumerate(LENGTHS):
        parts = [leaf[row].numpy().copy() for leaf in before[1:]]
        layers = [
            (weights(layer.cell), weights(layer), *parts[4 * n + 1 : 4 * n + 4])
            for n, layer in enumerate(cell.layers)
        ]
        ys, matrices = oracle.rwkv7_layers(weights(cell), layers, x[row, :length].numpy())
        np.testing.assert_allclose(y[row, :length].detach(), ys, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(after[0][row].detach(), ys[-1], rtol=1e-10, atol=1e-10)
        for n, matrix in enumerate(matrices):
            np.testing.assert_allclose(after[4 * n + 2][row].detach(), matrix, rtol=1e-10, atol=1e-10)
