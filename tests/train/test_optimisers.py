"""Adagrad and Muon are their formulas; Adagrad leaves rows without a gradient alone."""

from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.laws.members import normal
from tests.nn.ways import needs, on_threads
from weft.errors import ConfigError
from weft.nn.cells.lstm import LSTM
from weft.nn.embed.neighbours import Neighbours, WordTable
from weft.nn.heads.categorical import Categorical
from weft.train import optimisers, update
from weft.train.optimisers import (
    POLYNOMIALS,
    Adagrad,
    Adam,
    AdamW,
    Muon,
    Optimiser,
    optimiser_name,
    orthogonal,
)


def test_three_steps_of_adagrad_are_the_formula() -> None:
    model = nn.Linear(3, 2, bias=False).double()
    optimiser = Adagrad(lr=0.3, start=0.5, eps=1e-6).build(model)
    theta, s = model.weight.detach().numpy().copy(), np.full((2, 3), 0.5)
    for step in range(3):
        g = np.array([[1.0, -2.0, 0.0], [0.0, 0.5, 3.0]]) * (step + 1)
        model.weight.grad = torch.from_numpy(g)
        optimiser.step()
        s += g**2
        theta -= 0.3 * g / (np.sqrt(s) + 1e-6)
    np.testing.assert_allclose(model.weight.detach().numpy(), theta, atol=1e-10)


@pytest.mark.parametrize(("place", "fused"), [("cpu", True), ("cuda", False)])
def test_only_a_cpu_has_a_fused_step(place: str, fused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    class Elsewhere(nn.Parameter):
        device = torch.device(place)  # type: ignore[assignment]

    model = nn.Linear(3, 2, bias=False)
    model.weight = Elsewhere(model.weight.detach())
    taken: dict[str, bool] = {}
    monkeypatch.setattr(optimisers, "SparseAdagrad", lambda *_, **named: taken.update(named))
    Adagrad().build(model)
    assert taken["fused"] is fused


@pytest.mark.parametrize(("part", "earlier"), [(Adagrad(), "Adagrad"), (Muon(), "_Muon"), (Adam(), "Adam")])
def test_checkpoints_of_earlier_versions_name_the_same_optimiser(part: Optimiser, earlier: str) -> None:
    built = type(part.build(nn.Linear(3, 2))).__name__
    assert optimiser_name(earlier) == optimiser_name(built) == type(part).__name__


def rows(numbers: list[int], seed: int) -> Tensor:
    """A gradient of a table of 13 x 19 that holds these rows."""
    values = normal(len(numbers), 19, seed=seed, dtype=torch.float32)
    return torch.sparse_coo_tensor(
        torch.tensor([numbers]), values, (13, 19), is_coalesced=True, check_invariants=True
    )


@needs("neighbours")
@pytest.mark.parametrize("threads", [1, 2])
def test_steps_on_rows_are_steps_on_the_whole_table(threads: int) -> None:
    tables = [nn.Embedding(13, 19) for _ in range(2)]
    tables[1].load_state_dict(tables[0].state_dict())
    optimisers = [Adagrad(lr=0.3, start=0.1, eps=1e-6).build(table) for table in tables]
    start = tables[0].weight.detach().clone()
    with on_threads(threads):
        for step, numbers in enumerate([[2], [0, 2, 5, 11], [5, 12]]):
            gradient = rows(numbers, step)
            tables[0].weight.grad, tables[1].weight.grad = gradient.to_dense(), gradient
            for optimiser in optimisers:
                optimiser.step()
            assert tables[1].weight.grad is gradient
    dense, sparse = (optimiser.state[optimiser.param_groups[0]["params"][0]] for optimiser in optimisers)
    assert dense["step"] == sparse["step"] == 3
    torch.testing.assert_close(sparse["sum"], dense["sum"], atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(tables[1].weight, tables[0].weight, atol=1e-6, rtol=1e-6)
    still = [number for number in range(13) if number not in (0, 2, 5, 11, 12)]
    assert torch.equal(tables[1].weight[still], start[still])


def test_gradients_of_rows_add_up() -> None:
    table = nn.Embedding(13, 19)
    parts = [rows([2, 7], 1), rows([0, 7, 11], 2), rows([7], 3)]
    total = sum(part.to_dense() for part in parts)
    for part in parts:
        update.add([table.weight], (part.clone(),))
    assert table.weight.grad is not None and table.weight.grad.is_coalesced()
    torch.testing.assert_close(table.weight.grad.to_dense(), total)


def test_only_models_that_can_give_sparse_gradients_are_asked_for_them() -> None:
    model = Neighbours(WordTable(5, 3), 5)
    assert not model.sparse_gradients
    Adagrad().build(model)
    assert model.sparse_gradients


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(7, 5)
        self.cell = LSTM(5, 6)
        self.key_value = nn.Linear(16, 32)
        self.head = Categorical(6, 7)


def gradients(model: nn.Module, step: int) -> None:
    for at, parameter in enumerate(model.parameters()):
        parameter.grad = normal(*parameter.shape, seed=10 * step + at, dtype=parameter.dtype)


def turned(g: np.ndarray) -> np.ndarray:
    x = g / np.linalg.norm(g)
    for a, b, c in POLYNOMIALS:
        x = a * x + b * x @ x.T @ x + c * x @ x.T @ x @ x.T @ x
    return x


def test_three_steps_of_muon_are_the_formula() -> None:
    layer = nn.Linear(6, 4, bias=False).double()
    optimiser = Muon(lr=0.03, weight_decay=0.2, momentum=0.8).build(layer)
    w, m = layer.weight.detach().numpy().copy(), np.zeros((4, 6))
    for step in range(3):
        gradients(layer, step)
        assert layer.weight.grad is not None
        g = layer.weight.grad.numpy()
        optimiser.step()
        m = 0.8 * m + 0.2 * g
        w = (1 - 0.03 * 0.2) * w - 0.2 * np.sqrt(6) * 0.03 * turned(g + 0.8 * (m - g))
    np.testing.assert_allclose(layer.weight.detach().numpy(), w, atol=1e-12)


@pytest.mark.parametrize("shape", [(24, 40), (40, 24), (16, 16)])
def test_singular_values_become_equal(shape: tuple[int, int]) -> None:
    few = min(shape)
    u, _ = torch.linalg.qr(normal(shape[0], few, seed=1, dtype=torch.float32))
    v, _ = torch.linalg.qr(normal(shape[1], few, seed=2, dtype=torch.float32))
    got = orthogonal((u * torch.linspace(0.05, 1, few) @ v.T)[None])[0]
    values = torch.linalg.svdvals(got)
    assert values.max() < 1.28 and values.min() > 0.72
    # the same u and v
    torch.testing.assert_close(got, u * (u.T @ got @ v).diagonal() @ v.T, atol=1e-4, rtol=0)


def parts_of(step: Tensor, rows: int) -> list[float]:
    return [float(torch.linalg.svdvals(part)[0]) for part in step.split(rows)]


def test_gates_keys_and_values_are_turned_one_by_one() -> None:
    model = Small()
    before = deepcopy(dict(model.named_parameters()))
    optimiser = Muon(lr=0.1, weight_decay=0).build(model)
    gradients(model, 0)
    model.cell.weight_h.grad[6:12] *= 1000  # type: ignore[index]
    optimiser.step()
    moved = {name: (one - before[name]).detach() for name, one in model.named_parameters()}
    for name, rows, side in (("cell.weight_h", 6, 6), ("cell.weight_x", 6, 6), ("key_value.weight", 16, 16)):
        lengths = parts_of(moved[name] / (0.2 * side**0.5 * 0.1), rows)
        assert len(lengths) > 1 and all(0.72 < length < 1.28 for length in lengths), name


def test_everything_else_is_adamw() -> None:
    model = Small()
    other = deepcopy(model)
    optimisers = Muon(lr=0.1, weight_decay=0.3).build(model), AdamW(lr=0.1, weight_decay=0.3).build(other)
    for step in range(3):
        for optimiser, of in zip(optimisers, (model, other), strict=True):
            gradients(of, step)
            optimiser.step()
    hidden = {"cell.weight_x", "cell.weight_h", "key_value.weight"}
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, other.get_parameter(name)) == (name not in hidden), name


def test_its_state_is_kept_and_loaded() -> None:
    whole = Small()
    optimiser = Muon(lr=0.1).build(whole)
    for step in range(4):
        if step == 2:
            again, kept = deepcopy(whole), deepcopy(optimisers.collect_state(whole, optimiser))
        gradients(whole, step)
        optimiser.step()
    resumed = Muon(lr=0.1).build(again)
    optimisers.restore_state(again, resumed, *kept, "here")
    for step in (2, 3):
        gradients(again, step)
        resumed.step()
    for name, parameter in whole.named_parameters():
        assert torch.equal(parameter, again.get_parameter(name)), name


def test_parts_without_gradients_rest() -> None:
    model = Small()
    before = deepcopy(dict(model.named_parameters()))
    optimiser = Muon().build(model)
    gradients(model, 0)
    model.cell.weight_h.grad = None
    optimiser.step()
    assert torch.equal(model.cell.weight_h, before["cell.weight_h"])
    assert not torch.equal(model.cell.weight_x, before["cell.weight_x"])


def test_matrices_spread_over_processes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimisers, "is_sharded", lambda parameter: True)
    with pytest.raises(ConfigError, match=r"set training\.sharding: none"):
        Muon().build(nn.Linear(3, 3))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"momentum": 1.5}, "momentum: .* got 1.5"),
        ({"lr": -1}, "^lr: .*got -1"),
        ({"betas": (0.9, 1.0)}, "^betas: .*got 1.0"),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Muon(**settings)
