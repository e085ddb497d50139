"""The laws of a head, for every file of weft/nn/heads."""

import inspect
from typing import Any

import pytest
import torch
from safetensors.torch import load, save
from torch import Tensor

from tests.laws.members import (
    CLASSES,
    HEADS,
    ROWS,
    SIZE,
    SOURCE,
    TARGET,
    TARGET_LENGTHS,
    Make,
    close,
    gradcheck,
    normal,
    ready,
)
from weft import masks
from weft.nn.heads.head import Head
from weft.nn.heads.pointer import CopySource, PointerFeatures
from weft.testing.values import every_parameter_reached

every_head = pytest.mark.parametrize("make", HEADS.values(), ids=HEADS)
training_or_not = pytest.mark.parametrize("training", [False, True], ids=["evaluation", "training"])


def head_of(make: Make, seed: int = 3) -> Head:
    return ready(lambda: make(SIZE), seed=seed)


def problem(make: Make) -> tuple[Tensor, Tensor, Tensor]:
    """Features, targets (classes or numbers, depending on the head) and their mask."""
    mask = masks.from_lengths(torch.tensor(TARGET_LENGTHS), TARGET)
    target = normal(ROWS, TARGET, seed=5)
    if "num_classes" in inspect.signature(make).parameters:
        target = torch.randint(0, CLASSES, (ROWS, TARGET), generator=torch.Generator().manual_seed(5))
    # For a head that copies also a gate, weights over SOURCE positions, and the coverage loss.
    width = SIZE + (SOURCE + 2 if copies(make) else 0)
    return normal(ROWS, TARGET, width), target, mask


def copies(make: Make) -> bool:
    """Whether this head reads a pointer's output."""
    return getattr(make, "func", make).copies  # type: ignore[no-any-return]


def read(head: Head, x: Tensor) -> Any:
    """A head's input made of numbers: x itself, or a pointer's output cut out of x."""
    if not head.copies:
        return x
    h, gate, energy, again = x.split([SIZE, 1, SOURCE, 1], -1)
    tokens = torch.tensor([4, 2, CLASSES, 4, 0, CLASSES + 1, 11]).expand(len(x), -1)
    return PointerFeatures(h, gate, energy.softmax(-1), again.abs(), CopySource(tokens))


@every_head
@training_or_not
def test_law_2_padding_changes_nothing_and_rows_add_up(make: Make, training: bool) -> None:
    head = head_of(make).train(training)
    h, target, mask = problem(make)
    loss = head.loss(read(head, h), target, mask)
    assert int(loss.count) == sum(TARGET_LENGTHS)
    other = head.loss(read(head, h.masked_fill(~mask[..., None], 50.0)), target.masked_fill(~mask, 1), mask)
    close(other.total, loss.total)
    alone = [
        head.loss(read(head, h[row : row + 1, :n]), target[row : row + 1, :n], mask[row : row + 1, :n])
        for row, n in enumerate(TARGET_LENGTHS)
    ]
    close(sum(each.total for each in alone), loss.total)
    close(loss.mean, loss.total / 28)


@every_head
def test_an_empty_batch_costs_nothing(make: Make) -> None:
    head = head_of(make)
    h, target, mask = problem(make)
    with torch.no_grad():
        loss = head.loss(read(head, h), target, torch.zeros_like(mask))
    assert (float(loss.total), int(loss.count), float(loss.mean)) == (0.0, 0, 0.0)


@every_head
@training_or_not
def test_law_5_gradcheck_and_gradients_reach_every_parameter(make: Make, training: bool) -> None:
    head = head_of(make).train(training)
    h, target, mask = problem(make)

    def total(h: Tensor) -> Tensor:
        return head.loss(read(head, h), target, mask).total

    gradcheck(head, total, h)
    every_parameter_reached(head, total(h))


@every_head
def test_law_10_saved_and_loaded_gives_the_same(make: Make) -> None:
    head, other = head_of(make), head_of(make, seed=4)
    other.load_state_dict(load(save(head.state_dict())))
    h, target, mask = problem(make)
    given = read(head, h)
    close(
        (other(given), *other.loss(given, target, mask)), (head(given), *head.loss(given, target, mask)), 0.0
    )


@every_head
def test_the_best_prediction_costs_least(make: Make) -> None:
    head = head_of(make)
    h, target, mask = problem(make)
    given = read(head, h)
    best = head.best(given, mask)
    assert best.shape == target.shape
    assert bool(head.loss(given, best, mask).total <= head.loss(given, target, mask).total)


@every_head
def test_bfloat16_autocast_stays_near_float32(make: Make) -> None:
    head = ready(lambda: make(SIZE), torch.float32)
    h, target, mask = problem(make)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = head.loss(read(head, h.float()), target, mask)
    assert loss.total.dtype == torch.float32
    close(loss.mean, head.loss(read(head, h.float()), target, mask).mean, 0.02)  # bfloat16
