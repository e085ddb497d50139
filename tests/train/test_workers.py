"""Batches side by side give the update that they give one after the other, to the bit."""

import threading
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import nn

from weft.nn.heads.head import Loss
from weft.nn.kernels.dropout import Dropout
from weft.nn.kernels.linear import Linear
from weft.train.objectives.likelihood import OwnLoss
from weft.train.optimisers import AdamW
from weft.train.position import BatchGroup, Position
from weft.train.settings import TrainingSettings
from weft.train.update import BatchWorkers, Updates


class Batch(NamedTuple):
    x: torch.Tensor
    target_tokens: int

    def to(self, device: torch.device) -> "Batch":
        return self


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.drop, self.second = nn.Linear(7, 13), Dropout(0.4), nn.Linear(13, 1)

    def loss(self, batch: Batch) -> Loss:
        y = self.second(self.drop(torch.tanh(self.first(batch.x))))
        return Loss(y.square().sum(), torch.tensor(len(batch.x)))


class Task:
    streams = False
    solved = False

    def collate(self, numbers: np.ndarray) -> Batch:
        x = torch.sin(torch.arange(7.0)[None] + torch.from_numpy(numbers)[:, None].float())
        return Batch(x, len(numbers))


@pytest.fixture
def two_threads() -> Iterator[None]:
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(1)


def updates(workers: BatchWorkers) -> list[torch.Tensor]:
    torch.manual_seed(3)
    model = Model()
    settings = TrainingSettings(optimiser=AdamW(lr=0.1), max_updates=3, accumulate=3)
    optimiser = settings.optimiser.build(model)
    numbers = [np.array([1, 2]), np.array([3]), np.array([5, 8, 13])]
    group = BatchGroup(epoch=0, index=0, numbers=numbers, next_epoch=0, next_index=3, batches=3)
    with workers:
        taken = Updates(Task(), OwnLoss(model), optimiser, settings, workers)
        for _ in range(3):
            taken.take(group, Position(), 1.0)
    return [parameter.detach() for parameter in model.parameters()]


@pytest.mark.usefixtures("two_threads")
def test_side_by_side_equals_one_after_the_other() -> None:
    cpu = torch.device("cpu")
    side_by_side = BatchWorkers(0, 3, cpu)
    assert side_by_side.count == 2
    for got, want in zip(updates(side_by_side), updates(BatchWorkers(1, 3, cpu)), strict=True):
        assert torch.equal(got, want)
    assert torch.get_num_threads() == 2


class Recurrent(nn.Module):
    """A weight that serves at every step and is read as a table; where asked, one batch ends within another.

    The batch of one row stops after half of its steps until the other batch has gone backward.
    """

    def __init__(self, *, within: bool) -> None:
        super().__init__()
        self.step, self.within = Linear(7, 7), within
        self.half, self.ended = threading.Event(), threading.Event()

    def loss(self, batch: Batch) -> Loss:
        h = batch.x + self.step.weight[:1]
        for at in range(8):
            if at == 4 and self.within and len(batch.x) == 1:
                self.half.set()
                assert self.ended.wait(20)
            if at == 4 and self.within and len(batch.x) > 1:
                assert self.half.wait(20)
            h = torch.tanh(self.step(h).float())
        total = h.square().sum()
        if self.within and len(batch.x) > 1:
            total.register_hook(lambda gradient: self.ended.set())
        return Loss(total, torch.tensor(len(batch.x)))


@pytest.mark.usefixtures("two_threads")
def test_in_bfloat16_a_batch_does_not_see_that_another_ends_within_it() -> None:
    # torch's own store of weights in bfloat16 belongs to all threads, and is emptied when any of them ends.
    found = []
    for within, at_a_time in ((True, 2), (False, 1)):
        torch.manual_seed(3)
        model = Recurrent(within=within)
        settings = TrainingSettings(max_updates=1, accumulate=2, clip_norm=0.0, precision="bfloat16")
        numbers = [np.array([1]), np.array([3, 5])]
        group = BatchGroup(epoch=0, index=0, numbers=numbers, next_epoch=0, next_index=2, batches=2)
        with BatchWorkers(at_a_time, 2, torch.device("cpu")) as workers:
            optimiser = settings.optimiser.build(model)
            Updates(Task(), OwnLoss(model), optimiser, settings, workers).take(group, Position(), 0.0)
        found.append([parameter.grad for parameter in model.parameters()])
    for side_by_side, alone in zip(*found, strict=True):
        assert torch.equal(side_by_side, alone)


def test_there_are_no_more_workers_than_threads_or_batches_and_one_on_a_gpu() -> None:
    assert BatchWorkers(8, 4, torch.device("cpu")).count == 1  # one thread in tests
    assert BatchWorkers(0, 4, torch.device("cuda")).count == 1


def test_one_tensor_as_the_gradient_of_two_parameters_is_scaled_once() -> None:
    class Twins(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(2))

        def loss(self, batch: Batch) -> Loss:
            return Loss((self.a + self.b).sum(), torch.tensor(4))

    model = Twins()
    settings = TrainingSettings(max_updates=1, clip_norm=0.0)
    group = BatchGroup(epoch=0, index=0, numbers=[np.array([1])], next_epoch=0, next_index=1, batches=1)
    optimiser = settings.optimiser.build(model)
    Updates(Task(), OwnLoss(model), optimiser, settings).take(group, Position(), 0.0)
    assert model.a.grad.tolist() == model.b.grad.tolist() == [0.25, 0.25]
