"""One update: sum the gradients of a group of batches, divide once, clip, step.

    g = Σ over the group's batches of d total / dθ,   divided by Σ count

so a group of small batches has the gradient of one big batch, however it is padded or split.

Where a loss or gradient is not finite, the batches run again with the same dropout while hooks watch every
layer: the first non-finite output of the forward pass is reported, or else the first non-finite gradient of
the backward pass. Read next: training_state.py.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from weft import tree
from weft.errors import ConfigError, WeftError
from weft.nn import devices
from weft.nn.devices import plainly
from weft.nn.heads.head import Loss
from weft.nn.randomness import Rows, drawing, part_of_batch, recomputing
from weft.tasks.task import Training
from weft.train.objectives.objective import Criterion
from weft.train.position import BatchGroup, Position, derive, settle
from weft.train.prefetch import made_batch
from weft.train.processes import Processes, Share
from weft.train.settings import TrainingSettings
from weft.train.sharding import is_sharded, local
from weft.tree import State
from weft.wording import plural

T = TypeVar("T")
R = TypeVar("R")


class NonFinite(WeftError):
    """A loss or a gradient is infinite or not a number."""


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
    """The forward and backward pass over one batch of a group; sharded parameters get gradients directly."""

    updates: "Updates"
    parameters: list[nn.Parameter]
    group: BatchGroup
    feeding: float
    carried: State
    sharded: bool

    def __call__(self, share: Share, rows: Rows | None = None) -> BatchResult:
        """Compute one batch, or its halves in turn if the device runs out of memory.

        The gradients of the halves sum to the gradient of the batch. Dropout and teacher forcing draw the
        same numbers if the batch can be cut into rows (tasks/task.py); otherwise, and for sampled words,
        each half draws its own.
        """
        rows = rows or Rows(0, len(share.numbers), len(share.numbers))
        count = rows.end - rows.begin
        try:
            return self._one(share, rows)
        except torch.OutOfMemoryError as error:
            # With sharding, each pass is collective: all processes would have to split theirs too.
            if count < 2 or self.updates.training.streams or self.sharded:
                raise ConfigError(
                    f"out of memory for a batch of {count} "
                    f"({str(error).splitlines()[0][:90]}); make batches smaller in the section data, or the "
                    "model in the section model, or set training.checkpoint_activations: true"
                ) from None
        # Outside of the except block, because the error keeps the tensors of the batch alive.
        if self.updates.device.type == "cuda":
            torch.cuda.empty_cache()
        middle = rows.begin + count // 2
        halves = rows._replace(end=middle), rows._replace(begin=middle)
        return _sum(*[self(share, half) for half in halves])

    def loss(self, share: Share, rows: Rows | None = None) -> tuple[Loss, int, State]:
        """The loss of a batch or some of its rows, its number of target tokens, and the state after it."""
        training, criterion, settings = self.updates.training, self.updates.criterion, self.updates.settings
        device, feeding, how = self.updates.device, self.feeding, settings.feeding
        bfloat16 = devices.uses_bfloat16(settings.precision, device)
        # At 1 the model may take its parallel path, and a model without the argument still works.
        forced = {} if feeding >= 1 else {"feeding": feeding, "per_sequence": how.per_sequence}
        forced |= {"parallel": True} if forced and how.parallel else {}
        rows = rows or Rows(0, len(share.numbers), len(share.numbers))
        batch, rows = self._made(share, rows)
        batch = batch.to(device)
        number = derive(settings.seed, "batch", self.group.epoch, self.group.index + share.offset)
        if self.updates.workers.count == 1:  # torch's generators are shared by all threads
            settle(number, device)
        own = torch.Generator().manual_seed(number) if device.type == "cpu" else None
        after = None
        with (
            drawing(own),
            part_of_batch(rows),
            recomputing(settings.checkpoint_activations),
            devices.autocast(bfloat16, device),
        ):
            if training.streams:
                carried = self.carried if batch.continues else None
                loss, after = criterion.model.carry_on(batch, carried)  # type: ignore[operator]
            else:
                loss = criterion.loss(batch, **forced)
        return loss, int(batch.target_tokens), after

    def _made(self, share: Share, rows: Rows) -> tuple[Any, Rows]:
        """A batch of these rows, and its place in the whole batch (everything, if rows cannot be cut)."""
        training, seed = self.updates.training, self.updates.settings.seed
        whole = self.group.made.get(share.offset)
        whole = made_batch(training, seed, self.group, share) if whole is None else whole
        if rows.whole:
            return whole, rows
        chosen = slice(rows.begin, rows.end)
        part = whole.rows(chosen) if hasattr(whole, "rows") else None
        if part is not None:
            return part, rows
        count = rows.end - rows.begin
        part = share._replace(numbers=share.numbers[chosen])
        return made_batch(training, seed, self.group, part), Rows(0, count, count)

    def _one(self, share: Share, rows: Rows) -> BatchResult:
        loss, tokens, after = self.loss(share, rows)
        kept = Loss(loss.total.detach(), loss.count.detach())
        if not self.sharded:
            gradients = torch.autograd.grad(loss.total, self.parameters, allow_unused=True)
            return BatchResult(kept, gradients, tokens, rows.end - rows.begin, after)
        if share.counts:
            loss.total.backward()
            return BatchResult(kept, (), tokens, rows.end - rows.begin, after)
        # Another process's batch: with sharding all processes must run equally many passes.
        (0 * loss.total).backward()
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


@dataclass(frozen=True, slots=True)
class UpdateResult:
    """The result of an update."""

    total: float  # nats, summed over its real targets
    count: float  # real targets
    tokens: int  # target tokens
    norm: float  # of the gradient before clipping
    rate: float  # learning rate
    feeding: float  # probability of feeding the true token
    stepped: bool  # whether the optimiser took a step; if not, `skipped` says why
    skipped: str = ""
    carried: State = None  # for the next batch, if the task carries one; None after a skipped update
    split: int = 0  # batches that were computed in parts, for lack of memory


class BatchWorkers:
    """Computes the batches of an update in parallel: two threads with a batch each beat two on one batch.

    A recurrent step is too small to split (two threads trained an LSTM no faster than one), but the batches
    of an accumulated update are independent. Gradients are summed in the order of the batches, so the result
    does not depend on the number of threads. `wanted` is that number, 0 for all; a GPU gets one batch at a
    time.
    """

    def __init__(self, wanted: int, accumulate: int, device: torch.device) -> None:
        self.threads = torch.get_num_threads()
        most = self.threads if device.type == "cpu" else 1
        self.count = max(1, min(wanted or most, most, accumulate))
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> "BatchWorkers":
        if self.count > 1:
            self._pool = ThreadPoolExecutor(self.count, thread_name_prefix="weft-batch")
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """The results in the order of the items; each thread uses its share of the cores."""
        if self._pool is None:
            yield from map(function, items)
            return
        torch.set_num_threads(self.threads // self.count)
        try:
            yield from self._pool.map(function, items)
        finally:
            torch.set_num_threads(self.threads)


class Updates:
    """Takes updates one by one; captured.py has the same arithmetic for those that a GPU replays."""

    def __init__(
        self,
        training: Training,
        criterion: Criterion,
        optimiser: torch.optim.Optimizer,
        settings: TrainingSettings,
        workers: BatchWorkers | None = None,
        processes: Processes | None = None,
    ) -> None:
        self.training, self.criterion = training, criterion
        self.optimiser, self.settings = optimiser, settings
        self.device = next(criterion.model.parameters()).device
        self.workers = workers or BatchWorkers(1, 1, self.device)
        self.processes = processes or Processes(self.device)

    def take(
        self, group: BatchGroup, position: Position, factor: float, carried: State = None
    ) -> UpdateResult:
        """Take one update."""
        settings, optimiser = self.settings, self.optimiser
        parameters = [one for one in self.criterion.learner.parameters() if one.requires_grad]
        cut = [one for one in parameters if is_sharded(one)]
        whole = [one for one in parameters if not is_sharded(one)] if cut else parameters
        feeding = settings.feeding.probability(position.update, position.epoch)
        run = Pass(self, parameters, group, feeding, carried, sharded=bool(cut))
        mine = self.processes.part(group, settings.accumulate, even=run.sharded)
        optimiser.zero_grad(set_to_none=True)
        results = self._results(run, mine)
        self.processes.add_gradients(whole)
        gradients, rows = ([local(one.grad) for one in some if one.grad is not None] for some in (whole, cut))
        summed = self._summed(results, gradients, rows)
        rate = settings.optimiser.lr * factor
        if not (math.isfinite(summed.total) and math.isfinite(summed.norm)):
            sentence = _trouble(run, mine, results, position)
            optimiser.zero_grad(set_to_none=True)
            _check_skips(sentence, position, settings)
            return UpdateResult(0.0, 0.0, summed.tokens, summed.norm, rate, feeding, False, sentence)
        clip = min(1.0, settings.clip_norm / (summed.norm + 1e-6)) if settings.clip_norm else 1.0
        torch._foreach_mul_([*gradients, *rows], clip / summed.divisor)
        for options in optimiser.param_groups:
            options["lr"] = rate * options.get("scale", 1.0)
        optimiser.step()
        after, split = results[-1].carried if results else None, sum(one.parts > 1 for one in results)
        total, count, tokens, _, norm = summed
        return UpdateResult(total, count, tokens, norm, rate, feeding, True, carried=after, split=split)

    def _results(self, run: Pass, mine: list[Share]) -> list[BatchResult]:
        """This process's batches; their gradients are added to the parameters."""
        results = []
        for one in self.workers.map(run, mine):
            if not run.sharded:
                add(run.parameters, one.gradients)
            results.append(one._replace(gradients=()))
        return results

    def _summed(self, results: list[BatchResult], gradients: list[Tensor], rows: list[Tensor]) -> "_Summed":
        """Add up this process's batches, then all processes."""
        none = torch.zeros(1, device=self.device)
        lengths = [torch.nn.utils.get_total_norm(some or [none]).double() for some in (gradients, rows)]
        losses = [torch.zeros(2, dtype=torch.float64, device=self.device)]
        for one in results:
            losses.append(torch.stack([each.double().to(self.device) for each in one.loss]))
        # The only synchronisation with the device in an update.
        sums = torch.cat([torch.stack(losses).sum(0), torch.stack(lengths)]).tolist()
        total, count, length, of_rows = sums
        counts = (sum(one.tokens for one in results), sum(one.examples for one in results))
        total, count, tokens, examples, squares = self.processes.sum(
            [total, count, *counts, of_rows * of_rows]
        )
        divisor = max(1.0, count if self.settings.loss == "per_token" else float(int(examples)))
        norm = math.hypot(length, math.sqrt(squares)) / divisor
        return _Summed(total, count, int(tokens), divisor, norm)


class _Summed(NamedTuple):
    """Sums over all processes."""

    total: float  # nats
    targets: float
    tokens: int
    divisor: float  # the gradient is divided by it
    norm: float  # norm of the divided gradient


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


def _worst(results: list[BatchResult]) -> tuple[int, str]:
    for place, one in enumerate(results):
        if not math.isfinite(loss := one.loss.total.item()):
            return place, f"the loss is {loss}"
    return 0, "the loss of another process or the gradient is not finite"


def _trouble(run: Pass, mine: list[Share], results: list[BatchResult], position: Position) -> str:
    """A sentence about what is not finite, and in which batch."""
    group = run.group
    if run.sharded:  # layers cannot be watched: passes are collective
        where, what = _worst(results)
    else:
        with plainly():
            where, what = explain(run.updates.criterion.model, (run.loss(share)[0] for share in mine))
    offset = mine[where].offset if mine else 0
    numbers = [int(number) for number in group.numbers[offset]]
    shown = ", ".join(str(number) for number in numbers[:8]) + (", ..." if len(numbers) > 8 else "")
    return (
        f"update {position.update + 1}: {what} in batch {group.index + offset} of epoch {group.epoch} "
        f"(examples {shown})"
    )


def advice(settings: TrainingSettings) -> str:
    """What to change if updates are too large."""
    clip = settings.clip_norm
    return f"lower training.optimiser.lr (now {settings.optimiser.lr:g}), lengthen the warm-up, or " + (
        f"lower training.clip_norm (now {clip:g})" if clip else "set training.clip_norm: 1.0 (now 0, off)"
    )


def explain(model: nn.Module, losses: Iterator[Loss]) -> tuple[int, str]:
    """The batch in the group where numbers stopped being finite, and a phrase that names the layer."""
    for name, parameter in model.named_parameters():
        if not _finite(parameter):
            return 0, f"parameter {name} was not finite before the update"
    found: list[str] = []
    handles = [
        module.register_forward_hook(partial(_forward, found, name or "the model"))
        for name, module in model.named_modules()
    ]
    handles += [
        parameter.register_hook(partial(_backward, found, f"of parameter {name}"))
        for name, parameter in model.named_parameters()
        if parameter.requires_grad
    ]
    last = 0
    try:
        for last, loss in enumerate(losses):
            if not _finite(loss.total):
                where = (
                    found[0] if found else "every layer's output is finite, so the loss itself is the cause"
                )
                return last, f"the loss is {loss.total.item()}: {where}"
            loss.total.backward()
            if found:
                return last, found[0]
    finally:
        for handle in handles:
            handle.remove()
    return last, "the norm of the gradient overflows, although each of its parts is finite"


def _forward(found: list[str], name: str, module: nn.Module, inputs: Any, output: Any) -> None:
    for leaf in tree.leaves(output):
        if not _finite(leaf):
            found.append(f"the output of layer {name} is not finite")
            return
        if leaf.requires_grad:
            leaf.register_hook(partial(_backward, found, f"at the output of layer {name}"))


def _backward(found: list[str], where: str, gradient: Tensor | None) -> None:
    if gradient is not None and not _finite(gradient):  # None for an output that the loss does not use
        found.append(f"the gradient {where} is not finite")


def _finite(tensor: Tensor) -> bool:
    return bool(torch.isfinite(tensor._values() if tensor.is_sparse else tensor).all())


AT_ONCE = 100.0
"""A loss above this multiple of the lowest one so far (or of 1, if larger) is divergence at once."""

LASTING = 10.0
"""A loss above this multiple for PATIENCE updates is divergence; single outliers occur in forecasting."""

PATIENCE = 10


class Divergence:
    """Compares each update's loss with the lowest one so far."""

    def __init__(self, settings: TrainingSettings) -> None:
        self._settings = settings
        self._lowest = math.inf
        self._high = 0
        self._said = False

    def after(self, update: int, loss: float) -> str:
        """The warning after an update by its loss per target; "" for none, and after the first one."""
        if self._said:
            return ""
        self._lowest = min(self._lowest, loss)
        usual = max(1.0, abs(self._lowest))
        self._high = self._high + 1 if loss > LASTING * usual else 0
        if loss <= AT_ONCE * usual and self._high < PATIENCE:
            return ""
        self._said = True
        return (
            f"update {update}: the loss is {loss:.3g}, and was {self._lowest:.3g} at its lowest: training "
            f"diverges and is unlikely to recover; stop it and start a new run: {advice(self._settings)}"
        )
