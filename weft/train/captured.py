"""Updates that a GPU replays: recorded once per shape of batch as a CUDA graph, read when a log line is due.

A small model's update launches a thousand kernels, which the GPU runs faster than Python can launch them.
Here it is two launches: one graph for each batch, which adds its loss and gradients to fixed buffers, and one
for the step, which divides, clips and lets the optimiser step. Batches are filled up to a few shapes with
masked rows and columns, which by the laws of padding change nothing.

Losses stay on the card. A loss or gradient that is not finite skips its step there, and all later ones, until
the results are read: then update.py takes that update as it always does, so the sentences and the rules of
`training.non_finite` are the same, and the later ones are launched again.

On a CPU the same code runs without graphs, so that tests reach all of it.
Source: PyTorch, "CUDA semantics: CUDA Graphs"; its gradient scalers skip steps in the same way.
Read next: update.py, the same arithmetic; training_state.py, which reads the results.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import NoneType
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from weft import masks
from weft.errors import ShapeError
from weft.masks import static_shapes
from weft.nn import devices
from weft.nn.heads.head import Loss
from weft.nn.randomness import Rows, drawing, part_of_batch
from weft.tasks.task import Training
from weft.train.feeding import always_true
from weft.train.objectives.objective import Criterion
from weft.train.position import BatchGroup, Position, derive, settle
from weft.train.prefetch import made_batch
from weft.train.processes import Share
from weft.train.settings import TrainingSettings

PENDING = 100
"""Updates launched before their results are read, at most."""

SHAPES = 512
"""Shapes of batches that are recorded, at most."""

SAME = 0.02
"""Relative difference of two losses that bfloat16 explains."""

Replay = Callable[[], None]


class CannotCapture(Exception):
    """An update cannot be recorded; the message says why."""

    def __init__(self, why: str, *, once: bool = False) -> None:
        super().__init__(why)
        self.once = once


class Launch(NamedTuple):
    """An update that was launched and not read yet."""

    group: BatchGroup
    position: Position  # before it
    factor: float
    tokens: int


class StepResult(NamedTuple):
    """What the card says of one launch."""

    total: float  # nats
    targets: float
    norm: float  # before clipping
    stepped: bool


@dataclass
class _Buffers:
    """What the graphs of one shape share: the batch, and how to compute it."""

    batch: Any
    replay: Replay


@dataclass
class CapturedUpdates:
    """Launches updates, of a fused Adam or AdamW that has taken a step, and reads their results later.

    `checked`: whether masked rows and columns are known to leave the loss of the model as it is.
    """

    training: Training
    criterion: Criterion
    optimiser: torch.optim.Optimizer
    settings: TrainingSettings
    device: torch.device
    checked: bool = False
    pending: list[Launch] = field(default_factory=list)

    def __post_init__(self) -> None:
        learner = self.criterion.learner
        parameters = [parameter for parameter in learner.parameters() if parameter.requires_grad]
        self._used: list[nn.Parameter] | None = None
        self._parameters = parameters
        self._gradients: list[Tensor] = []
        wide = {"dtype": torch.float64, "device": self.device}
        self._sums = torch.zeros(2, **wide)  # type: ignore[call-overload]  # total, count
        self._divisor = torch.zeros((), **wide)  # type: ignore[call-overload]  # examples
        self._results = torch.zeros(PENDING, 4, **wide)  # type: ignore[call-overload]
        self._at = torch.zeros(1, dtype=torch.int64, device=self.device)
        self._stopped = torch.zeros((), dtype=torch.float32, device=self.device)
        # as torch's fused steps read it
        narrow = torch.float32 if self.device.type == "cuda" else torch.float64
        self._rates = [torch.zeros((), dtype=narrow, device=self.device) for _ in self._groups]
        self._own = torch.Generator() if self.device.type == "cpu" else None
        self._shapes: dict[Any, _Buffers] = {}
        self._step: Replay | None = None
        self._pool: Any = None
        # Warm-ups and recordings share a stream: the nodes of a backward pass keep the one they began on.
        self._stream = torch.cuda.Stream(self.device) if self.device.type == "cuda" else None
        # Taken as usual, an update would be warned that its optimiser is not being recorded.
        self.optimiser._warned_capturable_if_run_uncaptured = True  # type: ignore[attr-defined]

    @property
    def full(self) -> bool:
        """Whether the results must be read before another launch."""
        return len(self.pending) == PENDING

    @property
    def _groups(self) -> list[dict[str, Any]]:
        return self.optimiser.param_groups

    def launch(self, group: BatchGroup, position: Position, factor: float) -> int:
        """Launch one update and return its number of target tokens."""
        batches = [self._made(group, offset) for offset in range(len(group.numbers))]
        shapes = [self._shape(batch, group, offset) for offset, batch in enumerate(batches)]
        for parameter, gradient in zip(self._used or (), self._gradients, strict=True):
            parameter.grad = gradient
        torch._foreach_zero_(self._gradients)  # one kernel, for tensors of one dtype
        self._sums.zero_()
        for offset, (batch, shape) in enumerate(zip(batches, shapes, strict=True)):
            _copy(batch, shape.batch)
            self._seed(group, offset)
            shape.replay()
        self._divisor.fill_(float(sum(map(len, group.numbers))))
        self.optimiser.found_inf = self._stopped  # type: ignore[attr-defined]  # as gradient scalers do
        for rate, options in zip(self._rates, self._groups, strict=True):
            options["lr"] = rate
            rate.fill_(self.settings.optimiser.lr * factor * options.get("scale", 1.0))
        self._stepped()
        tokens = sum(int(batch.target_tokens) for batch in batches)
        self.pending.append(Launch(replace(group, made={}), position, factor, tokens))
        return tokens

    def read(self) -> list[StepResult]:
        """Wait for the card and return the results of what is pending, which the caller then empties."""
        rows = self._results[: len(self.pending)].tolist()
        self._at.zero_()
        self._stopped.zero_()
        self.optimiser.found_inf = None  # type: ignore[attr-defined]
        return [StepResult(total, targets, norm, bool(stepped)) for total, targets, norm, stepped in rows]

    def forget_step(self) -> None:
        """Record the step again at the next launch."""
        self._step = None

    def _made(self, group: BatchGroup, offset: int) -> Any:
        """A batch on the CPU, filled up to a usual shape if it knows how."""
        batch = group.made.get(offset)
        if batch is None:
            share = Share(offset, group.numbers[offset])
            batch = made_batch(self.training, self.settings.seed, group, share)
        filled = batch.filled() if hasattr(batch, "filled") else batch
        if hasattr(filled, "_fields"):
            filled = masks.to_device(filled, torch.device("cpu"))  # some parts add their masks
        if not self.checked and hasattr(batch, "filled") and not _same_shapes(batch, filled):
            self._check_filling(batch, filled)
        return filled

    def _check_filling(self, batch: Any, filled: Any) -> None:
        """See once that masked rows and columns change no loss, as they might in a model of one's own."""
        bfloat16 = devices.uses_bfloat16(self.settings.precision, self.device)
        with _evaluating(self.criterion.learner), torch.no_grad(), devices.autocast(bfloat16, self.device):
            want = self.criterion.loss(batch.to(self.device))
            try:
                with static_shapes():
                    found = self.criterion.loss(masks.to_device(filled, self.device))
            except (NotImplementedError, ShapeError, torch.OutOfMemoryError):
                return  # as recording says it
            except Exception as error:  # noqa: BLE001  a model of one's own may raise anything
                said = (str(error).splitlines() or [type(error).__name__])[0][:120]
                raise CannotCapture(f"the model cannot read masked rows and columns ({said})") from None
        totals, counts = ([float(getattr(one, name)) for one in (want, found)] for name in ("total", "count"))
        same = math.isclose(*totals, rel_tol=SAME) or not math.isfinite(totals[0])
        if counts[0] != counts[1] or not same:
            changed = f"{totals[0]:.4g} nats of {counts[0]:g} targets to {totals[1]:.4g} of {counts[1]:g}"
            raise CannotCapture(f"masked rows and columns change the loss of this model from {changed}")
        self.checked = True

    def _seed(self, group: BatchGroup, offset: int) -> None:
        number = derive(self.settings.seed, "batch", group.epoch, group.index + offset)
        settle(number, self.device)
        if self._own is not None:
            self._own.manual_seed(number)

    def _shape(self, batch: Any, group: BatchGroup, offset: int) -> _Buffers:
        key = _key(batch)
        if key not in self._shapes:
            if len(self._shapes) == SHAPES:
                raise CannotCapture(f"batches have more than {SHAPES} shapes", once=True)
            try:
                self._shapes[key] = self._recorded(batch, group, offset)
            except torch.OutOfMemoryError as error:
                why = f"there is not enough memory to record one ({str(error).splitlines()[0][:90]})"
                raise CannotCapture(why) from None
        return self._shapes[key]

    def _recorded(self, batch: Any, group: BatchGroup, offset: int) -> _Buffers:
        static = masks.to_device(_cloned(batch), self.device)
        rows = len(next(iter(_tensors(static))))

        def loss() -> tuple[Loss, list[Tensor | None]]:
            bfloat16 = devices.uses_bfloat16(self.settings.precision, self.device)
            with (
                static_shapes(),
                drawing(self._own),
                part_of_batch(Rows(0, rows, rows)),
                devices.autocast(bfloat16, self.device),
            ):
                found = self.criterion.loss(static)
            return found, list(torch.autograd.grad(found.total, self._parameters, allow_unused=True))

        self._seed(group, offset)
        buffers = list(self.criterion.learner.buffers())
        kept = [buffer.clone() for buffer in buffers]
        gradients = self._warm(lambda: loss()[1])
        for buffer, before in zip(buffers, kept, strict=True):
            buffer.copy_(before)  # such as the running means of a batch norm
        used = [p for p, g in zip(self._parameters, gradients, strict=True) if g is not None]
        if self._used is None:
            self._used, self._gradients = used, [torch.zeros_like(p) for p in used]
        elif len(self._used) != len(used) or any(a is not b for a, b in zip(used, self._used, strict=True)):
            raise CannotCapture("other parameters are used by other batches")

        def run() -> None:
            found, new = loss()
            torch._foreach_add_(self._gradients, [g for g in new if g is not None])
            self._sums.add_(torch.stack([found.total.detach().double(), found.count.detach().double()]))

        return _Buffers(static, self._record(run))

    def _stepped(self) -> None:
        if self._step is None:
            for options in self._groups:
                options["capturable"] = self.device.type == "cuda"
            self._step = self._record(self._take_step)
        self._step()

    def _take_step(self) -> None:
        """As update.py does it, without asking for a value."""
        total, count = self._sums
        divisor = (count if self.settings.loss == "per_token" else self._divisor).clamp(min=1.0)
        norm = torch.nn.utils.get_total_norm(self._gradients).double() / divisor
        finite = torch.isfinite(total) & torch.isfinite(norm)
        self._stopped.copy_(torch.maximum(self._stopped, (~finite).float()))
        clip = (self.settings.clip_norm / (norm + 1e-6)).clamp(max=1.0) if self.settings.clip_norm else 1.0
        torch._foreach_mul_(self._gradients, (clip / divisor).float())
        self.optimiser.step()
        row = torch.stack([total, count, norm, (1 - self._stopped).double()])
        self._results.index_copy_(0, self._at, row[None])
        self._at.add_(1)

    def _warm(self, run: Callable[[], Any]) -> Any:
        """Run something before it is recorded, as CUDA graphs need it."""
        try:
            if self._stream is None:
                return run()
            self._stream.wait_stream(torch.cuda.current_stream(self.device))
            with torch.cuda.stream(self._stream):
                run()
                found = run()
            torch.cuda.current_stream(self.device).wait_stream(self._stream)
        except NotImplementedError as error:
            raise CannotCapture(str(error)) from None
        except ShapeError as error:  # such as masked columns beyond the last learned position
            raise CannotCapture(str(error), once=True) from None
        return found

    def _record(self, run: Replay) -> Replay:
        if self._stream is None:
            return run
        graph = torch.cuda.CUDAGraph()
        # Other threads may use the GPU meanwhile, such as one that writes a checkpoint.
        how: dict[str, Any] = {"stream": self._stream, "capture_error_mode": "thread_local"}
        try:
            with torch.cuda.graph(graph, pool=self._pool, **how):
                run()
        except RuntimeError as error:
            self._restore_generator()
            raise CannotCapture((str(error).splitlines() or [type(error).__name__])[0][:120]) from None
        self._pool = self._pool or graph.pool()
        return graph.replay

    def _restore_generator(self) -> None:
        """After a recording that failed, give the GPU's generator a state that no recording holds."""
        number = torch.cuda.current_device() if self.device.index is None else self.device.index
        other = torch.Generator(self.device)
        torch.cuda.default_generators[number].graphsafe_set_state(other.graphsafe_get_state())


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    """The model in evaluation mode, and each part in its own mode again afterwards."""
    modes = [(part, part.training) for part in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode


def _same_shapes(batch: Any, filled: Any) -> bool:
    return [one.shape for one in _tensors(batch)] == [one.shape for one in _tensors(filled)]


def why_not_captured(
    training: Training, criterion: Criterion, optimiser: torch.optim.Optimizer, settings: TrainingSettings
) -> str:
    """Why updates cannot be recorded with these settings; "" if they can."""
    given: Mapping[str, bool] = {
        "the state of a text is carried from batch to batch": training.streams,
        "training.objective is not the model's own loss": not settings.objective.plain,
        "training.feeding draws the words to feed": not always_true(settings.feeding),
        "training.freeze_updates changes what is trained": bool(settings.freeze_updates),
        "training.checkpoint_activations keeps states of generators": settings.checkpoint_activations,
        "training.sharding cuts the parameters": settings.sharding != "none",
        f"{type(optimiser).__name__} is not a fused Adam": not (
            isinstance(optimiser, (torch.optim.Adam, torch.optim.AdamW)) and optimiser.defaults.get("fused")
        ),
    }
    return next((why for why, holds in given.items() if holds), "")


def _tensors(batch: Any) -> list[Tensor]:
    return [part for part in _parts(batch) if isinstance(part, Tensor)]


def _parts(batch: Any) -> list[Any]:
    """The fields of a named tuple and of those in it."""
    if not hasattr(batch, "_fields"):
        raise CannotCapture("a batch is not a named tuple")
    found: list[Any] = []
    for name, part in zip(batch._fields, batch, strict=True):
        found += _parts(part) if hasattr(part, "_fields") else [] if name == "target_tokens" else [part]
    return found


def _key(batch: Any) -> tuple[Any, ...]:
    """The shapes of a batch, where its padding is, which layers ask for, and what else it holds."""
    found: list[Any] = []
    for part in _parts(batch):
        if not isinstance(part, Tensor):
            if not isinstance(part, (bool, int, float, str, NoneType)):
                raise CannotCapture(f"a batch holds a {type(part).__name__}")
            found.append(part)
            continue
        found += [part.shape, part.dtype]
        if part.dtype == torch.bool and part.dim() == 2:
            found.append(masks.facts(part).arrangement)
    return tuple(found)


def _cloned(batch: Any) -> Any:
    """The same named tuple with tensors of its own."""
    parts = [part.clone() if isinstance(part, Tensor) else part for part in batch]
    parts = [_cloned(part) if hasattr(part, "_fields") else part for part in parts]
    return type(batch)(*parts)


def _copy(batch: Any, static: Any) -> None:
    """Copy a batch into the buffers of its shape, without waiting for the card."""
    for own, given in zip(_tensors(static), _tensors(batch), strict=True):
        if own.device.type == "cuda":
            given = given.pin_memory()
        own.copy_(given, non_blocking=True)
