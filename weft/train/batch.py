"""One batch of an update: its summed loss and gradients, computed in halves if memory runs out.

Read next: update.py, which adds them up.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from weft.errors import ConfigError
from weft.nn import devices
from weft.nn.heads.head import Loss
from weft.nn.randomness import Rows, drawing, part_of_batch
from weft.nn.recompute import recomputing
from weft.tasks.task import Training
from weft.train import seeds
from weft.train.objectives.objective import Criterion
from weft.train.position import BatchGroup
from weft.train.prefetch import made_batch
from weft.train.processes import Share
from weft.train.settings import TrainingSettings
from weft.tree import State


class BatchResult(NamedTuple):
    """The contribution of one batch to an update."""

    loss: Loss
    gradients: tuple[Tensor | None, ...]  # empty if parameters are sharded: they accumulate their own
    tokens: int
    examples: int
    carried: State
    parts: int = 1


@dataclass(frozen=True)
class Pass:
    """The forward and backward pass over one batch of a group.

    Args:
        training: collates examples into batches.
        criterion: computes losses.
        parameters: parameters to differentiate.
        group: the batches of this update.
        feeding: probability of feeding the true token.
        settings: training settings.
        carried: state after the previous batch, if the task carries one.
        alone: whether no other pass runs in this process at the same time.
        sharded: whether the parameters are sharded; gradients are then added to them directly.
    """

    training: Training
    criterion: Criterion
    parameters: list[nn.Parameter]
    group: BatchGroup
    feeding: float
    settings: TrainingSettings
    carried: State
    alone: bool
    sharded: bool

    def __call__(self, share: Share, rows: Rows | None = None) -> BatchResult:
        """Compute one batch, or its halves in turn if the device runs out of memory.

        The gradients of the halves sum to the gradient of the batch. Dropout and teacher forcing draw the
        same numbers if the batch can be cut into rows (tasks/task.py); otherwise, and for sampled words,
        each half draws its own.

        Args:
            share: this process's part of the batch.
            rows: rows to compute; all by default.
        """
        rows = rows or Rows(0, len(share.numbers), len(share.numbers))
        count = rows.end - rows.begin
        try:
            return self._one(share, rows)
        except torch.OutOfMemoryError as error:
            # With sharding, each pass is collective: all processes would have to split theirs too.
            if count < 2 or self.training.streams or self.sharded:
                raise ConfigError(
                    f"out of memory for a batch of {count} "
                    f"({str(error).splitlines()[0][:90]}); make batches smaller in the section data, or the "
                    "model in the section model, or set training.checkpoint_activations: true"
                ) from None
        # Outside of the except block, because the error keeps the tensors of the batch alive.
        if next(self.criterion.model.parameters()).device.type == "cuda":
            torch.cuda.empty_cache()
        middle = rows.begin + count // 2
        halves = rows._replace(end=middle), rows._replace(begin=middle)
        return _sum(*[self(share, half) for half in halves])

    def loss(self, share: Share, rows: Rows | None = None) -> tuple[Loss, int, State]:
        """The loss of a batch or some of its rows, its number of target tokens, and the state after it."""
        device = next(self.criterion.model.parameters()).device
        bfloat16 = devices.uses_bfloat16(self.settings.precision, device)
        feeding, how = self.feeding, self.settings.feeding
        # At 1 the model may take its parallel path, and a model without the argument still works.
        forced = {} if feeding >= 1 else {"feeding": feeding, "per_sequence": how.per_sequence}
        forced |= {"parallel": True} if forced and how.parallel else {}
        rows = rows or Rows(0, len(share.numbers), len(share.numbers))
        batch, rows = self._made(share, rows)
        batch = batch.to(device)
        number = seeds.derive(self.settings.seed, "batch", self.group.epoch, self.group.index + share.offset)
        if self.alone:  # torch's generators are shared by all threads
            seeds.settle(number, device)
        own = torch.Generator().manual_seed(number) if device.type == "cpu" else None
        after = None
        with (
            drawing(own),
            part_of_batch(rows),
            recomputing(self.settings.checkpoint_activations),
            devices.autocast(bfloat16, device),
        ):
            if self.training.streams:
                carried = self.carried if batch.continues else None
                loss, after = self.criterion.model.carry_on(batch, carried)  # type: ignore[operator]
            else:
                loss = self.criterion.loss(batch, **forced)
        return loss, int(batch.target_tokens), after

    def _made(self, share: Share, rows: Rows) -> tuple[Any, Rows]:
        """A batch of these rows, and its place in the whole batch (everything, if rows cannot be cut)."""
        if rows.whole and share.offset in self.group.made:
            return self.group.made[share.offset], rows
        whole = made_batch(self.training, self.settings.seed, self.group, share)
        if rows.whole:
            return whole, rows
        chosen = slice(rows.begin, rows.end)
        part = whole.rows(chosen) if hasattr(whole, "rows") else None
        if part is not None:
            return part, rows
        count = rows.end - rows.begin
        part = share._replace(numbers=share.numbers[chosen])
        return made_batch(self.training, self.settings.seed, self.group, part), Rows(0, count, count)

    def _one(self, share: Share, rows: Rows) -> BatchResult:
        loss, tokens, after = self.loss(share, rows)
        kept = Loss(loss.total.detach(), loss.count.detach())
        if not self.sharded:
            gradients = torch.autograd.grad(loss.total, self.parameters, allow_unused=True)
            return BatchResult(kept, gradients, tokens, rows.end - rows.begin, after)
        if share.counts:
            loss.total.backward()
            return BatchResult(kept, (), tokens, rows.end - rows.begin, after)
        (
            0 * loss.total
        ).backward()  # another process's batch: with sharding all processes must run equally many passes
        return BatchResult(Loss(0 * kept.total, 0 * kept.count), (), 0, 0, None)


def add(parameters: list[nn.Parameter], gradients: tuple[Tensor | None, ...]) -> None:
    """Add the gradients of a batch to those of the parameters, in place."""
    taken: set[int] = set()
    for parameter, gradient in zip(parameters, gradients, strict=True):
        if gradient is None:
            continue
        if parameter.grad is not None:
            parameter.grad = parameter.grad.add_(gradient)
            if parameter.grad.is_sparse:
                parameter.grad = parameter.grad.coalesce()
            continue
        if gradient.is_sparse:
            parameter.grad = gradient
            continue
        # Autograd may return one tensor twice, or a broadcast one, but it is scaled in place later. The
        # gradient of a convolution may have the memory layout of the picture, and a fused optimiser matches
        # elements by their memory position.
        alone = gradient.stride() == parameter.stride() and gradient.data_ptr() not in taken
        parameter.grad = gradient if alone else torch.empty_like(parameter).copy_(gradient)
        taken.add(gradient.data_ptr())


def _sum(first: BatchResult, second: BatchResult) -> BatchResult:
    gradients = tuple(
        one if two is None else two if one is None else one + two
        for one, two in zip(first.gradients, second.gradients, strict=True)
    )
    return BatchResult(
        Loss(first.loss.total + second.loss.total, first.loss.count + second.loss.count),
        gradients,
        first.tokens + second.tokens,
        first.examples + second.examples,
        None,
        first.parts + second.parts,
    )
