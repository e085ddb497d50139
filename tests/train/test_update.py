"""The gradient of an update: summed, divided once, clipped; what is not finite is not stepped on."""

from typing import Any

import numpy as np
import pytest
import torch

from tests.train.toy import Model, Task, settings
from weft.nn.heads.head import Loss
from weft.train.feeding import ConstantFeeding
from weft.train.objectives.likelihood import OwnLoss
from weft.train.optimisers import SGD
from weft.train.position import BatchGroup, Position
from weft.train.update import NonFinite, UpdateResult, Updates

ROWS = np.array([3, 14, 15, 9, 2, 6, 5])


def step(parts: list[np.ndarray], model: Model, **changes: Any) -> tuple[UpdateResult, list[torch.Tensor]]:
    """One update of gradient descent on these batches; the change of each parameter."""
    chosen = settings(**{"optimiser": SGD(lr=1.0), "clip_norm": 0.0, **changes})
    before = [p.detach().clone() for p in model.parameters()]
    optimiser = chosen.optimiser.build(model)
    group = BatchGroup(0, 0, parts, len(parts), 1, 0)
    taken = Updates(Task(dropout=0.0), OwnLoss(model), optimiser, chosen).take(group, Position(), 1.0)
    return taken, [p.detach() - old for p, old in zip(model.parameters(), before, strict=True)]


def fresh(dropout: float = 0.0) -> Model:
    torch.manual_seed(5)
    return Model(dropout).double()


@pytest.mark.parametrize("loss", ["per_token", "per_sequence"])
def test_accumulation_equals_the_big_batch(loss: str) -> None:
    _, whole = step([ROWS], fresh(), loss=loss)
    taken, parts = step([ROWS[:1], ROWS[1:5], ROWS[5:]], fresh(), loss=loss)
    for one, other in zip(whole, parts, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)
    assert taken.tokens == int(taken.count)


@pytest.mark.parametrize("loss", ["per_token", "per_sequence"])
def test_the_step_is_the_gradient_of_the_mean(loss: str) -> None:
    model = fresh()
    total, count = model.loss(Task().batch(ROWS))
    (total / (count if loss == "per_token" else len(ROWS))).backward()
    gradients = [p.grad for p in model.parameters()]
    _, change = step([ROWS], fresh(), loss=loss)
    for gradient, moved in zip(gradients, change, strict=True):
        torch.testing.assert_close(moved, -gradient, rtol=0, atol=1e-12)


class Seen(torch.nn.Module):
    """A convolution that gets its input with the channels last, as pictures come."""

    def __init__(self) -> None:
        super().__init__()
        self.stages = torch.nn.ModuleList([torch.nn.Conv2d(3, 5, 3), torch.nn.Conv2d(5, 7, 3)])

    def loss(self, batch: Any) -> Loss:
        draw = torch.Generator().manual_seed(int(batch.tokens.sum()))
        x = torch.randn(len(batch.tokens), 11, 13, 3, generator=draw).movedim(-1, 1)
        for stage in self.stages:
            x = stage(x).relu()
        return Loss(x.square().sum(), torch.tensor(1.0))


def test_gradients_that_lie_otherwise_in_memory_are_stepped_on_all_the_same() -> None:
    """A fused optimiser pairs what lies at the same place: it mixed up those of convolutions."""
    torch.manual_seed(5)
    model = Seen()
    model.loss(Task().batch(ROWS)).total.backward()  # which gives .grad the parameter's own layout
    gradients = [p.grad for p in model.parameters()]
    raw = torch.autograd.grad(model.loss(Task().batch(ROWS)).total, list(model.parameters()))
    assert any(one.stride() != p.stride() for one, p in zip(raw, model.parameters(), strict=True))
    _, change = step([ROWS], model, optimiser=SGD(lr=1e-3))
    for gradient, moved in zip(gradients, change, strict=True):
        torch.testing.assert_close(moved, -1e-3 * gradient, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("norm", [0.01, 100.0])
def test_clipping_equals_torch(norm: float) -> None:
    model = fresh()
    model.loss(Task().batch(ROWS)).mean.backward()
    length = torch.nn.utils.clip_grad_norm_(model.parameters(), norm)
    taken, change = step([ROWS], fresh(), clip_norm=norm)
    assert taken.norm == pytest.approx(float(length), abs=1e-12)
    for parameter, moved in zip(model.parameters(), change, strict=True):
        torch.testing.assert_close(moved, -parameter.grad, rtol=0, atol=1e-12)


def test_the_rate_is_lr_times_the_factor() -> None:
    model = fresh()
    chosen = settings(optimiser=SGD(lr=0.5))
    optimiser = chosen.optimiser.build(model)
    group = BatchGroup(0, 0, [ROWS], 1, 1, 0)
    taken = Updates(Task(), OwnLoss(model), optimiser, chosen).take(group, Position(), 0.25)
    assert taken.rate == 0.125
    assert optimiser.param_groups[0]["lr"] == 0.125


def test_feeding_is_named_only_below_one() -> None:
    model = fresh()
    step([ROWS], model, feeding=ConstantFeeding(p=1.0))
    step([ROWS], model, feeding=ConstantFeeding(p=0.75, per_sequence=True))
    assert model.asked == [{}, {"feeding": 0.75, "per_sequence": True}]


def test_autocast_computes_in_bfloat16_and_keeps_float32_weights() -> None:
    torch.manual_seed(5)
    model, kinds = Model(0.0), []
    model.output.register_forward_hook(lambda module, inputs, output: kinds.append(output.dtype))
    taken, _ = step([ROWS], model, precision="bfloat16")
    assert kinds == [torch.bfloat16]
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert {p.grad.dtype for p in model.parameters()} == {torch.float32}
    assert taken.stepped


class Broken(Model):
    """Gives a bad number at a chosen place for batches with row 14."""

    where = ""

    def loss(self, batch: Any, **feeding: Any) -> Loss:
        self.bad = 14 in batch.numbers
        total, count = super().loss(batch, **feeding)
        if self.bad and self.where == "loss":
            total = total + float("inf")
        return Loss(total, count)


class Infinite(torch.autograd.Function):
    """The identity, with an infinite gradient."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient * float("inf")


def broken(where: str) -> Broken:
    torch.manual_seed(5)
    model = Broken(0.3).double()
    model.where = where
    if where == "layer":
        model.norm.register_forward_hook(
            lambda module, inputs, output: output * (float("nan") if model.bad else 1.0)
        )
    if where == "gradient":
        model.norm.register_forward_hook(
            lambda module, inputs, output: Infinite.apply(output) if model.bad else output
        )
    return model


@pytest.mark.parametrize(
    ("where", "sentence"),
    [
        ("loss", r"the loss is inf: every layer's output is finite"),
        ("layer", r"the loss is nan: the output of layer norm is not finite"),
        ("gradient", r"the gradient (at the output of layer|of parameter) (norm|cell)"),
    ],
)
def test_what_is_not_finite_is_named_and_never_stepped_on(where: str, sentence: str) -> None:
    model = broken(where)
    before = [p.detach().clone() for p in model.parameters()]
    with pytest.raises(NonFinite, match=sentence) as caught:
        step([ROWS[3:], ROWS[:3]], model)
    assert "update 1" in str(caught.value)
    assert "in batch 1 of epoch 0 (examples 3, 14, 15)" in str(caught.value)
    assert all(torch.equal(p, old) for p, old in zip(model.parameters(), before, strict=True))
    assert all(p.grad is None for p in model.parameters())


def test_a_bad_parameter_is_named() -> None:
    model = fresh()
    model.cell.weight_hh_l0.data[2, 1] = float("nan")
    with pytest.raises(NonFinite, match=r"parameter cell\.weight_hh_l0 was not finite before"):
        step([ROWS], model)


def test_a_gradient_too_long_for_its_type_is_no_step() -> None:
    class Long(Model):
        def loss(self, batch: Any, **feeding: Any) -> Loss:
            total, count = super().loss(batch)
            return Loss(total * 1e25, count)

    torch.manual_seed(5)
    with pytest.raises(NonFinite, match="the norm of the gradient overflows"):
        step([ROWS], Long(0.0))


def test_skipping_leaves_the_update_out_and_counts() -> None:
    taken, change = step([ROWS], broken("loss"), non_finite="skip")
    assert not taken.stepped
    assert "the loss is inf" in taken.skipped
    assert all(not moved.any() for moved in change)
    with pytest.raises(NonFinite, match=r"the most that training\.max_skips allows"):
        step([ROWS], broken("loss"), non_finite="skip", max_skips=0)
