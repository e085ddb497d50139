"""One update: the summed gradient of a group of batches, divided once, clipped, stepped on.

    g = Σ over the group's batches of d total / dθ,   divided by Σ count

so a group of small batches gives the gradient of the one big batch, padding and split notwithstanding.
Read next: guard.py, for what is not finite; loop.py.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from weft.errors import ConfigError
from weft.nn.heads.head import Loss
from weft.randomness import drawing
from weft.train import devices, seeds
from weft.train.guard import NonFinite, explain
from weft.train.objectives.likelihood import OwnLoss
from weft.train.objectives.objective import Criterion
from weft.train.position import Group, Position
from weft.train.processes import Processes
from weft.train.settings import Settings
from weft.train.workers import Workers
from weft.tree import State


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
    carried: the state for the next batch, where the task carries one; nothing after a skipped update.
    split: batches that were computed in parts, for want of memory.
    """

    total: float
    count: float
    tokens: int
    norm: float
    rate: float
    feeding: float
    stepped: bool
    skipped: str = ""
    carried: State = None
    split: int = 0


def update(
    task: Any,
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    group: Group,
    position: Position,
    factor: float,
    settings: Settings,
    workers: Workers | None = None,
    carried: State = None,
    processes: Processes | None = None,
    criterion: Criterion | None = None,
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
        workers: run the batches; one after the other without any.
        carried: the state after the batch before, where the task carries one (C11).
        processes: that share the batches; this one alone without any.
        criterion: makes the losses; the model's own without any.

    Raises:
        NonFinite: the loss or the gradient is not finite; nothing was stepped on.
    """
    feeding = settings.feeding.probability(position.update, position.epoch)
    device = next(model.parameters()).device
    workers = workers or Workers(1, 1, device)
    processes = processes or Processes(device)
    mine = processes.part(group, settings.accumulate)
    criterion = criterion or OwnLoss(model)
    parameters = [parameter for parameter in criterion.learner.parameters() if parameter.requires_grad]
    run = partial(_run, task, criterion, parameters, group, feeding, settings, carried, workers.count == 1)
    sums, tokens, examples, after = [torch.zeros(2, dtype=torch.float64, device=device)], 0, 0, None
    split = 0
    optimiser.zero_grad(set_to_none=True)
    for part in workers.map(run, mine):
        _add(parameters, part.gradients)
        sums.append(torch.stack([part.loss.total.double(), part.loss.count.double()]))
        tokens += part.tokens
        examples += part.examples
        after = part.carried
        split += part.parts > 1
    processes.add_gradients(parameters)
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    length = torch.nn.utils.get_total_norm(gradients).double()
    # The one wait for the device in an update.
    total, count, length_ = torch.cat([torch.stack(sums).sum(0), length[None]]).tolist()
    total, count, tokens_, examples_ = processes.sum([total, count, tokens, examples])
    tokens, examples = int(tokens_), int(examples_)
    divisor = max(1.0, count if settings.loss == "per_token" else float(examples))
    norm = length_ / divisor
    rate = settings.optimiser.lr * factor
    if not (math.isfinite(total) and math.isfinite(norm)):
        losses = (_loss(task, criterion, group, feeding, settings, carried, one)[0] for one in mine)
        where, what = explain(model, losses)
        why = (mine[where][0] if mine else 0, what)
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
    for options in optimiser.param_groups:
        options["lr"] = rate
    optimiser.step()
    return Taken(total, count, tokens, norm, rate, feeding, True, carried=after, split=split)


class _Part(NamedTuple):
    """What one batch adds to an update."""

    loss: Loss
    gradients: tuple[Tensor | None, ...]
    tokens: int
    examples: int
    carried: State
    parts: int = 1


def _run(
    task: Any,
    criterion: Criterion,
    parameters: list[nn.Parameter],
    group: Group,
    feeding: float,
    settings: Settings,
    carried: State,
    alone: bool,
    batch: tuple[int, Any],
) -> _Part:
    """One batch, or its halves one after the other where the device has no memory for it.

    The sum of the halves' gradients is that of the batch; dropout and fed words are drawn for each half.
    """
    one = partial(_one, task, criterion, parameters, group, feeding, settings, carried, alone)
    try:
        return one(batch)
    except torch.OutOfMemoryError as error:
        if len(batch[1]) < 2 or getattr(task, "streams", False):
            raise ConfigError(
                f"the device has no memory for a batch of {len(batch[1])} "
                f"({str(error).splitlines()[0][:90]}); make batches smaller in the section data, or the "
                "model in the section model"
            ) from None
    # Outside of the except block: the error holds on to all that the batch had made.
    if next(criterion.model.parameters()).device.type == "cuda":
        torch.cuda.empty_cache()
    offset, numbers = batch
    middle = len(numbers) // 2
    halves = [
        _run(task, criterion, parameters, group, feeding, settings, carried, alone, (offset, numbers[part]))
        for part in (slice(None, middle), slice(middle, None))
    ]
    return _sum(*halves)


def _sum(first: _Part, second: _Part) -> _Part:
    gradients = tuple(
        one if two is None else two if one is None else one + two
        for one, two in zip(first.gradients, second.gradients, strict=True)
    )
    return _Part(
        Loss(first.loss.total + second.loss.total, first.loss.count + second.loss.count),
        gradients,
        first.tokens + second.tokens,
        first.examples + second.examples,
        None,
        first.parts + second.parts,
    )


def _one(
    task: Any,
    criterion: Criterion,
    parameters: list[nn.Parameter],
    group: Group,
    feeding: float,
    settings: Settings,
    carried: State,
    alone: bool,
    batch: tuple[int, Any],
) -> _Part:
    loss, tokens, after = _loss(task, criterion, group, feeding, settings, carried, batch, alone=alone)
    gradients = torch.autograd.grad(loss.total, parameters, allow_unused=True)
    detached = Loss(loss.total.detach(), loss.count.detach())
    return _Part(detached, gradients, tokens, len(batch[1]), after)


def _loss(
    task: Any,
    criterion: Criterion,
    group: Group,
    feeding: float,
    settings: Settings,
    carried: State,
    numbered: tuple[int, Any],
    *,
    alone: bool = True,
) -> tuple[Loss, int, State]:
    device = next(criterion.model.parameters()).device
    bfloat16 = devices.uses_bfloat16(settings.precision, device)
    # At 1 a model may take its parallel path, and one that knows no feeding is not asked about it.
    forced = {} if feeding >= 1 else {"feeding": feeding, "per_sequence": settings.feeding.per_sequence}
    forced |= {"parallel": True} if forced and settings.feeding.parallel else {}
    offset, numbers = numbered
    batch = task.collate(numbers).to(device)
    number = seeds.derive(settings.seed, "batch", group.epoch, group.index + offset)
    if alone:  # torch's own generators belong to all threads; a part that draws from them needs one worker
        seeds.settle(number, device)
    own = torch.Generator().manual_seed(number) if device.type == "cpu" else None
    after = None
    with drawing(own), devices.autocast(bfloat16, device):
        if getattr(task, "streams", False):
            loss, after = criterion.model.carry_on(  # type: ignore[operator]
                batch, carried if batch.continues else None
            )
        else:
            loss = criterion.loss(batch, **forced)
    return loss, int(batch.target_tokens), after


def _add(parameters: list[nn.Parameter], gradients: tuple[Tensor | None, ...]) -> None:
    """Add a batch's gradients to the sums, in place."""
    taken: set[int] = set()
    for parameter, gradient in zip(parameters, gradients, strict=True):
        if gradient is None:
            continue
        if parameter.grad is not None:
            parameter.grad.add_(gradient)
            continue
        # autograd may hand out one tensor twice, or a broadcast one; it will be scaled in place
        alone = gradient.is_contiguous() and gradient.data_ptr() not in taken
        parameter.grad = gradient if alone else gradient.clone()
        taken.add(gradient.data_ptr())


def _sentence(group: Group, position: Position, why: tuple[int, str]) -> str:
    offset, what = why
    numbers = [int(number) for number in group.numbers[offset]]
    shown = ", ".join(str(number) for number in numbers[:8]) + (", ..." if len(numbers) > 8 else "")
    return (
        f"update {position.update + 1}: {what} in batch {group.index + offset} of epoch {group.epoch} "
        f"(examples {shown})"
    )
