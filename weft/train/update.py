"""One update: sum the gradients of a group of batches, divide once, clip, step.

    g = Σ over the group's batches of d total / dθ,   divided by Σ count

so a group of small batches has the gradient of one big batch, however it is padded or split.
Read next: batch.py, one batch; guard.py, losses that are not finite; training_state.py.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from weft.nn.regions import plainly
from weft.tasks.task import Training
from weft.train.batch import Pass, add
from weft.train.guard import NonFinite, advice, explain
from weft.train.objectives.likelihood import OwnLoss
from weft.train.objectives.objective import Criterion
from weft.train.position import BatchGroup, Position
from weft.train.processes import Processes, Share
from weft.train.settings import TrainingSettings
from weft.train.sharding import is_sharded, local
from weft.train.workers import BatchWorkers
from weft.tree import State
from weft.wording import plural


@dataclass(frozen=True, slots=True)
class UpdateResult:
    """The result of an update.

    total: loss in nats, summed over its real targets.
    count: number of real targets.
    tokens: number of target tokens.
    norm: gradient norm before clipping.
    rate: learning rate.
    feeding: probability of feeding the true token.
    stepped: whether the optimiser took a step; if not, `skipped` says why.
    carried: state for the next batch, if the task carries one; None after a skipped update.
    split: number of batches that were computed in parts, for lack of memory.
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
    training: Training,
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    group: BatchGroup,
    position: Position,
    factor: float,
    settings: TrainingSettings,
    workers: BatchWorkers | None = None,
    carried: State = None,
    processes: Processes | None = None,
    criterion: Criterion | None = None,
) -> UpdateResult:
    """Take one update.

    Args:
        training: collates examples into batches.
        model: model with a method `loss`.
        optimiser: optimiser over the parameters of the model.
        group: the batches.
        position: before the update.
        factor: factor of the learning rate, from the schedule.
        settings: training settings.
        workers: threads that compute batches in parallel; by default one after the other.
        carried: state after the previous batch, if the task carries one.
        processes: processes that share the batches; by default only this one.
        criterion: computes losses; by default the model's own.

    Raises:
        NonFinite: the loss or the gradient is not finite; the optimiser took no step.
    """
    device = next(model.parameters()).device
    workers = workers or BatchWorkers(1, 1, device)
    processes = processes or Processes(device)
    criterion = criterion or OwnLoss(model)
    parameters = [parameter for parameter in criterion.learner.parameters() if parameter.requires_grad]
    sharded = any(map(is_sharded, parameters))
    feeding = settings.feeding.probability(position.update, position.epoch)
    alone = workers.count == 1
    run = Pass(
        training, criterion, parameters, group, feeding, settings, carried, alone=alone, sharded=sharded
    )
    mine = processes.part(group, settings.accumulate, even=sharded)
    optimiser.zero_grad(set_to_none=True)
    passed = _pass_over(run, mine, workers, device)
    processes.add_gradients([parameter for parameter in parameters if not is_sharded(parameter)])
    summed = _summed(run, passed, processes)
    rate = settings.optimiser.lr * factor
    if not (math.isfinite(summed.total) and math.isfinite(summed.norm)):
        sentence = _trouble(run, model, mine, passed.losses, position)
        optimiser.zero_grad(set_to_none=True)
        _check_skips(sentence, position, settings)
        return UpdateResult(0.0, 0.0, summed.tokens, summed.norm, rate, feeding, False, sentence)
    _step(optimiser, parameters, summed, settings.clip_norm, rate)
    total, count, tokens, _, norm = summed
    return UpdateResult(
        total, count, tokens, norm, rate, feeding, True, carried=passed.carried, split=passed.split
    )


def _step(
    optimiser: torch.optim.Optimizer,
    parameters: Sequence[nn.Parameter],
    summed: "_Summed",
    clip_norm: float,
    rate: float,
) -> None:
    """Divide the summed gradients, shorten them to `clip_norm`, and let the optimiser step."""
    clip = min(1.0, clip_norm / (summed.norm + 1e-6)) if clip_norm else 1.0
    gradients = [local(parameter.grad) for parameter in parameters if parameter.grad is not None]
    torch._foreach_mul_(gradients, clip / summed.divisor)
    for options in optimiser.param_groups:
        options["lr"] = rate * options.get("scale", 1.0)
    optimiser.step()


class _Passed(NamedTuple):
    """Results of this process's batches; gradients are already added to the parameters."""

    losses: Tensor  # [1 + batches, 2]: total and count; the first row is zero
    tokens: int
    examples: int
    carried: State
    split: int


def _pass_over(run: Pass, mine: list[Share], workers: BatchWorkers, device: torch.device) -> _Passed:
    losses = [torch.zeros(2, dtype=torch.float64, device=device)]
    tokens, examples, split, after = 0, 0, 0, None
    for part in workers.map(run, mine):
        if not run.sharded:
            add(run.parameters, part.gradients)
        losses.append(torch.stack([each.double().to(device) for each in (part.loss.total, part.loss.count)]))
        tokens += part.tokens
        examples += part.examples
        after = part.carried
        split += part.parts > 1
    return _Passed(torch.stack(losses), tokens, examples, after, split)


class _Summed(NamedTuple):
    """Sums over all processes."""

    total: float  # nats
    targets: float
    tokens: int
    divisor: float  # the gradient is divided by it
    norm: float  # norm of the divided gradient


def _summed(run: Pass, passed: _Passed, processes: Processes) -> _Summed:
    lengths = torch.stack([_length(run.parameters, rows=rows) for rows in (False, True)])
    # The only synchronisation with the device in an update.
    total, count, length, of_rows = torch.cat([passed.losses.sum(0), lengths]).tolist()
    total, count, tokens, examples, squares = processes.sum(
        [total, count, passed.tokens, passed.examples, of_rows * of_rows]
    )
    divisor = max(1.0, count if run.settings.loss == "per_token" else float(int(examples)))
    norm = math.hypot(length, math.sqrt(squares) if run.sharded else 0.0) / divisor
    return _Summed(total, count, int(tokens), divisor, norm)


def _check_skips(sentence: str, position: Position, settings: TrainingSettings) -> None:
    """Raise NonFinite unless this update may be skipped."""
    if settings.non_finite == "raise":
        raise NonFinite(
            f"{sentence}; the update was not applied; {advice(settings)}, or set training.non_finite: skip"
        )
    if position.skipped >= settings.max_skips:
        raise NonFinite(
            f"{sentence}; skipped {plural(position.skipped, 'update')} already, the most that "
            "training.max_skips allows; lower training.optimiser.lr"
        )


def _length(parameters: list[nn.Parameter], *, rows: bool) -> Tensor:
    """The norm of the sharded gradients, or of the whole ones."""
    chosen = [one.grad for one in parameters if one.grad is not None and is_sharded(one) == rows]
    none = torch.zeros(1, device=parameters[0].device)
    return torch.nn.utils.get_total_norm([local(gradient) for gradient in chosen] or [none]).double()


def _worst(losses: Tensor) -> tuple[int, str]:
    for place, loss in enumerate(losses.tolist()):
        if not math.isfinite(loss):
            return place, f"the loss is {loss}"
    return 0, "the loss of another process or the gradient is not finite"


def _trouble(run: Pass, model: nn.Module, mine: list[Share], losses: Tensor, position: Position) -> str:
    """A sentence about what is not finite, and in which batch."""
    if run.sharded:  # layers cannot be watched: passes are collective
        where, what = _worst(losses[1:, 0])
    else:
        with plainly():
            where, what = explain(model, (run.loss(share)[0] for share in mine))
    return _sentence(run.group, position, (mine[where].offset if mine else 0, what))


def _sentence(group: BatchGroup, position: Position, why: tuple[int, str]) -> str:
    offset, what = why
    numbers = [int(number) for number in group.numbers[offset]]
    shown = ", ".join(str(number) for number in numbers[:8]) + (", ..." if len(numbers) > 8 else "")
    return (
        f"update {position.update + 1}: {what} in batch {group.index + offset} of epoch {group.epoch} "
        f"(examples {shown})"
    )
