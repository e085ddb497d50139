"""One update: the summed gradient of a group of batches, divided once, clipped, stepped on.

    g = Σ over the group's batches of d total / dθ,   divided by Σ count

so a group of small batches gives the gradient of the one big batch, padding and split notwithstanding.
Read next: batch.py, what one batch gives; guard.py, for what is not finite; loop.py.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from weft.nn.regions import plainly
from weft.train.batch import Pass, add
from weft.train.guard import NonFinite, advice, explain
from weft.train.objectives.likelihood import OwnLoss
from weft.train.objectives.objective import Criterion
from weft.train.position import Group, Position
from weft.train.processes import Processes
from weft.train.settings import Settings
from weft.train.sharding import is_sharded, local
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
    criterion = criterion or OwnLoss(model)
    parameters = [parameter for parameter in criterion.learner.parameters() if parameter.requires_grad]
    sharded = any(map(is_sharded, parameters))
    mine = processes.part(group, settings.accumulate, even=sharded)
    alone = workers.count == 1
    run = Pass(task, criterion, parameters, group, feeding, settings, carried, alone=alone, sharded=sharded)
    sums, tokens, examples, after = [torch.zeros(2, dtype=torch.float64, device=device)], 0, 0, None
    split = 0
    optimiser.zero_grad(set_to_none=True)
    for part in workers.map(run, mine):
        if not sharded:
            add(parameters, part.gradients)
        sums.append(torch.stack([part.loss.total.double(), part.loss.count.double()]))
        tokens += part.tokens
        examples += part.examples
        after = part.carried
        split += part.parts > 1
    processes.add_gradients([parameter for parameter in parameters if not is_sharded(parameter)])
    gradients = [local(parameter.grad) for parameter in parameters if parameter.grad is not None]
    lengths = torch.stack([_length(parameters, rows=rows) for rows in (False, True)])
    # The one wait for the device in an update.
    losses = torch.stack(sums)
    total, count, length, of_rows = torch.cat([losses.sum(0), lengths]).tolist()
    total, count, tokens_, examples_, squares = processes.sum(
        [total, count, tokens, examples, of_rows * of_rows]
    )
    tokens, examples = int(tokens_), int(examples_)
    divisor = max(1.0, count if settings.loss == "per_token" else float(examples))
    norm = math.hypot(length, math.sqrt(squares) if sharded else 0.0) / divisor
    rate = settings.optimiser.lr * factor
    if not (math.isfinite(total) and math.isfinite(norm)):
        if sharded:  # layers are not watched: a pass is one of all processes
            where, what = _worst(losses[1:, 0])
        else:
            with plainly():
                where, what = explain(model, (run.loss(share)[0] for share in mine))
        why = (mine[where].offset if mine else 0, what)
        optimiser.zero_grad(set_to_none=True)
        sentence = _sentence(group, position, why)
        if settings.non_finite == "raise":
            raise NonFinite(
                f"{sentence}; nothing was stepped on; {advice(settings)}, or set training.non_finite: skip"
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


def _length(parameters: list[nn.Parameter], *, rows: bool) -> Tensor:
    """Of the gradients that are here by their rows, or of those that are whole."""
    chosen = [one.grad for one in parameters if one.grad is not None and is_sharded(one) == rows]
    none = torch.zeros(1, device=parameters[0].device)
    return torch.nn.utils.get_total_norm([local(gradient) for gradient in chosen] or [none]).double()


def _worst(losses: Tensor) -> tuple[int, str]:
    for place, loss in enumerate(losses.tolist()):
        if not math.isfinite(loss):
            return place, f"the loss is {loss}"
    return 0, "the loss of another process or the gradient is not finite"


def _sentence(group: Group, position: Position, why: tuple[int, str]) -> str:
    offset, what = why
    numbers = [int(number) for number in group.numbers[offset]]
    shown = ", ".join(str(number) for number in numbers[:8]) + (", ..." if len(numbers) > 8 else "")
    return (
        f"update {position.update + 1}: {what} in batch {group.index + offset} of epoch {group.epoch} "
        f"(examples {shown})"
    )
