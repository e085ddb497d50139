"""Activation checkpointing: the same gradients as without it, dropout included, and less memory."""

from typing import Any, Literal

import pytest
import torch
from torch import Tensor

from tests.train.several import Pairs
from weft.nn.kernels import choice
from weft.nn.kernels.dropout import dropout
from weft.nn.randomness import drawing, recomputed, recomputing
from weft.probe import probe, record

KINDS = ["transformer", "recurrent", "lookback"]


def gradients(
    kind: str, wanted: bool, *, seeded: bool, rows: int = 13, dtype: torch.dtype = torch.float64
) -> tuple[list[Tensor], int]:
    """Gradients of a loss with dropout 0.3, and the bytes kept for the backward pass."""
    task = Pairs(kind, 4, 0.3, dtype)
    torch.manual_seed(3)
    model = task.model().train()
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    own = torch.Generator().manual_seed(5) if seeded else None
    torch.manual_seed(5)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor), drawing(own):
        with recomputing(wanted):
            loss = model.loss(task.batch(torch.arange(rows).numpy())).total
        before = None if own is None else own.get_state()
        found = torch.autograd.grad(loss, list(model.parameters()))
    if own is not None:
        # recomputing does not advance the generator
        assert before is not None and torch.equal(own.get_state(), before)
    weights = sum(p.untyped_storage().nbytes() for p in model.parameters())
    return list(found), sum(kept.values()) - weights


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seeded", [True, False])
def test_gradients_are_those_of_the_plain_way_with_dropout(kind: str, seeded: bool) -> None:
    plain, _ = gradients(kind, False, seeded=seeded)
    again, _ = gradients(kind, True, seeded=seeded)
    for one, other in zip(plain, again, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


@pytest.mark.parametrize("cells", ["auto", "torch"])
def test_every_kernel_of_cells_can_be_run_again(cells: Literal["auto", "torch"]) -> None:
    """In float32, the dtype of the compiled cells."""
    with choice.use(cells=cells):
        plain, _ = gradients("recurrent", False, seeded=True, dtype=torch.float32)
        again, _ = gradients("recurrent", True, seeded=True, dtype=torch.float32)
    for one, other in zip(plain, again, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("kind", "most"), [("transformer", 0.45), ("lookback", 0.6)])
def test_less_is_kept(kind: str, most: float) -> None:
    """Ratio of kept bytes, without the weights, in models of two layers per side and a small vocabulary."""
    assert gradients(kind, True, seeded=True)[1] < most * gradients(kind, False, seeded=True)[1]


def test_the_function_runs_twice_and_draws_the_same() -> None:
    drawn: list[Tensor] = []

    def layer(x: Tensor) -> Tensor:
        y = dropout(x, 0.5, training=True)
        drawn.append(y.detach().clone())
        return y.exp()

    x = torch.ones(1001, requires_grad=True)
    with drawing(torch.Generator().manual_seed(2)), recomputing():
        first, second = recomputed(layer, x), recomputed(layer, x)
        assert len(drawn) == 2 and not torch.equal(drawn[0], drawn[1])
        torch.autograd.grad((first + second).sum(), x)
    assert len(drawn) == 4
    assert {tuple(y.tolist()) for y in drawn[2:]} == {tuple(y.tolist()) for y in drawn[:2]}


@pytest.mark.parametrize("why", ["not asked", "no gradients", "watched", "inside"])
def test_it_is_the_function_itself_where(why: str) -> None:
    calls: list[Any] = []

    def layer(x: Tensor) -> Tensor:
        calls.append(record("x", x))
        return x * x

    x = torch.ones(3, requires_grad=True)
    if why == "not asked":
        y = recomputed(layer, x)
    elif why == "no gradients":
        with recomputing(), torch.no_grad():
            recomputed(layer, x)
        y = x.sum()
    elif why == "watched":
        with recomputing(), probe() as seen:
            y = recomputed(layer, x)
        assert len(seen["x"]) == 1
    else:  # nested layers: only the outer one is computed again
        with recomputing():
            y = recomputed(lambda x: recomputed(layer, x), x)
    torch.autograd.grad(y.sum(), x)
    assert len(calls) == (2 if why == "inside" else 1)
