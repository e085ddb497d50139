"""The state of a training: model, optimiser and position, and what the training loop does with them.

Read next: ready.py, which starts or resumes one; update.py, the arithmetic of a step; loop.py.
"""

import signal
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import nn

from weft.errors import ConfigError
from weft.tasks.task import Pipeline, Training
from weft.train import kernels
from weft.train.clock import Moment, TrainingClock, now
from weft.train.divergence import Divergence
from weft.train.finish import finish, wanted
from weft.train.guard import NonFinite
from weft.train.history import History, finite
from weft.train.monitors import Monitors
from weft.train.objectives.objective import Criterion
from weft.train.outcome import Outcome, outcome
from weft.train.position import BatchGroup, BatchOrder, Position
from weft.train.resume import about, roll_back
from weft.train.schedules import unreached
from weft.train.session import Session
from weft.train.snapshot import taken as snapshot_of
from weft.train.tuned import FrozenParts
from weft.train.update import UpdateResult, update
from weft.train.validation import scored, validate
from weft.tree import State


@dataclass
class TrainingState:
    """The part of a training that changes from update to update.

    session: what stays the same during the training.
    pipeline: makes models.
    training: provides batches and validates.
    model: in training mode, possibly sharded.
    criterion: computes losses.
    optimiser: over the parameters of the criterion.
    plan: order of the batches.
    position: number of updates so far, and the next batch.
    history: validations so far.
    carried: state for the next batch, if the task carries one.
    clock: measures the time of updates.
    monitors: measure gradients.
    divergence: watches the loss.
    frozen: parts of the model that are not trained.
    saved: update of the newest checkpoint; -1 if the untrained model must be saved too.
    samples: samples of the last validation.
    notes: sentences of earlier validations, each reported once.
    split: whether a batch has been split because it did not fit into memory.
    """

    session: Session
    pipeline: Pipeline
    training: Training
    model: nn.Module
    criterion: Criterion
    optimiser: torch.optim.Optimizer
    plan: BatchOrder
    position: Position
    history: History
    carried: State
    clock: TrainingClock
    monitors: Monitors
    divergence: Divergence
    frozen: FrozenParts
    saved: int
    samples: tuple[Any, ...] = ()
    notes: tuple[str, ...] = ()
    split: bool = False

    def end(self) -> str:
        """The reason why training ends here, or ""."""
        settings = self.session.settings
        patience = settings.patience and self.history.waited() >= settings.patience
        return self.position.end(settings) or ("patience" if patience else "")

    def validates(self) -> bool:
        """Whether a validation is due here and has not been done yet."""
        due = self.end() or self.position.validates(self.session.settings) or self._cycle_ends()
        return bool(due) and not self.history.has(self.position.update)

    def saves(self) -> bool:
        """Whether a save is due; one precedes every validation, so that a validation can be repeated."""
        return self.validates() or self.position.saves(self.session.settings)

    def save(self) -> None:
        """Save a checkpoint, unless this update already has one."""
        session = self.session
        if self.saved == self.position.update:
            return
        if session.processes.first or session.sharded:
            known = about(self.optimiser, session.settings) | {
                "machine": kernels.machine(),
                "precision": session.settings.precision,
            }
            copy = partial(
                snapshot_of,
                self.model,
                self.optimiser,
                self.position,
                self.history,
                known,
                self.carried,
                self.criterion.own,
                session.part,
            )
            session.saving.save(copy, wanted(self.history, session.settings))
        self.saved = self.position.update

    def validate(self) -> None:
        """Validate and store the scores.

        Raises:
            Interrupted: a signal arrived; the validation is repeated when training resumes.
        """
        session, number = self.session, self.position.update
        self._keep_cycle()
        found = validate(
            self.pipeline, self.model, session.settings, session.processes, session.interrupts, number
        )
        self.samples = tuple(found.samples)
        self.history = self.history.add(number, finite(found.scores))
        best = self.history.best() == self.history.entries[-1]
        for note in found.notes:
            if note not in self.notes:
                session.report.warned(note)
        self.notes += tuple(found.notes)
        session.report.validated(number, found.scores, found.samples, best)
        session.saving.wait()
        if session.processes.first:
            session.checkpoints.write_index(self.history)

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

    def finish(self, reason: str) -> Outcome:
        """End training: make the best checkpoint, or the mean of several, the model of the run."""
        session = self.session
        if not session.processes.first:
            return Outcome(reason, self.position.update)
        session.report.ending()
        self.monitors.conclude()
        session.saving.wait()
        session.report.said(session.saving.sentence(self.clock.spent().wall))
        whole = self.pipeline.model().to(session.device) if session.sharded else self.model
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
        """Take one update.

        Raises:
            NonFinite: the loss or gradient is not finite and must not be skipped; a checkpoint is saved.
            ConfigError: a batch does not fit into memory, or does not suit the model.
        """
        session, settings, before = self.session, self.session.settings, now()
        self.frozen.at(self.position.update)
        try:
            taken = update(
                self.training,
                self.model,
                self.optimiser,
                group,
                self.position,
                self._factor(group),
                settings,
                session.workers,
                self.carried,
                session.processes,
                self.criterion,
            )
        except (NonFinite, ConfigError) as error:
            # Other processes learn only about non-finite numbers at this update.
            if isinstance(error, NonFinite) or not session.sharded:
                self.save()
            raise
        spent = self._agree()
        self.position = self.clock.after(before, self.position, group, taken, spent)
        self.carried = taken.carried
        self._warn(group, taken)
        session.report.moved(self.position.update, self.position.done(settings))
        self.monitors.after(self.position, group, taken)
        if self.position.logs(settings):
            session.report.logged(self.clock.line(self.position, taken))
            self.position = self.position.after_log()

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
        state = self.history.schedule_state(settings.schedule)
        return settings.factor(after.update, after.done(settings), state)

    def _agree(self) -> Moment:
        """Share a signal that one process received with all of them; return the total time spent."""
        processes, interrupts = self.session.processes, self.session.interrupts
        asked, *spent = processes.sum([float(bool(interrupts.asked)), *self.clock.spent()])
        interrupts.agree((interrupts.asked or signal.SIGTERM) if asked else 0)
        return Moment(*spent)

    def _warn(self, group: BatchGroup, taken: UpdateResult) -> None:
        report, settings, number = self.session.report, self.session.settings, self.position.update
        if number == 1 and (said := unreached(settings.schedule, settings.planned(group.batches))):
            report.warned(said)
        if taken.skipped:
            report.warned(f"{taken.skipped}; this update was skipped{self._roll_back()}")
        if said := self.divergence.after(number, taken):
            report.warned(said)
        if taken.split and not self.split:
            self.split = True
            report.warned(
                f"update {number}: a batch did not fit into memory and was computed in parts; the "
                "gradient is the same, but smaller batches are faster"
            )

    def _roll_back(self) -> str:
        """After a skipped update: restore the newest checkpoint if the settings say so; a phrase about it."""
        session = self.session
        if session.settings.non_finite != "roll_back":
            return ""
        session.saving.wait()
        session.processes.wait()
        to = roll_back(session.checkpoints, self.model, self.optimiser, self.criterion.own)
        return f" and the parameters of update {to} were restored"
