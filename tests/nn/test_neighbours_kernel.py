"""Compiled word2vec equals its plain twin, which test_neighbours.py compares with the paper pair by pair."""

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from tests.laws.members import normal
from tests.nn.ways import needs, on_threads
from weft.errors import ShapeError
from weft.nn.embed.neighbours import Neighbourhood, Neighbours, Subwords
from weft.nn.kernels import choice
from weft.nn.kernels.losses import Places, word2vec

compiled = needs("neighbours")
pytestmark = pytest.mark.usefixtures("unforced")
objectives = pytest.mark.parametrize("cbow", [False, True], ids=["skipgram", "cbow"])
SIZES = [(5, 3, 7, 11), (37, 29, 23, 13), (100, 67, 31, 101), (16, 16, 16, 5)]  # D, N, L, V


def places(drawn: int, length: int, words: int) -> Places:
    """Rows of several lines, one with a single word, and one that is all padding."""
    chance = torch.Generator().manual_seed(3)
    number = lambda *shape: torch.randint(words, shape, generator=chance)  # noqa: E731
    lines = torch.randint(3, (5, length), generator=chance).sort(1)[0]
    lines[1, 1:] = -1
    lines[2] = -1
    lines[3, length - 2 :] = -1
    reach = torch.randint(1, 6, (5, length), generator=chance)
    return Places(number(5, length), number(5, length), lines, reach, number(5, drawn))


def results(u: Tensor, v: Tensor, given: Places, *, cbow: bool) -> tuple[Tensor, ...]:
    u, v = u.clone().requires_grad_(), v.clone().requires_grad_()
    total, count = word2vec(u, v, given, 3, cbow=cbow)
    (1.7 * total).backward()  # a factor, as in gradient accumulation or loss scaling
    assert u.grad is not None and v.grad is not None
    return total.detach(), count, u.grad, v.grad


def alike(found: Sequence[Tensor], wanted: Sequence[Tensor]) -> None:
    """Equal in float32: to 1e-5 of the largest number of a tensor."""
    for one, other in zip(found, wanted, strict=True):
        assert other.isfinite().all()
        assert float((one - other).abs().max()) <= 1e-5 * float(other.abs().max())


@compiled
@objectives
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_law_7_values_and_gradients_equal_the_plain_twin(sizes: tuple[int, ...], cbow: bool) -> None:
    size, drawn, length, words = sizes
    u, v = normal(words, size, dtype=torch.float64), normal(words, size, seed=2, dtype=torch.float64)
    given = places(drawn, length, words)
    wanted = results(u, v, given, cbow=cbow)  # float64: the twin
    found = results(u.float(), v.float(), given, cbow=cbow)
    alike(found, wanted)
    with choice.use(fused="torch"):
        twin = results(u.float(), v.float(), given, cbow=cbow)
    assert not all(torch.equal(one, other) for one, other in zip(found, twin, strict=True))  # it was compiled


@compiled
@objectives
def test_the_number_of_threads_changes_no_bit(cbow: bool) -> None:
    u, v, given = (
        normal(13, 29, dtype=torch.float32),
        normal(13, 29, seed=2, dtype=torch.float32),
        places(7, 11, 13),
    )
    found = []
    for threads in (1, 2, 3):
        with on_threads(threads):
            found.append(results(u, v, given, cbow=cbow))
    for other in found[1:]:
        assert all(map(torch.equal, found[0], other))


@compiled
@objectives
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_sparse_gradients_hold_the_rows_that_were_read(sizes: tuple[int, ...], cbow: bool) -> None:
    size, drawn, length, words = sizes
    u, v = (normal(3 * words, size, seed=seed, dtype=torch.float32) for seed in (1, 2))
    given = places(drawn, length, words)
    whole = results(u, v, given, cbow=cbow)
    leaves = u.clone().requires_grad_(), v.clone().requires_grad_()
    total, count = word2vec(*leaves, given, 3, cbow=cbow, sparse=True)
    found = torch.autograd.grad(1.7 * total, leaves)
    assert torch.equal(total, whole[0]) and torch.equal(count, whole[1])
    read = [given.inner.unique(), torch.cat([given.outer, given.noise], 1).unique()]  # in order, each once
    for sparse, dense, rows in zip(found, whole[2:], read, strict=True):
        assert sparse.is_coalesced() and torch.equal(sparse.indices()[0], rows)
        assert torch.equal(sparse.to_dense(), dense)


@compiled
def test_only_parameters_have_sparse_gradients() -> None:
    u, v, given = normal(11, 5, dtype=torch.float32), normal(11, 5, dtype=torch.float32), places(3, 7, 11)
    u.requires_grad_(), v.requires_grad_()
    total, _ = word2vec(2 * u, v, given, 3, cbow=True, sparse=True)  # the product needs a dense gradient
    du, dv = torch.autograd.grad(total, (u, v))
    assert not du.is_sparse and dv.is_sparse


@compiled
def test_extreme_scores_have_a_loss_and_a_gradient() -> None:
    for by in (0.0, 1e-20, 30.0):
        u, v = (by * normal(5, 3, seed=seed, dtype=torch.float64) for seed in (1, 2))
        given = places(19, 7, 5)
        alike(results(u.float(), v.float(), given, cbow=False), results(u, v, given, cbow=False))


@compiled
def test_a_place_outside_its_table_is_refused() -> None:
    u, v, given = normal(13, 5, dtype=torch.float32), normal(11, 5, dtype=torch.float32), places(3, 7, 11)
    word2vec(u, v, given, 5, cbow=False)
    for name in ("inner", "outer", "noise"):
        for wrong in (-1, 13):
            rows = getattr(given, name).clone()
            rows[4, 2] = wrong
            with pytest.raises(ShapeError, match=name):
                word2vec(u, v, given._replace(**{name: rows}), 5, cbow=False)
    with pytest.raises(ShapeError, match="one width"):
        word2vec(u, v[:, :3], given, 5, cbow=False)


@compiled
@objectives
def test_a_model_of_n_grams_learns_in_compiled_code(cbow: bool) -> None:
    torch.manual_seed(5)
    inner = Subwords(["cat", "cats", "a", "of"], 7, shortest=3, longest=4, buckets=11)
    model = Neighbours(inner, 4, objective="cbow" if cbow else "skipgram", negatives=3)
    torch.nn.init.normal_(model.outer.table.weight)
    row = torch.tensor([[0, 3, 1, 2, 0], [1, 0, 0, 0, 0]])
    lines = torch.tensor([[0, 0, 0, 1, 1], [2, -1, -1, -1, -1]])
    batch = Neighbourhood(row, lines, torch.full_like(row, 2), torch.tensor([[3, 1, 1], [0, 2, 3]]), 6)
    parameters = list(model.parameters())
    found = torch.autograd.grad(model.loss(batch).total, parameters)
    model.double()
    alike(found, torch.autograd.grad(model.loss(batch).total, parameters))
