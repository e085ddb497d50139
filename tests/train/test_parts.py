"""Optimisers, schedules and teacher forcing equal their formulae."""

import math

import numpy as np
import pytest
import torch
from torch import nn

import weft.train.feeding
import weft.train.optimisers
import weft.train.schedules
from weft import rooms
from weft.errors import ConfigError
from weft.train.feeding import (
    ConstantFeeding,
    Exponential,
    Feeding,
    InverseSigmoid,
    LinearFeeding,
    StepFeeding,
    always_true,
)
from weft.train.optimisers import SGD, Adam, AdamW, Optimiser, can_fuse
from weft.train.schedules import (
    ConstantSchedule,
    CosineSchedule,
    InverseSquareRoot,
    LinearSchedule,
    Noam,
    Plateau,
    Schedule,
)


def take_steps(part: Optimiser, gradients: np.ndarray, start: np.ndarray) -> np.ndarray:
    layer = nn.Linear(3, 2, bias=False, dtype=torch.float64)
    layer.weight.data = torch.from_numpy(start.copy())
    optimiser = part.build(layer)
    for gradient in gradients:
        layer.weight.grad = torch.from_numpy(gradient.copy())
        optimiser.step()
    return layer.weight.detach().numpy()


@pytest.fixture
def numbers() -> tuple[np.ndarray, np.ndarray]:
    chance = np.random.default_rng(3)
    return chance.standard_normal((5, 2, 3)), chance.standard_normal((2, 3))


@pytest.mark.parametrize("nesterov", [False, True])
def test_sgd_equals_its_formula(numbers: tuple[np.ndarray, np.ndarray], nesterov: bool) -> None:
    gradients, theta = numbers
    got = take_steps(SGD(lr=0.1, momentum=0.9, nesterov=nesterov, weight_decay=0.03), gradients, theta)
    b = np.zeros_like(theta)
    for g in gradients:
        g = g + 0.03 * theta
        b = 0.9 * b + g
        theta = theta - 0.1 * (g + 0.9 * b if nesterov else b)
    np.testing.assert_allclose(got, theta, rtol=0, atol=1e-12)


@pytest.mark.parametrize("decoupled", [False, True])
def test_adam_and_adamw_equal_their_formulae(numbers: tuple[np.ndarray, np.ndarray], decoupled: bool) -> None:
    gradients, theta = numbers
    part = (AdamW if decoupled else Adam)(lr=0.01, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1)
    got = take_steps(part, gradients, theta)
    m = v = np.zeros_like(theta)
    for n, g in enumerate(gradients, 1):
        if decoupled:
            theta = theta - 0.01 * 0.1 * theta
        else:
            g = g + 0.1 * theta
        m, v = 0.8 * m + 0.2 * g, 0.95 * v + 0.05 * g * g
        theta = theta - 0.01 * (m / (1 - 0.8**n)) / (np.sqrt(v / (1 - 0.95**n)) + 1e-6)
    np.testing.assert_allclose(got, theta, rtol=0, atol=1e-12)


def test_adamw_spares_biases_norms_and_embeddings() -> None:
    model = nn.ModuleDict({"embed": nn.Embedding(5, 3), "norm": nn.LayerNorm(3), "layer": nn.Linear(3, 5)})
    model["tied"] = nn.Linear(3, 5)
    model["tied"].weight = model["embed"].weight
    model["frozen"] = nn.Linear(2, 2).requires_grad_(False)
    decays = {
        id(p): group["weight_decay"]
        for group in AdamW(weight_decay=0.1).build(model).param_groups
        for p in group["params"]
    }
    named = {name: decays.get(id(p)) for name, p in model.named_parameters()}
    assert {name for name, decay in named.items() if decay == 0.1} == {"layer.weight"}
    assert {name for name, decay in named.items() if decay is None} == {"frozen.weight", "frozen.bias"}
    everything = AdamW(weight_decay=0.1, decay_all=True).build(model).param_groups
    assert [group["weight_decay"] for group in everything] == [0.1]


def test_what_cannot_be_fused_is_stepped_on_plainly() -> None:
    layer = nn.Linear(2, 2, dtype=torch.complex64)
    assert not can_fuse(layer)
    layer.weight.grad = torch.ones_like(layer.weight)
    before = layer.weight.detach().clone()
    AdamW(lr=0.1).build(layer).step()
    assert not torch.equal(before, layer.weight)


@pytest.mark.parametrize(
    ("part", "update", "done", "factor"),
    [
        (ConstantSchedule(), 1, 0.0, 1.0),
        (ConstantSchedule(warmup=4), 1, 0.0, 0.25),
        (ConstantSchedule(warmup=4), 9, 0.5, 1.0),
        (InverseSquareRoot(warmup=100), 25, 0.0, 0.25),
        (InverseSquareRoot(warmup=100), 100, 0.0, 1.0),
        (InverseSquareRoot(warmup=100), 400, 0.0, 0.5),
        (Noam(width=256, warmup=100), 100, 0.0, 1 / 160),
        (Noam(width=256, warmup=100), 50, 0.0, 1 / 320),
        (Noam(width=256, warmup=100), 400, 0.0, 1 / 320),
        (LinearSchedule(warmup=10), 5, 0.05, 0.5),
        (LinearSchedule(warmup=10), 10, 0.1, 1.0),
        (LinearSchedule(warmup=10), 55, 0.55, 0.5),  # of 100 planned updates half of those after the warm-up
        (LinearSchedule(warmup=10, floor=0.2), 100, 1.0, 0.2),
        (LinearSchedule(warmup=10), 500, 0.0, 1.0),  # no planned end
        (CosineSchedule(), 25, 0.25, (1 + math.sqrt(0.5)) / 2),
        (CosineSchedule(warmup=10), 55, 0.55, 0.5),
        (CosineSchedule(floor=0.1), 100, 1.0, 0.1),
        (CosineSchedule(warmup=200), 100, 1.0, 0.5),  # ends within its warm-up
    ],
)
def test_a_schedule_equals_its_formula(part: Schedule, update: int, done: float, factor: float) -> None:
    assert part.factor(update, done, part.start()) == pytest.approx(factor, abs=1e-12)


def test_plateau_waits_and_falls() -> None:
    part = Plateau(decay=0.5, patience=2, floor=0.2)
    state, factors = part.start(), []
    for loss in [3.0, 2.0, 2.0, 2.1, 1.9, float("nan"), 1.9, 1.9, 1.9, 1.9, 1.9]:
        state = part.observe(state, loss, higher=False)
        factors.append(part.factor(1, 0.0, state))
    #                   new  new  1    2    new  1    2     1     2    floor
    assert factors == [1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.25, 0.25, 0.2, 0.2, 0.2]


@pytest.mark.parametrize(
    ("part", "update", "epoch", "probability"),
    [
        (ConstantFeeding(), 1000, 9, 1.0),
        (ConstantFeeding(p=0.3), 0, 0, 0.3),
        (StepFeeding(after_epochs=2, after=0.25), 10, 1, 1.0),
        (StepFeeding(after_epochs=2, after=0.25), 11, 2, 0.25),
        (LinearFeeding(updates=10, floor=0.5), 0, 0, 1.0),
        (LinearFeeding(updates=10, floor=0.5), 4, 0, 0.8),
        (LinearFeeding(updates=10, floor=0.5), 99, 0, 0.5),
        (Exponential(k=0.5), 0, 0, 1.0),
        (Exponential(k=0.5), 3, 0, 0.125),
        (Exponential(k=0.5, floor=0.2), 3, 0, 0.2),
        (InverseSigmoid(k=3), 0, 0, 0.75),
        (InverseSigmoid(k=3), 6, 0, 3 / (3 + math.e**2)),
        (InverseSigmoid(k=10), round(10 * math.log(10) * 1000), 0, 0.0),
    ],
)
def test_feeding_equals_its_formula(part: Feeding, update: int, epoch: int, probability: float) -> None:
    assert part.probability(update, epoch) == pytest.approx(probability, abs=1e-12)


def test_only_what_never_falls_below_one_is_teacher_forcing() -> None:
    for part in (
        ConstantFeeding(),
        StepFeeding(after_epochs=2, after=1.0),
        LinearFeeding(updates=5, floor=1.0),
    ):
        assert always_true(part)
    for part in (
        StepFeeding(after_epochs=2),
        LinearFeeding(updates=5),
        Exponential(),
        ConstantFeeding(p=0.9),
    ):
        assert not always_true(part)


def test_each_room_holds_its_parts() -> None:
    assert set(rooms.parts(weft.train.optimisers, Optimiser)) == {"sgd", "adam", "adamw", "adagrad", "muon"}
    schedules = {"constant", "linear", "cosine", "cosine_restarts", "inverse_square_root", "noam", "plateau"}
    assert set(rooms.parts(weft.train.schedules, Schedule)) == schedules
    feedings = {"constant", "step", "linear", "exponential", "inverse_sigmoid"}
    assert set(rooms.parts(weft.train.feeding, Feeding)) == feedings


@pytest.mark.parametrize("part", rooms.parts(weft.train.schedules, Schedule).values())
def test_a_schedule_never_gives_a_negative_rate(part: type) -> None:
    made = part(width=16, warmup=7) if part is Noam else part(warmup=7)
    state = made.observe(made.start(), 1.0, True)
    factors = [made.factor(update, update / 50, state) for update in range(1, 51)]
    assert all(0 <= factor <= 1 for factor in factors)
    assert factors[0] < factors[6]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: ConstantFeeding(p=1.5), "^p: expected a number from 0 to 1, got 1.5"),
        (lambda: LinearFeeding(updates=0), "^updates: expected .* of at least 1, got 0"),
        (lambda: InverseSigmoid(k=0.5), "^k: expected .* of at least 1, got 0.5"),
        (lambda: Plateau(decay=1.0), "^decay: .*above 0 and below 1, got 1.0"),
        (lambda: Noam(width=0), "^width: .*got 0"),
        (lambda: ConstantSchedule(warmup=-1), "^warmup: .*got -1"),
        (lambda: AdamW(lr=-1.0), "^lr: expected a number of at least 0, got -1.0"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(make: object, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        make()  # type: ignore[operator]
