"""The state of a training: model, optimiser and position, and what the training loop does with them.

Read next: ready.py, which starts or resumes one; update.py, the arithmetic of a step; loop.py.
"""

import signal
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from weft.errors import ConfigError
from weft.rooms import wrong_result
from weft.tasks.evaluation import Validation
from weft.tasks.task import Pipeline, Training
from weft.train import resume, sharding
from weft.train.checkpoints import snapshot_of
from weft.train.finish import ChosenUpdates, Outcome, finish, outcome, publish, wanted
from weft.train.history import History, finite
from weft.train.monitors import Moment, Monitors, TrainingClock, now
from weft.train.position import BatchGroup, BatchOrder, Position, derive, settle
from weft.train.resume import about, roll_back
from weft.train.schedules import unreached
from weft.train.session import Interrupted, Session
from weft.train.settings import TrainingSettings
from weft.train.tuned import FrozenParts
from weft.train.update import Divergence, NonFinite, UpdateResult, Updates
from weft.tree import State

if TYPE_CHECKING:
    from weft.train.captured import CannotCapture, CapturedUpdates, Launch


@dataclass
class TrainingState:
    """The part of a training that changes from update to update."""

    session: Session
    pipeline: Pipeline
    training: Training
    model: nn.Module  # in training mode, possibly sharded
    updates: Updates
    plan: BatchOrder
    position: Position
    history: History
    carried: State  # for the next batch, if the task carries one
    clock: TrainingClock
    monitors: Monitors
    divergence: Divergence
    frozen: FrozenParts
    saved: int  # update of the newest checkpoint; -1 if the untrained model must be saved too
    samples: tuple[Any, ...] = ()  # of the last validation
    notes: tuple[str, ...] = ()  # of earlier validations and updates, each reported once
    split: bool = False  # whether a batch did not fit into memory
    compiled: float = 0.0  # seconds that torch has compiled and that were reported
    captured: "CapturedUpdates | None" = None  # reads results later; None for updates one by one
    chosen: ChosenUpdates | None = None  # what validations had chosen, in a training on them too

    def end(self) -> str:
        """The reason why training ends here, or ""."""
        if self.chosen is not None:
            return "refit" if self.position.update >= self.chosen.last else ""
        if self.training.solved:
            return "solved"
        settings = self.session.settings
        patience = settings.patience and self.history.waited() >= settings.patience
        return self.position.end(settings) or ("patience" if patience else "")

    def validates(self) -> bool:
        """Whether a validation is due here and has not been done yet."""
        if self.chosen is not None:
            return False
        due = self.end() or self.position.validates(self.session.settings) or self._cycle_ends()
        return bool(due) and not self.history.has(self.position.update)

    def saves(self) -> bool:
        """Whether a save is due; one precedes every validation, so that a validation can be repeated."""
        chosen = () if self.chosen is None else self.chosen.updates
        due = self.validates() or self.position.saves(self.session.settings)
        return due or self.position.update in chosen

    def save(self) -> None:
        """Save a checkpoint, unless this update already has one."""
        session = self.session
        self.settle()
        if self.saved == self.position.update:
            return
        if session.processes.first or session.sharded:
            known = about(self.updates.optimiser, session.settings) | {
                "machine": resume.machine(),
                "precision": session.settings.precision,
            }
            copy = partial(
                snapshot_of,
                self.updates.criterion,
                self.updates.optimiser,
                self.position,
                self.history,
                known,
                self.carried,
                session.part,
            )
            kept = wanted(self.history, session.settings) if self.chosen is None else self.chosen.updates
            session.saving.save(copy, kept)
        self.saved = self.position.update

    def validate(self) -> None:
        """Validate and store the scores."""
        session, number = self.session, self.position.update
        self._keep_cycle()
        found = self._validation()
        self.samples = tuple(found.samples)
        self.history = self.history.add(number, finite(found.scores))
        best = self.history.best() == self.history.entries[-1]
        for note in found.notes:
            self._note(note)
        if self.history.silent():
            self._note(
                f"{self.history.metric} is 0 in every validation so far, so the lowest loss chooses the best "
                "checkpoint"
            )
        session.report.validated(number, found.scores, found.samples, best)
        session.saving.wait()
        if session.processes.first:
            session.checkpoints.write_index(self.history)

    def _validation(self) -> Validation:
        """The scores and samples of the whole model in float32; a repeated one draws the same random numbers.

        The first process computes them; the others receive its scores, or learn that a signal interrupted it.
        """
        session, model = self.session, self.model
        processes, interrupts = session.processes, session.interrupts
        whole: nn.Module | None = model
        if session.sharded:
            whole = sharding.gathered(model, self.pipeline.model, wanted=processes.first)
        if whole is None or not processes.first:
            answer = processes.told()
            if answer["signal"]:
                interrupts.agree(answer["signal"])
                raise Interrupted
            return Validation(answer["scores"], [])
        try:
            with interrupts.alone():
                found = scored(self.training, whole, session.settings, self.position.update)
        except Interrupted:
            processes.told({"signal": interrupts.asked})
            raise
        processes.told({"signal": 0, "scores": found.scores})
        return found

    def _cycle_ends(self) -> bool:
        """Whether a cycle of the learning rate ends here, and its weights are not known to be kept."""
        return self._cycles_ended() > self.position.cycles

    def _cycles_ended(self) -> int:
        settings, position = self.session.settings, self.position
        return settings.schedule.cycles_ended(position.update, position.done(settings))

    def _keep_cycle(self) -> None:
        if not self._cycle_ends():
            return
        if self.session.processes.first:
            self.session.saving.wait()
            self.session.checkpoints.keep_cycle(self.position.update)
        self.position = replace(self.position, cycles=self._cycles_ended())

    def choice(self) -> ChosenUpdates | None:
        """What a training that has ended has chosen; None if it kept the weights that it began with."""
        session = self.session
        session.processes.wait()  # until the first has written the index
        model = session.checkpoints.index().model
        last = 0 if model is None else max(model.of)
        if model is None or not (last or self.training.solved):
            return None
        done = session.checkpoints.load(last).position.done(session.settings) if last else 0.0
        return ChosenUpdates(tuple(model.of), round(last / done) if done else 0, self.history)

    def finish(self, reason: str) -> Outcome:
        """End training: make the best checkpoint, or the mean of several, the model of the run."""
        session = self.session
        if not session.processes.first:
            return Outcome(reason, self.position.update)
        session.report.ending()
        self.monitors.conclude()
        session.saving.wait()
        whole = self.pipeline.model().to(session.device) if session.sharded else self.model
        if self.chosen is not None:
            publish(session.run, session.checkpoints, self.chosen, whole)
            return Outcome(reason, self.position.update, refit=True)
        session.report.said(session.saving.sentence(self.clock.spent().wall))
        left = finish(
            whole,
            partial(scored, self.training, whole, session.settings),
            session.checkpoints,
            self.history,
            self.position.update,
            session.settings,
            session.report,
        )
        found = outcome(reason, self.history, self.position, left)._replace(samples=self.samples)
        session.report.finished(found.reason, found.update, found.scores)
        return found

    def stop(self) -> Outcome:
        """Save after a signal, so that the same command resumes here."""
        session = self.session
        self.save()
        session.saving.wait()
        session.report.ending()
        session.report.said(
            f"stopped after update {self.saved:,}; progress is saved and the same command resumes"
        )
        left = outcome("interrupted", self.history, self.position, session.checkpoints.model())
        return left._replace(exit_code=session.interrupts.exit_code)

    def step(self, group: BatchGroup) -> None:
        """Take one update."""
        session, settings, before = self.session, self.session.settings, now()
        self.frozen.at(self.position.update)
        taken = self._launched(group) or self._update(group, self.position, self._factor(group))
        if settings.compile:
            self._say_compiled()
        spent = self._agree()
        self.position = self.clock.after(before, self.position, group, taken, spent)
        self.carried = taken.carried
        chosen = self.chosen
        done = self.position.done(settings) if chosen is None else self.position.update / chosen.last
        session.report.moved(self.position.update, done)
        if self.captured is None or not self.captured.pending:
            self._account(self.position.update, group, taken)
        elif self._due():
            taken = self.settle() or taken
        self.monitors.after(self.position, group, taken)
        if self.position.logs(settings):
            session.report.logged(self.clock.line(self.position, taken))
            self.position = self.position.after_log()

    def _update(self, group: BatchGroup, position: Position, factor: float) -> UpdateResult:
        try:
            return self.updates.take(group, position, factor, self.carried)
        except (NonFinite, ConfigError) as error:
            # Other processes learn only about non-finite numbers at this update.
            if isinstance(error, NonFinite) or not self.session.sharded:
                self.position = position
                self.save()
            raise

    def _launched(self, group: BatchGroup) -> UpdateResult | None:
        """Launch an update; its losses, zero here, are added when they are read. None if it cannot be."""
        if (
            self.captured is None or not self.updates.optimiser.state
        ):  # the first step makes the optimiser's state
            return None
        from weft.train.captured import CannotCapture

        factor = self._factor(group)
        try:
            tokens = self.captured.launch(group, self.position, factor)
        except CannotCapture as why:
            self._cannot_record(why)
            return None
        rate = self.session.settings.optimiser.lr * factor
        return UpdateResult(0.0, 0.0, tokens, 0.0, rate, 1.0, True)

    def _due(self) -> bool:
        """Whether something needs the results of what was launched."""
        assert self.captured is not None
        return (
            self.captured.full
            or self.position.logs(self.session.settings)
            or self.monitors.reads(self.position)
            or bool(self.saves() or self.end())
        )

    def settle(self) -> UpdateResult | None:
        """Read the results of the updates that were launched, the last of which is returned."""
        begun, last = now(), None
        while self.captured is not None and self.captured.pending:
            launches = list(self.captured.pending)
            results = self.captured.read()
            self.captured.pending.clear()
            for place, (launch, result) in enumerate(zip(launches, results, strict=True)):
                if not result.stepped:
                    last = self._again(launches[place:])
                    break
                rate = self.session.settings.optimiser.lr * launch.factor
                last = UpdateResult(result.total, result.targets, launch.tokens, result.norm, rate, 1.0, True)
                self._account(launch.position.update + 1, launch.group, last)
                self._add(last)
        waited = now()
        wall, cpu = waited.wall - begun.wall, waited.cpu - begun.cpu
        self.position = replace(self.position, wall=self.position.wall + wall, cpu=self.position.cpu + cpu)
        return last

    def _again(self, launches: "list[Launch]") -> UpdateResult:
        """Take an update that was not finite as update.py does, and launch those after it again."""
        from weft.train.captured import CannotCapture

        assert self.captured is not None
        first, *others = launches
        taken = self._as_usual(first)
        self.captured.forget_step()  # a roll-back gives the optimiser other tensors
        if taken.stepped:
            self._stop_recording("a recorded update was not finite, but is when it is taken as usual")
        for launch in others:
            try:
                if self.captured is not None:
                    self.captured.launch(launch.group, launch.position, launch.factor)
                    continue
            except CannotCapture as why:
                self._cannot_record(why)
            taken = self._as_usual(launch)
        return taken

    def _as_usual(self, launch: "Launch") -> UpdateResult:
        """Take an update that was launched and changed nothing."""
        known = {name: getattr(self.position, name) for name in ("total", "count", "skipped")}
        after = self.position
        taken = self._update(launch.group, replace(launch.position, **known), launch.factor)
        self.position = after
        self._account(launch.position.update + 1, launch.group, taken)
        self._add(taken)
        return taken

    def _cannot_record(self, why: "CannotCapture") -> None:
        """Read what was launched, and say what is taken as usual."""
        self.settle()
        if why.once:
            self._note(f"training.cuda_graphs: {why}; such updates are taken as usual")
        else:
            self._stop_recording(str(why))

    def _stop_recording(self, why: str) -> None:
        self.captured = None
        self._note(f"training.cuda_graphs: {why}; updates are not recorded from here on")

    def _note(self, sentence: str) -> None:
        if sentence not in self.notes:
            self.notes += (sentence,)
            self.session.report.warned(sentence)

    def _add(self, taken: UpdateResult) -> None:
        """Add the results of an update whose position was passed already."""
        position = self.position
        self.position = replace(
            position,
            total=position.total + taken.total,
            count=position.count + taken.count,
            skipped=position.skipped + (not taken.stepped),
        )

    def _factor(self, group: BatchGroup) -> float:
        """The factor of the learning rate for the update over this group."""
        settings = self.session.settings
        after = replace(
            self.position,
            update=self.position.update + 1,
            epoch=group.next_epoch,
            index=group.next_index,
            batches=group.batches,
        )
        history, done = self.history, after.done(settings)
        if self.chosen is not None:  # the rates of the training before, whose epochs were shorter
            history, done = self.chosen.history.until(self.position.update), self.chosen.done(after.update)
        return settings.factor(after.update, done, history.schedule_state(settings.schedule))

    def _agree(self) -> Moment:
        """Share a signal that one process received with all of them; return the total time spent."""
        processes, interrupts = self.session.processes, self.session.interrupts
        asked, *spent = processes.sum([float(bool(interrupts.asked)), *self.clock.spent()])
        interrupts.agree((interrupts.asked or signal.SIGTERM) if asked else 0)
        return Moment(*spent)

    def _account(self, number: int, group: BatchGroup, taken: UpdateResult) -> None:
        """Warn of what an update shows."""
        report, settings = self.session.report, self.session.settings
        if number == 1 and (said := unreached(settings.schedule, settings.planned(group.batches))):
            report.warned(said)
        if number == 1 and (said := too_small(taken.tokens, self.session)):
            report.warned(said)
        if taken.skipped:
            report.warned(f"{taken.skipped}; this update was skipped{self._roll_back()}")
        counts = taken.stepped and taken.count
        if counts and (said := self.divergence.after(number, taken.total / taken.count)):
            report.warned(said)
        if taken.split and not self.split:
            self.split = True
            report.warned(
                f"update {number}: a batch did not fit into memory and was computed in parts; the "
                "gradient is the same, but smaller batches are faster"
            )

    def _say_compiled(self) -> None:
        """Report what torch has compiled during an update."""
        spent = seconds_spent()
        if spent - self.compiled > 0.1:
            said = f"torch compiled for {spent - self.compiled:.1f} s in update {self.position.update + 1:,}"
            self.session.report.said(f"training.compile: {said}")
            self.compiled = spent

    def _roll_back(self) -> str:
        """After a skipped update: restore the newest checkpoint if the settings say so; a phrase about it."""
        session = self.session
        if session.settings.non_finite != "roll_back":
            return ""
        session.saving.wait()
        session.processes.wait()
        to = roll_back(session.checkpoints, self.updates.criterion, self.updates.optimiser)
        return f" and the parameters of update {to} were restored"


SMALL_UPDATE = 4_000
"""Target tokens of an update below which a GPU mostly waits for Python."""


def too_small(tokens: int, session: Session) -> str:
    """A sentence if an update gives each GPU too little to compute, else ""."""
    settings, share = session.settings, tokens // session.processes.count
    if session.device.type != "cuda" or settings.scale == "gpu" or share >= SMALL_UPDATE:
        return ""
    graphs = "" if settings.cuda_graphs else ", or training.cuda_graphs: true"
    return (
        f"an update has {share:,} target tokens for each GPU, too few to keep it busy; set "
        f"training.scale: gpu for larger ones{graphs}"
    )


def scored(training: Training, model: nn.Module, settings: TrainingSettings, number: int) -> Validation:
    """The scores and samples of a model, computed in this process."""
    settle(derive(settings.seed, "validation", number), next(model.parameters()).device)
    model.eval()
    try:
        with torch.no_grad():
            found = training.validate(model)
            if not isinstance(found, Validation):
                raise wrong_result(training, "validate", "a Validation", type(found).__name__)
            return found.with_metrics(settings.metrics)
    finally:
        model.train()


def seconds_spent() -> float:
    """Seconds that torch has compiled in this process; 0 where this version of torch does not say."""
    from torch._dynamo import utils

    known: dict[str, float] = getattr(utils, "calculate_time_spent", dict)()
    return known.get("total_wall_time", 0.0)
