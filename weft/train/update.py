"""One update: the summed gradient of a group of batches, divided once, clipped, stepped on.

    g = Σ over the group's batches of d total / dθ,   divided by Σ count

so a group of small batches gives the gradient of the one big batch, padding and split notwithstanding.
Read next: guard.py, for what is not finite; loop.py.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from weft.nn.heads.head import Loss
from weft.train import devices, seeds
from weft.train.guard import NonFinite, explain
from weft.train.position import Group, Position
from weft.train.settings import Settings


@dataclass(frozen=True, slots=True)
class Taken:
    """What an update did.

    total: nats, summed over its real targets.
    count: real targets.
    tokens: target tokens.
    norm: of the gradient, before clipping.
    rate: learning rate.
    feeding: probability of the true token.
    stepped: whether it was stepped on; the sentence of `skipped` says why not.
    """

    total: float
    count: float
    tokens: int
    norm: float
    rate: float
    feeding: float
    stepped: bool
    skipped: str = ""


def update(
    task: Any,
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    group: Group,
    position: Position,
    factor: float,
    settings: Settings,
) -> Taken:
    """Take one update.

    Args:
        task: collates.
        model: has `loss`.
        optimiser: over the parameters of the model.
        group: the batches.
        position: before the update.
        factor: of the learning rate, from the schedule.
        settings: how to train.

    Raises:
        NonFinite: the loss or the gradient is not finite; nothing was stepped on.
    """
    feeding = settings.feeding.probability(position.update, position.epoch)
    optimiser.zero_grad(set_to_none=True)
    sums, tokens, examples = [], 0, 0
    for numbers, batch, loss in _losses(task, model, group, feeding, settings):
        loss.total.backward()
        sums.append(torch.stack([loss.total.detach().double(), loss.count.detach().double()]))
        tokens += int(batch.target_tokens)
        examples += len(numbers)
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    length = torch.nn.utils.get_total_norm(gradients).double()
    # The one wait for the device in an update.
    total, count, length_ = torch.cat([torch.stack(sums).sum(0), length[None]]).tolist()
    divisor = max(1.0, count if settings.loss == "per_token" else float(examples))
    norm = length_ / divisor
    rate = settings.optimiser.lr * factor
    if not (math.isfinite(total) and math.isfinite(norm)):
        why = explain(model, (loss for _, _, loss in _losses(task, model, group, feeding, settings)))
        optimiser.zero_grad(set_to_none=True)
        sentence = _sentence(group, position, why)
        if settings.non_finite == "raise":
            raise NonFinite(
                f"{sentence}; nothing was stepped on; lower training.optimiser.lr, lengthen the warm-up, "
                "lower training.clip_norm or set training.non_finite: skip"
            )
        if position.skipped >= settings.max_skips:
            raise NonFinite(
                f"{sentence}; {position.skipped} updates were left out before it, training.max_skips allows "
                "no more; lower training.optimiser.lr"
            )
        return Taken(0.0, 0.0, tokens, norm, rate, feeding, False, sentence)
    clip = min(1.0, settings.clip_norm / (norm + 1e-6)) if settings.clip_norm else 1.0
    torch._foreach_mul_(gradients, clip / divisor)
    for parameters in optimiser.param_groups:
        parameters["lr"] = rate
    optimiser.step()
    return Taken(total, count, tokens, norm, rate, feeding, True)


def _losses(
    task: Any, model: nn.Module, group: Group, feeding: float, settings: Settings
) -> Iterator[tuple[np.ndarray, Any, Loss]]:
    device = next(model.parameters()).device
    bfloat16 = devices.uses_bfloat16(settings.precision, device)
    # At 1 a model may take its parallel path, and one that knows no feeding is not asked about it.
    forced = {} if feeding >= 1 else {"feeding": feeding, "per_sequence": settings.feeding.per_sequence}
    for index, numbers in enumerate(group.numbers, group.index):
        batch = task.collate(numbers).to(device)
        seeds.settle(seeds.derive(settings.seed, "batch", group.epoch, index), device)
        with devices.autocast(bfloat16, device):
            loss = model.loss(batch, **forced)  # type: ignore[operator]
        yield numbers, batch, loss


def _sentence(group: Group, position: Position, why: tuple[int, str]) -> str:
    offset, what = why
    numbers = [int(number) for number in group.numbers[offset]]
    shown = ", ".join(str(number) for number in numbers[:8]) + (", ..." if len(numbers) > 8 else "")
    return (
        f"update {position.update + 1}: {what} in batch {group.index + offset} of epoch {group.epoch} "
        f"(examples {shown})"
    )
