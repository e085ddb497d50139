"""Before the first update: read the data, build the model and optimiser, and find the position of the run.

Read next: resume.py; training_state.py, the result.
"""

import math
import os
import shlex
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import torch
from torch import nn

from weft.errors import ConfigError
from weft.nn import devices
from weft.nn.devices import compile_regions
from weft.rooms import wrong_result
from weft.store import digests, weights
from weft.store.files import cache_directory
from weft.tasks.task import Pipeline, Task, Training, training_of
from weft.train import sharding, transfer
from weft.train.checkpoints import About
from weft.train.feeding import always_true, check_fits
from weft.train.finish import ChosenUpdates, take_back
from weft.train.history import History
from weft.train.monitors import Monitors, TrainingClock
from weft.train.objectives.objective import Criterion
from weft.train.position import Position, derive, settle
from weft.train.resume import DataFiles, carried_state, resume
from weft.train.session import Session
from weft.train.settings import TrainingSettings
from weft.train.training_state import TrainingState
from weft.train.tuned import FrozenParts, adapt, apply, scales
from weft.train.update import Divergence, Updates
from weft.wording import plural

if TYPE_CHECKING:
    from weft.train.captured import CapturedUpdates


def check_training(task: Task, settings: TrainingSettings) -> tuple[torch.device, History]:
    """Check the settings before anything is read or built; the device, and a history without validations."""
    device = devices.with_settings(devices.choose(settings.device))  # does not initialise CUDA yet
    better = settings.better(task.better)
    if settings.metric not in better:
        raise ConfigError(
            f"training.metric: expected one of {', '.join(better)}, the scores of this task, got "
            f"{settings.metric!r}"
        )
    _check_carried_state(task, settings)
    if settings.compile:
        check_compiler(device)
    return device, History(settings.metric, better[settings.metric] == "higher")


def _check_carried_state(task: Task, settings: TrainingSettings) -> None:
    """Check that the settings allow a carried state, if the task has one."""
    if not task.streams:
        return
    if settings.accumulate > 1:
        raise ConfigError(
            f"training.accumulate: expected 1, got {settings.accumulate}: each batch starts with "
            "the state of the previous one, so an update has one batch; set it to 1 and raise "
            "data.batch_rows instead"
        )
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ConfigError(
            "--processes: a state is carried from batch to batch, so only one process can train; leave it "
            "out, or set data.batches: lines"
        )
    if not settings.objective.plain:
        raise ConfigError(
            f"training.objective: cannot use {type(settings.objective).__name__}: a carried state allows "
            "likelihood training only; leave it out or set data.batches: lines"
        )
    if not always_true(settings.feeding):
        raise ConfigError(
            "training.feeding: expected a probability of 1: a carried state reads the true text only; "
            "leave it out or set data.batches: lines"
        )


def make_ready(session: Session, task: Task, history: History) -> TrainingState:
    """Read the data, build the model, and resume from the newest checkpoint if there is one."""
    pipeline = _prepare(session, task)
    training_of(pipeline).check_metric(session.settings.metric)
    return begin(session, pipeline, history)


def begin(
    session: Session, pipeline: Pipeline, history: History, chosen: ChosenUpdates | None = None
) -> TrainingState:
    """Build the model, and resume from the newest checkpoint if there is one.

    `chosen`: in a training on the validation examples too, what they had chosen before.
    """
    settings, report = session.settings, session.report
    training = training_of(pipeline)
    model = _model(session, pipeline)
    blocks = compile_regions(model) if settings.compile else 0
    if session.sharded:
        sharding.shard(model, session.device, session.processes.count, settings.feeding)
    settle(derive(settings.seed, "objective"), session.device)
    criterion = settings.objective.build(pipeline, model)
    frozen, optimiser = _optimiser(settings, model, criterion)
    plan, position = training.plan(settings.seed), Position()
    with session.first_before_others():
        position, history, saved = resume(session.checkpoints, criterion, optimiser, plan, history, settings)
        if session.processes.first and chosen is None:
            if not settings.refit:
                take_back(session.checkpoints)
            session.checkpoints.write_index(history)
    frozen.at(position.update)
    precision = decide_precision(settings, session.device, None if saved is None else saved.state.about)
    settings = replace(settings, precision=precision)
    session = replace(session, settings=settings)
    carried = carried_state(session.checkpoints, saved, model) if training.streams else None
    report.started(position.update, history.has(position.update))
    if not training.solved:
        report.said(_introduction(session, model, position))
    if settings.compile:
        what = f"{plural(blocks, 'block')} of the model will be compiled at first use"
        none = "this model has no Transformer block, so nothing is compiled"
        report.said(f"training.compile: {what if blocks else none}")
    first = session.processes.first
    # With sharding, all processes would have to measure together.
    watches = first and not session.sharded and chosen is None
    watched = settings if watches else replace(settings, monitors=False)
    return TrainingState(
        session,
        pipeline,
        training,
        model,
        Updates(training, criterion, optimiser, settings, session.workers, session.processes),
        plan,
        position,
        history,
        carried,
        TrainingClock(position, settings, first=first, unit=pipeline.task.target_unit),
        Monitors(training, model, watched, report),
        Divergence(settings),
        frozen,
        saved=position.update or -(training.solved or position.validates(settings)),
        captured=_captured(session, training, criterion, optimiser),
        chosen=chosen,
    )


def _prepare(session: Session, task: Task) -> Pipeline:
    run, checkpoints = session.run, session.checkpoints
    with session.first_before_others():
        if session.processes.first:
            with session.interrupts.alone(), digests.reading() as read:
                data = DataFiles(run, resumes=bool(checkpoints.updates()))
                data.check_known()
                pipeline = task.prepare(run, session.report.progress)
                data.check(read)
        else:
            pipeline = task.prepare(run, session.report.progress)
    if getattr(pipeline, "training", None) is None:
        raise wrong_result(task, "prepare", "a Pipeline with its training", type(pipeline).__name__)
    kept = digests.kept_files(run, task.keeps)
    before = {name: one for name, one in kept.items() if not name.startswith(f"{digests.WHOLE}/")}
    checkpoints.fits = digests.Fits(kept=before, recipe=dict(task.recipe))
    return pipeline


def _model(session: Session, pipeline: Pipeline) -> nn.Module:
    devices.select(session.device)
    settle(derive(session.settings.seed, "weights"), session.device)
    model = weights.build(pipeline.model).to(session.device).train()
    check_fits(session.settings.feeding, model)
    start = session.run / weights.START
    if start.exists():
        taken = transfer.take(model, pipeline.rows(), start)
        if not taken:
            old = session.settings.start
            hint = "name the parts to take, such as training.start_parts='[embed, encoder]'" if old else None
            weights.restore(
                model, weights.load(start), f"training.start: {old}" if old else str(start), hint=hint
            )
        elif not session.checkpoints.updates():
            session.report.said(taken)
    if session.settings.lora is not None:
        if not start.exists():
            raise ConfigError(
                "training.lora: expected training.start, the run whose weights stay as they are, got none; "
                "name one, or leave lora out"
            )
        adapt(model, session.settings.lora)
    return model


def _optimiser(
    settings: TrainingSettings, model: nn.Module, criterion: Criterion
) -> tuple[FrozenParts, torch.optim.Optimizer]:
    """The frozen parts, and the optimiser over everything that is trained at some time."""
    frozen = FrozenParts(model, settings.freeze, settings.freeze_updates)
    frozen.at(math.inf)
    optimiser = settings.optimiser.build(criterion.learner)
    if not isinstance(optimiser, torch.optim.Optimizer):
        found = type(optimiser).__name__
        raise wrong_result(settings.optimiser, "build", "a torch.optim.Optimizer", found)
    if settings.part_rates or settings.layer_decay != 1:
        apply(optimiser, model, scales(model, settings.part_rates, settings.layer_decay))
    return frozen, optimiser


def _captured(
    session: Session, training: Training, criterion: Criterion, optimiser: torch.optim.Optimizer
) -> "CapturedUpdates | None":
    settings = session.settings
    if not settings.cuda_graphs:
        return None
    from weft.train.captured import CapturedUpdates, why_not_captured  # if asked for

    why = why_not_captured(training, criterion, optimiser, settings)
    if session.processes.count > 1:
        why = why or "several processes add their gradients"
    on_cpu = "a CPU takes the same steps without graphs" if session.device.type == "cpu" else ""
    session.report.said(f"training.cuda_graphs: {why or on_cpu or 'updates are recorded and replayed'}")
    return None if why else CapturedUpdates(training, criterion, optimiser, settings, session.device)


def _introduction(session: Session, model: nn.Module, position: Position) -> str:
    workers, device = session.workers, session.device
    parameters = sum(parameter.numel() for parameter in model.parameters())
    computed = "bfloat16 autocast" if session.settings.precision == "bfloat16" else "float32"
    starts = f"resumes after update {position.update:,}" if position.update else "starts"
    threads = plural(workers.threads, "thread")
    if workers.count > 1:
        threads += f", {workers.count} batches in parallel"
    if session.processes.count > 1:
        threads += f", {session.processes.count} processes"
    trained = sum(one.numel() for one in model.parameters() if one.requires_grad)
    some = f"{trained:,} of {parameters:,}" if trained < parameters else f"{parameters:,}"
    said = f"training {starts}: {some} parameters on {device} in {computed}, {threads}"
    settings = session.settings
    if settings.starts_trained and not position.update:
        said += (
            f"\nthe model of {settings.start} is validated first, and kept if training finds nothing better; "
            f"learning rates are {settings.start_rate:g} times those of the recipe (training.start_rate)"
        )
    return said


TrainedPrecision = Literal["float32", "bfloat16"]


def decide_precision(
    settings: TrainingSettings, device: torch.device, before: About | None
) -> TrainedPrecision:
    """The precision of a training: `auto` is bfloat16 where the processor multiplies it in hardware.

    Nothing is timed, so that one recipe and seed give one model on one kind of processor. Checkpoints store
    the answer, and a resumed run keeps it, also on another machine; docs/reference/kernels.md has the
    figures.
    """
    if settings.precision != "auto":
        return settings.precision
    match "" if before is None else before.precision or before.kernels.get("precision"):
        case "float32":
            return "float32"
        case "bfloat16":
            return "bfloat16"
    exact = settings.deterministic and device.type == "cpu"
    return "bfloat16" if devices.fast_bfloat16(device) and not exact else "float32"


def check_compiler(device: torch.device) -> None:
    """Compile one small function, to fail early if that does not work.

    torch.compile generates C++ for a CPU and Triton for a GPU, so it needs a compiler where the training
    runs. The binaries are cached next to the token stores, not in a directory of /tmp with a predictable
    name. The compiled graphs, which torch would store as pickles, are not cached.
    """
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(cache_directory() / "compiled"))
    # otherwise torch leaves worker processes behind
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    if device.type == "cpu":
        command = shlex.split(os.environ.get("CXX") or "g++")
        # Without a compiler, cached binaries would work until the first new shape.
        if shutil.which(command[0]) is None:
            raise ConfigError(
                f"training.compile: cannot find the C++ compiler {command[0]}; install g++, "
                "name another with CXX, or set training.compile: false"
            )
    # Do not assume that two sizes which are equal once are always equal.
    torch.fx.experimental._config.use_duck_shape = False  # type: ignore[attr-defined]
    x = torch.ones(3, device=device, requires_grad=True)
    try:
        compiled = torch.compile(_trial, options={"fx_graph_cache": False})
        compiled(x).sum().backward()
    except Exception as error:
        said = (str(error).strip() or repr(error)).splitlines()[0][:120]
        raise ConfigError(
            f"training.compile: torch cannot compile here ({said}); install g++ and Python's "
            "headers (Triton for a GPU), or set training.compile: false"
        ) from error
    if x.grad is None or not torch.allclose(x.grad, 2 * torch.cos(2 * x.detach())):
        raise ConfigError(
            "training.compile: code compiled by torch gives wrong gradients here; set training.compile: false"
        )


def _trial(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(2 * x)
