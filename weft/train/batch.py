"""One batch of an update: its summed loss and the gradients of it, in halves where memory is short.

Read next: update.py, which adds them up.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from weft.errors import ConfigError
from weft.nn.heads.head import Loss
from weft.randomness import drawing
from weft.recompute import recomputing
from weft.train import devices, seeds
from weft.train.objectives.objective import Criterion
from weft.train.position import Group
from weft.train.processes import Share
from weft.train.settings import Settings
from weft.tree import State


class Part(NamedTuple):
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
        task: collates.
        criterion: makes the losses.
        parameters: whose gradients are wanted.
        group: the batches are of.
        feeding: probability of the true token.
        settings: how to train.
        carried: the state after the batch before, where the task carries one (C11).
        alone: whether no other pass runs beside it in this process.
        sharded: whether the parameters are; then gradients are added to theirs at once.
    """

    task: Any
    criterion: Criterion
    parameters: list[nn.Parameter]
    group: Group
    feeding: float
    settings: Settings
    carried: State
    alone: bool
    sharded: bool

    def __call__(self, share: Share) -> Part:
        """One batch, or its halves one after the other where the device has no memory for it.

        The sum of the halves' gradients is that of the batch; dropout and fed words are drawn for each half.
        """
        try:
            return self._one(share)
        except torch.OutOfMemoryError as error:
            # Sharded, all processes would have to halve theirs: each pass is a collective one.
            if len(share.numbers) < 2 or getattr(self.task, "streams", False) or self.sharded:
                raise ConfigError(
                    f"the device has no memory for a batch of {len(share.numbers)} "
                    f"({str(error).splitlines()[0][:90]}); make batches smaller in the section data, or the "
                    "model in the section model, or set training.checkpoint_activations: true"
                ) from None
        # Outside of the except block: the error holds on to all that the batch had made.
        if next(self.criterion.model.parameters()).device.type == "cuda":
            torch.cuda.empty_cache()
        middle = len(share.numbers) // 2
        halves = (slice(None, middle), slice(middle, None))
        return _sum(*[self(share._replace(numbers=share.numbers[half])) for half in halves])

    def loss(self, share: Share) -> tuple[Loss, int, State]:
        """The loss of a batch, its target tokens, and the state after it."""
        device = next(self.criterion.model.parameters()).device
        bfloat16 = devices.uses_bfloat16(self.settings.precision, device)
        feeding, how = self.feeding, self.settings.feeding
        # At 1 a model may take its parallel path, and one that knows no feeding is not asked about it.
        forced = {} if feeding >= 1 else {"feeding": feeding, "per_sequence": how.per_sequence}
        forced |= {"parallel": True} if forced and how.parallel else {}
        batch = self.task.collate(share.numbers).to(device)
        number = seeds.derive(self.settings.seed, "batch", self.group.epoch, self.group.index + share.offset)
        if self.alone:  # torch's own generators belong to all threads; who draws from them needs one worker
            seeds.settle(number, device)
        own = torch.Generator().manual_seed(number) if device.type == "cpu" else None
        after = None
        with (
            drawing(own),
            recomputing(self.settings.checkpoint_activations),
            devices.autocast(bfloat16, device),
        ):
            if getattr(self.task, "streams", False):
                carried = self.carried if batch.continues else None
                loss, after = self.criterion.model.carry_on(batch, carried)  # type: ignore[operator]
            else:
                loss = self.criterion.loss(batch, **forced)
        return loss, int(batch.target_tokens), after

    def _one(self, share: Share) -> Part:
        loss, tokens, after = self.loss(share)
        kept = Loss(loss.total.detach(), loss.count.detach())
        if not self.sharded:
            gradients = torch.autograd.grad(loss.total, self.parameters, allow_unused=True)
            return Part(kept, gradients, tokens, len(share.numbers), after)
        if share.counts:
            loss.total.backward()
            return Part(kept, (), tokens, len(share.numbers), after)
        (0 * loss.total).backward()  # another's batch: it is here because all processes pass equally often
        return Part(Loss(0 * kept.total, 0 * kept.count), (), 0, 0, None)


def add(parameters: list[nn.Parameter], gradients: tuple[Tensor | None, ...]) -> None:
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


def _sum(first: Part, second: Part) -> Part:
    gradients = tuple(
        one if two is None else two if one is None else one + two
        for one, two in zip(first.gradients, second.gradients, strict=True)
    )
    return Part(
        Loss(first.loss.total + second.loss.total, first.loss.count + second.loss.count),
        gradients,
        first.tokens + second.tokens,
        first.examples + second.examples,
        None,
        first.parts + second.parts,
    )
