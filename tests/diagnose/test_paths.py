"""G3, and summaries of gates, spectra and attention: expected values from NumPy."""

import math

import numpy as np
import pytest
import torch

from tests.diagnose.models import Reader, ragged
from weft.diagnose.attention import entropy
from weft.diagnose.forgetting import gates, half_life, saturation
from weft.diagnose.jacobian import recurrent_matrices, sigma_max, spectral_radius
from weft.diagnose.reach import measured_reach, paths, seen
from weft.diagnose.recorded import trace
from weft.errors import ConfigError
from weft.nn.cells.gru import GRU
from weft.nn.cells.lstm import LSTM
from weft.nn.recurrent import Stack


def sigmoid(z: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-z))


def lstm_jacobian(cell: LSTM, x: np.ndarray, h: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, ...]:
    """∂(h_t, c_t)/∂(h_{t-1}, c_{t-1}) by the chain rule, written out; and f, h_t, c_t."""
    w_x, w_h, b = (part.detach().numpy() for part in (cell.weight_x, cell.weight_h, cell.bias))
    w_i, w_f, w_g, w_o = np.split(w_h, 4)
    z_i, z_f, z_g, z_o = np.split(w_x @ x + w_h @ h + b, 4)
    i, f, g, o = sigmoid(z_i), sigmoid(z_f), np.tanh(z_g), sigmoid(z_o)
    new = f * c + i * g
    s = np.tanh(new)
    c_h = np.diag(c * f * (1 - f)) @ w_f + np.diag(g * i * (1 - i)) @ w_i + np.diag(i * (1 - g**2)) @ w_g
    c_c = np.diag(f)
    h_h = np.diag(s * o * (1 - o)) @ w_o + np.diag(o * (1 - s**2)) @ c_h
    h_c = np.diag(o * (1 - s**2)) @ c_c
    return np.block([[h_h, h_c], [c_h, c_c]]), f, o * s, new


def norm(matrix: np.ndarray) -> float:
    return float(np.linalg.svd(matrix, compute_uv=False)[0])


@pytest.mark.parametrize("bidirectional", [False, True])
def test_both_paths_of_an_lstm_are_their_products(bidirectional: bool) -> None:
    torch.manual_seed(11)
    size = 3
    model = Reader(Stack(2, (size,), cell=LSTM, bidirectional=bidirectional)).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    for run in seen(model, ragged(3, 7, 2)):
        steps = trace(run)
        found = paths(steps)
        assert torch.allclose(found.hh[steps.mask], measured_reach(steps).norms[steps.mask], rtol=1e-10)
        for row, length in enumerate(steps.mask.sum(1).tolist()):
            h = c = np.zeros(size)
            jacobians, forgets = [], []
            for x in run.calls[0].x[row, :length].numpy():
                jacobian, f, h, c = lstm_jacobian(run.place.cell, x, h, c)
                jacobians.append(jacobian)
                forgets.append(f)
            full, direct = np.eye(2 * size), np.ones(size)
            for t in range(length - 1, -1, -1):
                at = length - 1 - t if run.place.backward else t
                expected = [
                    direct.max(),
                    norm(full[:size, :size]),
                    norm(full[:size, size:]),
                    norm(full[size:, :size]),
                    norm(full[size:, size:]),
                ]
                got = [float(part[row, at]) for part in found[1:6]]
                assert got == pytest.approx(expected, rel=1e-9, abs=1e-12)
                full, direct = full @ jacobians[t], direct * forgets[t]


def test_the_two_paths_need_two_states() -> None:
    (run,) = seen(Reader(Stack(2, (3,), cell=GRU)).double(), ragged(2, 3, 2))
    with pytest.raises(ConfigError, match=r"the state of a GRU has 1 parts, the two paths need \(h, c\)"):
        paths(trace(run))


def test_the_full_path_can_explode_where_the_direct_one_cannot() -> None:
    torch.manual_seed(1)
    model = Reader(Stack(2, (5,), cell=LSTM)).double()
    torch.nn.init.normal_(model.stack.forwards[0].weight_h, std=6.0)
    torch.nn.init.constant_(model.stack.forwards[0].bias, 0.0)
    found = paths(trace(seen(model, ragged(3, 23, 2))[0]))
    real = found.mask
    assert (found.direct[real] <= 1).all() and (found.hh[real] > 10).any()


def test_gates_are_those_of_the_equation() -> None:
    torch.manual_seed(4)
    model = Reader(Stack(2, (3,), cell=LSTM)).double()
    (run,) = seen(model, ragged(2, 5, 2))
    steps = trace(run)
    found = gates(steps)
    assert set(found) == {"input_gate", "forget_gate", "output_gate"}
    h = c = np.zeros(3)
    for t, x in enumerate(run.calls[0].x[1].numpy()):
        _, f, h, c = lstm_jacobian(run.place.cell, x, h, c)
        np.testing.assert_allclose(found["forget_gate"][1, t].numpy(), f, atol=1e-12)


def test_saturation_and_half_life_look_at_real_steps_alone() -> None:
    gate = torch.tensor([[[0.05, 0.5], [0.95, 0.25]], [[0.5, 0.5], [0.01, 0.01]]])
    mask = torch.tensor([[True, True], [True, False]])
    shares = saturation(gate, mask)
    assert shares.shut.tolist() == pytest.approx([1 / 3, 0])
    assert shares.open.tolist() == pytest.approx([1 / 3, 0])
    expected = np.log(2) / -np.log([0.05 * 0.95 * 0.5, 0.5 * 0.25 * 0.5]) * 3
    assert half_life(gate, mask).tolist() == pytest.approx(expected.tolist(), rel=1e-5)
    assert half_life(torch.ones(1, 2, 1), torch.ones(1, 2) > 0).tolist() == [math.inf]


def test_spectra_are_numpy_s_gate_by_gate() -> None:
    cell = LSTM(2, 5).double()
    torch.nn.init.normal_(cell.weight_h)
    matrices = recurrent_matrices(cell)
    blocks = np.split(cell.weight_h.detach().numpy(), 4)
    radius = [np.abs(np.linalg.eigvals(block)).max() for block in blocks]
    np.testing.assert_allclose(sigma_max(matrices).numpy(), [norm(block) for block in blocks], rtol=1e-10)
    np.testing.assert_allclose(spectral_radius(matrices).numpy(), radius, rtol=1e-10)


@pytest.mark.parametrize("shape", [(5, 5), (3, 7), (7, 3)])
@pytest.mark.parametrize("scale", [1e-35, 1e-20, 1.0, 1e20, 1e35])
def test_the_largest_singular_value_is_right_at_any_scale(shape: tuple[int, int], scale: float) -> None:
    matrices = torch.randn(2, *shape, generator=torch.Generator().manual_seed(3)) * scale
    expected = [norm(one.double().numpy()) for one in matrices]
    np.testing.assert_allclose(sigma_max(matrices).numpy(), expected, rtol=1e-6)


def test_the_largest_singular_value_of_nothing_is_0_and_of_what_overflowed_infinite() -> None:
    matrices = torch.stack([torch.zeros(2, 2), torch.eye(2), torch.full((2, 2), torch.inf)])
    matrices[1, 0, 1] = torch.nan
    assert sigma_max(matrices).tolist() == [0, torch.inf, torch.inf]


def test_entropy_is_numpy_s_and_zero_at_masked_positions() -> None:
    weights = np.random.default_rng(3).dirichlet(np.ones(7), size=(2, 5))
    expected = -(weights * np.log(weights)).sum(-1)
    np.testing.assert_allclose(entropy(torch.from_numpy(weights)).numpy(), expected, rtol=1e-12)
    assert entropy(torch.tensor([0.5, 0.5, 0.0])).item() == pytest.approx(np.log(2), rel=1e-6)
