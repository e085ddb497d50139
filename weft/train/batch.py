"""One batch of an update: its summed loss and the gradients of that sum, in halves if memory runs out.

Read next: update.py, which adds them up.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from weft.errors import ConfigError
from weft.nn.heads.head import Loss
from weft.randomness import Rows, drawing, part_of_batch
from weft.recompute import recomputing
from weft.tasks.ready import Training
from weft.train import devices, seeds
from weft.train.objectives.objective import Criterion
from weft.train.position import Group
from weft.train.processes import Share
from weft.train.settings import Settings
from weft.tree import State


class BatchResult(NamedTuple):
    """What one batch adds to an update."""

    loss: Loss
    gradients: tuple[Tensor | None, ...]  # empty where parameters are sharded: they have theirs
    tokens: int
    examples: int
    carried: State
    parts: int = 1


@dataclass(frozen=True)
class Pass:
    """A pass forward and backward over any batch of a group.

    Args:
        training: collates.
        criterion: makes the losses.
        parameters: whose gradients are wanted.
        group: the batches are of.
        feeding: probability of the true token.
        settings: how to train.
        carried: the state after the batch before, where the task carries one (C11).
        alone: whether no other pass runs beside it in this process.
        sharded: whether the parameters are; then gradients are added to theirs at once.
    """

    training: Training
    criterion: Criterion
    parameters: list[nn.Parameter]
    group: Group
    feeding: float
    settings: Settings
    carried: State
    alone: bool
    sharded: bool

    def __call__(self, share: Share, rows: Rows | None = None) -> BatchResult:
        """One batch, or its halves one after the other where the device has no memory for it.

        The sum of the halves' gradients is that of the batch, with its dropout and true words too where a
        batch can give some of its rows (tasks/ready.py); else, and for words that are drawn, each half draws
        its own.

        Args:
            share: the batch.
            rows: of it; all unless given.
        """
        rows = rows or Rows(0, len(share.numbers), len(share.numbers))
        count = rows.end - rows.begin
        try:
            return self._one(share, rows)
        except torch.OutOfMemoryError as error:
            # Sharded, all processes would have to halve theirs: each pass is a collective one.
            if count < 2 or self.training.streams or self.sharded:
                raise ConfigError(
                    f"the device has no memory for a batch of {count} "
                    f"({str(error).splitlines()[0][:90]}); make batches smaller in the section data, or the "
                    "model in the section model, or set training.checkpoint_activations: true"
                ) from None
        # Outside of the except block: the error holds on to all that the batch had made.
        if next(self.criterion.model.parameters()).device.type == "cuda":
            torch.cuda.empty_cache()
        middle = rows.begin + count // 2
        halves = rows._replace(end=middle), rows._replace(begin=middle)
        return _sum(*[self(share, half) for half in halves])

    def loss(self, share: Share, rows: Rows | None = None) -> tuple[Loss, int, State]:
        """The loss of a batch or of some rows of it, its target tokens, and the state after it."""
        device = next(self.criterion.model.parameters()).device
        bfloat16 = devices.uses_bfloat16(self.settings.precision, device)
        feeding, how = self.feeding, self.settings.feeding
        # At 1 a model may take its parallel path, and one that knows no feeding is not asked about it.
        forced = {} if feeding >= 1 else {"feeding": feeding, "per_sequence": how.per_sequence}
        forced |= {"parallel": True} if forced and how.parallel else {}
        rows = rows or Rows(0, len(share.numbers), len(share.numbers))
        batch, rows = self._made(share, rows)
        batch = batch.to(device)
        number = seeds.derive(self.settings.seed, "batch", self.group.epoch, self.group.index + share.offset)
        if self.alone:  # torch's own generators belong to all threads; who draws from them needs one worker
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
        """A batch of these rows, and which rows of the whole it has; all, where it cannot be had so."""
        if rows.whole:
            return self.training.collate(share.numbers), rows
        chosen = slice(rows.begin, rows.end)
        whole = self.training.collate(share.numbers)
        part = whole.rows(chosen) if hasattr(whole, "rows") else None
        if part is not None:
            return part, rows
        count = rows.end - rows.begin
        return self.training.collate(share.numbers[chosen]), Rows(0, count, count)

    def _one(self, share: Share, rows: Rows) -> BatchResult:
        loss, tokens, after = self.loss(share, rows)
        kept = Loss(loss.total.detach(), loss.count.detach())
        if not self.sharded:
            gradients = torch.autograd.grad(loss.total, self.parameters, allow_unused=True)
            return BatchResult(kept, gradients, tokens, rows.end - rows.begin, after)
        if share.counts:
            loss.total.backward()
            return BatchResult(kept, (), tokens, rows.end - rows.begin, after)
        (0 * loss.total).backward()  # another's batch: it is here because all processes pass equally often
        return BatchResult(Loss(0 * kept.total, 0 * kept.count), (), 0, 0, None)


def add(parameters: list[nn.Parameter], gradients: tuple[Tensor | None, ...]) -> None:
    """Add a batch's gradients to the sums, in place."""
    taken: set[int] = set()
    for parameter, gradient in zip(parameters, gradients, strict=True):
        if gradient is None:
            continue
        if parameter.grad is not None:
            parameter.grad.add_(gradient)
            continue
        # autograd may hand out one tensor twice, or a broadcast one; it will be scaled in place. That of a
        # convolution may lie in memory as the picture does, and a fused optimiser pairs what lies at the
        # same place of memory, whatever its index is.
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
