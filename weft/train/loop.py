"""The one training loop, whatever the model and the task.

It reads from top to bottom: make ready, find where the run stands, then again and again look whether to
save, validate or end here, and take the next update. A save comes before its validation, so that a
validation may be cut at any time and is simply done again. Read next: position.py, update.py, checkpoints.py.
"""

import signal
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from weft.errors import ConfigError
from weft.nn.kernels import choice
from weft.nn.regions import compile_regions
from weft.train import blueprint, carry, compiling, devices, files, kernels, seeds, sharding, weights
from weft.train.checkpoints import Checkpoints
from weft.train.clock import Clock, Moment, now
from weft.train.divergence import Divergence
from weft.train.feeding.feeding import check_fits
from weft.train.finish import finish, wanted
from weft.train.guard import NonFinite
from weft.train.history import History, finite
from weft.train.interrupts import Interrupted, Interrupts
from weft.train.monitors import Monitors
from weft.train.parts import Part
from weft.train.position import Group, Position, groups
from weft.train.processes import Processes
from weft.train.reporting import Report
from weft.train.resume import about, resume, roll_back
from weft.train.saving import Saving
from weft.train.schedules.schedule import unreached
from weft.train.screen import open_report
from weft.train.settings import Settings
from weft.train.snapshot import taken as snapshot_of
from weft.train.update import update
from weft.train.validation import scored, validate
from weft.train.workers import Workers


class Outcome(NamedTuple):
    """How training ended.

    reason: max_updates, max_epochs, max_minutes, max_cpu_minutes, patience or interrupted.
    update: updates taken.
    best: the update of the best checkpoint, 0 if none was validated.
    scores: those of the model that was left as model.safetensors.
    mean_of: the updates whose mean that model is; empty where it is the best checkpoint itself.
    exit_code: 0; 130 after Ctrl-C, 143 after SIGTERM.
    samples: those of the last validation; empty where it was made before.
    """

    reason: str
    update: int
    best: int = 0
    scores: dict[str, float] = {}  # noqa: RUF012  never changed
    mean_of: tuple[int, ...] = ()
    exit_code: int = 0
    samples: tuple[Any, ...] = ()


def train(task: Any, run: Path, settings: Settings, report: Report | None = None) -> Outcome:
    """Train what a task describes, or go on where the run stopped.

    Args:
        task: a weft.tasks.task.Task.
        run: the run directory; with checkpoints in it, training resumes from the newest.
        settings: how to train.
        report: told of everything; the screen, metrics.jsonl and TensorBoard unless given.

    Raises:
        CheckpointError: no checkpoint of the run can be loaded, they do not fit, or none can be written.
        NonFinite: a loss or gradient is not finite and is not to be skipped.
        ConfigError: the metric is none of the task's, or the device is not there.
    """
    device = devices.choose(settings.device)  # starts no CUDA library yet
    history = History(settings.metric, _higher(task, settings))
    carry.check(task, settings)
    if settings.compile:
        compiling.check(device)
    at_a_time = 1 if settings.compile else settings.workers  # compiled code draws from torch's own generator
    with (
        seeds.deterministic(settings.deterministic),
        choice.training(),
        Processes(device) as processes,
        files.claim(run) if processes.first else nullcontext(),
        (report or open_report(run, tensorboard=settings.tensorboard))
        if processes.first
        else Report() as report,
        Interrupts(together=processes.count > 1) as interrupts,
        Workers(at_a_time, -(-settings.accumulate // processes.count), device) as workers,
        Saving(
            Checkpoints(run, report.warned), background=settings.save_in_background, first=processes.first
        ) as saving,
    ):
        sharded = settings.sharding == "full" and processes.count > 1
        checkpoints, part = saving.checkpoints, Part(processes.rank, processes.count) if sharded else Part()
        try:
            with interrupts.at_once():
                for turn in (processes.first, not processes.first):  # the others find what the first made
                    if turn and processes.first:
                        with interrupts.alone():
                            task.prepare(run, report.progress)
                    elif turn:
                        task.prepare(run, report.progress)
                    processes.wait()
                seeds.settle(seeds.derive(settings.seed, "weights"), device)
                model = blueprint.build(task.model).to(device).train()
                check_fits(settings.feeding, model)
                if (run / weights.START).exists():
                    weights.restore(model, weights.load(run / weights.START), str(run / weights.START))
                blocks = compile_regions(model) if settings.compile else 0
                if sharded:
                    sharding.shard(model, device, processes.count, settings.feeding)
                seeds.settle(seeds.derive(settings.seed, "objective"), device)
                criterion = settings.objective.build(task, model)
                optimiser = settings.optimiser.build(criterion.learner)
                plan = task.plan(settings.seed)
                for turn in (processes.first, not processes.first):
                    if turn:
                        position, history = resume(
                            checkpoints, model, optimiser, plan, history, settings, criterion.own
                        )
                        if processes.first:
                            checkpoints.write_index(history)
                    processes.wait()
                carried = carry.restored(task, checkpoints, position, model, device)
                report.started(position.update, history.has(position.update))
                report.said(_introduction(model, device, position, settings, workers, processes))
                if settings.compile:
                    report.said(compiling.sentence(blocks))
        except Interrupted:
            report.said("stopped while making ready; nothing is lost, the same command takes it up again")
            return Outcome("interrupted", 0, exit_code=interrupts.exit_code)

        def save() -> int:
            if processes.first or sharded:
                known = about(optimiser, settings) | kernels.record()
                own = criterion.own
                copy = partial(snapshot_of, model, optimiser, position, history, known, carried, own, part)
                saving.save(copy, wanted(history, settings))
            return position.update

        step = partial(update, task, model, optimiser, criterion=criterion)
        score = partial(validate, task, model, settings, processes, interrupts)
        saved, clock = (
            position.update or -settings.validate_start,
            Clock(position, settings, first=processes.first),
        )
        # Sharded, a measure would have to be one of all processes.
        watched = settings if processes.first and not sharded else replace(settings, monitors=False)
        monitors, split = Monitors(task, model, watched, report), False
        divergence = Divergence(settings)
        samples: tuple[Any, ...] = ()
        for group in groups(plan, position, settings.accumulate):
            end = position.end(settings) or _out_of_patience(history, settings)
            validates = bool(end or position.validates(settings)) and not history.has(position.update)
            if saved != position.update and (validates or position.saves(settings)):
                saved = save()
            try:
                with interrupts.at_once():
                    if validates:
                        validation = score(position.update)
                        samples = tuple(validation.samples)
                        history = history.add(position.update, finite(validation.scores))
                        best = history.best() == history.entries[-1]
                        report.validated(position.update, validation.scores, validation.samples, best)
                        saving.wait()
                        if processes.first:
                            checkpoints.write_index(history)
                        end = end or _out_of_patience(history, settings)
                    if end and not processes.first:
                        return Outcome(end, position.update)
                    if end:
                        monitors.conclude()
                        saving.wait()
                        report.said(saving.sentence(clock.spent().wall))
                        whole = task.model().to(device) if sharded else model
                        at_end = partial(scored, task, whole, settings)
                        left = finish(whole, at_end, checkpoints, history, position.update, settings, report)
                        return _outcome(end, history, position, left)._replace(samples=samples)
            except Interrupted:
                if saved != position.update:
                    saved = save()
                saving.wait()
                report.said(
                    f"stopped after update {saved:,}; nothing is lost, the same command goes on from there"
                )
                return _outcome("interrupted", history, position, checkpoints.model(), interrupts.exit_code)

            before = now()
            try:
                factor = _factor(position, group, history, settings)
                taken = step(group, position, factor, settings, workers, carried, processes)
            except (NonFinite, ConfigError) as error:
                # Only of numbers that are not finite do all processes hear at the same update.
                if saved != position.update and (isinstance(error, NonFinite) or not sharded):
                    save()
                raise
            asked, *spent = processes.sum([float(bool(interrupts.asked)), *clock.spent()])
            interrupts.agree((interrupts.asked or signal.SIGTERM) if asked else 0)
            position, carried = clock.after(before, position, group, taken, Moment(*spent)), taken.carried
            if position.update == 1:
                kernels.decide(workers, processes, device)
                if said := unreached(settings.schedule, settings.planned(group.batches)):
                    report.warned(said)
            if taken.skipped:
                said = f"{taken.skipped}; this update was left out"
                if settings.non_finite == "roll_back":
                    saving.wait()
                    processes.wait()
                    to = roll_back(checkpoints, model, optimiser, criterion.own)
                    said += f" and the parameters are those of update {to} again"
                report.warned(said)
            if said := divergence.after(position.update, taken):
                report.warned(said)
            if taken.split and not split:
                split = True
                report.warned(
                    f"update {position.update}: the device's memory was full, so a batch was computed in "
                    "parts; the gradient is the same, smaller batches are faster"
                )
            report.moved(position.update, position.done(settings))
            monitors.after(position, group, taken)
            if position.logs(settings):
                report.logged(clock.line(position, taken))
                position = position.after_log()
    raise AssertionError("the groups have no end")


def _higher(task: Any, settings: Settings) -> bool:
    if settings.metric not in task.better:
        raise ConfigError(
            f"training.metric: {settings.metric!r} came, but this task is scored by {', '.join(task.better)}"
        )
    return bool(task.better[settings.metric] == "higher")


def _introduction(
    model: nn.Module,
    device: torch.device,
    position: Position,
    settings: Settings,
    workers: Workers,
    processes: Processes,
) -> str:
    parameters = sum(parameter.numel() for parameter in model.parameters())
    precision = "bfloat16 autocast" if devices.uses_bfloat16(settings.precision, device) else "float32"
    begins = f"goes on after update {position.update:,}" if position.update else "begins"
    threads = f"{workers.threads} thread{'s' if workers.threads > 1 else ''}"
    if workers.count > 1:
        threads += f", {workers.count} batches of an update side by side"
    if processes.count > 1:
        threads += f", {processes.count} processes"
    return f"training {begins}: {parameters:,} parameters on {device} in {precision}, {threads}"


def _factor(position: Position, group: Group, history: History, settings: Settings) -> float:
    after = replace(
        position,
        update=position.update + 1,
        epoch=group.next_epoch,
        index=group.next_index,
        batches=group.batches,
    )
    state = history.schedule_state(settings.schedule)
    return settings.schedule.factor(after.update, after.done(settings), state)


def _out_of_patience(history: History, settings: Settings) -> str:
    return "patience" if settings.patience and history.waited() >= settings.patience else ""


def _outcome(
    reason: str, history: History, position: Position, left: dict[str, Any], exit_code: int = 0
) -> Outcome:
    best, of = history.best(), left.get("of", [])
    scores = {
        name: float("nan") if score is None else score for name, score in left.get("scores", {}).items()
    }
    mean_of = tuple(of) if len(of) > 1 else ()
    return Outcome(reason, position.update, best.update if best else 0, scores, mean_of, exit_code)
