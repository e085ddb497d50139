"""Adagrad is its formula, and leaves rows without a gradient alone."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.laws.members import normal
from tests.nn.ways import needs, on_threads
from weft.nn.embed.neighbours import Neighbours, WordTable
from weft.train import optimisers, update
from weft.train.optimiser_state import optimiser_name
from weft.train.optimisers import Adagrad, Adam, Muon, Optimiser


def test_three_steps_are_the_formula() -> None:
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
