"""The search, and one trial of it: a training that reports its validations and ends early if it falls behind.

Read next: study.py, where trials come from; ../train/reporting.py; report.py.
"""

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.errors import ConfigError, DataError, ShapeError
from weft.run.train import train_run
from weft.train.reporting import MetricsFile, duration
from weft.train.update import NonFinite
from weft.tune import space as spaces
from weft.tune.plan import QUIET
from weft.tune.study import Study

Say = Callable[[str], None]

FAILURES = 5
"""The search ends if so many trials in a row fail."""


class TrialEnded(Exception):
    """A trial that ends before its training does; its text says why."""


class TrialReport(MetricsFile):
    """Sends the scores of a training to the study, and ends it when it falls behind or time is up."""

    def __init__(self, study: Study, trial: Any, run: Path, deadline: float, say: Say) -> None:
        super().__init__(run / "metrics.jsonl")
        self._study, self._trial, self._deadline, self._say = study, trial, deadline, say
        self._done = 0.0
        self._begun = time.monotonic()
        self._before = float(trial.user_attrs.get("seconds", 0.0))
        self._steps = set(study.trials()[trial.number].intermediate_values)
        self._best = study.score(study.trials()[trial.number])

    def moved(self, update: int, done: float) -> None:
        """End the trial when time is up."""
        self._done = done
        if time.monotonic() > self._deadline:
            self.spent()
            raise TrialEnded("time is up")

    def validated(self, update: int, scores: Mapping[str, float], samples: Sequence[Any], best: bool) -> None:
        """Send the best score so far; end the trial if it belongs to the worse ones."""
        super().validated(update, scores, samples, best)
        plan, score = self._study.plan, scores[self._study.plan.metric]
        if self._best is None or plan.better(score, self._best):
            self._best = score
        self.spent()
        step = max(1, round(100 * self._done)) if self._done else len(self._steps) + 1
        if step in self._steps:
            return
        self._steps.add(step)
        self._trial.report(self._best, step)
        place = f"{step} % trained" if self._done else f"validation {step}"
        self._say(f"trial {self._trial.number}: {place}, {plan.metric} {score:.4g}")
        if self._done < 1 and self._trial.should_prune():
            raise TrialEnded("not among the best third")

    def spent(self) -> None:
        """Store how long this trial has been trained."""
        self._trial.set_user_attr("seconds", self._before + time.monotonic() - self._begun)


def run_trial(study: Study, trial: Any, deadline: float, say: Say) -> int:
    """Train a trial and tell the study how it ended; returns 0, or the exit code of a signal."""
    plan, run = study.plan, study.plan.trial(trial.number)
    parameters = spaces.proposed(trial, plan.space)
    as_it_is = bool(trial.user_attrs.get("as_it_is"))
    settings = {} if as_it_is else spaces.changes(plan.space, parameters)
    shown = ", ".join(spaces.overrides(settings)) or "the recipe as it is"
    say(f"trial {trial.number}: {shown}")
    try:
        unseen = "training.refit=false"  # scores are of validation examples that no trial has seen
        report = TrialReport(study, trial, run, deadline, say)
        recipe = plan.table(settings, *QUIET, unseen)
        _, outcome = train_run(run, recipe, lambda _: report, plugins=plan.plugins)
        report.spent()
    except TrialEnded as end:
        study.end(trial, None, str(end))
        say(f"trial {trial.number}: ended early, {end}, {_so_far(study, trial)}")
    except (ConfigError, DataError, ShapeError, NonFinite, MemoryError) as error:
        if as_it_is:
            raise
        study.end(trial, None, str(error) or "out of memory", failed=True)
        say(f"trial {trial.number}: failed: {error}")
    else:
        if outcome.exit_code:
            return outcome.exit_code
        if plan.metric not in outcome.scores:
            raise ConfigError(f"{plan.recipe}: expected validation data, got none; set data.valid")
        score = outcome.scores[plan.metric]
        study.end(trial, score)
        say(f"trial {trial.number}: trained to its end, {plan.metric} {score:.4g}, {_so_far(study, trial)}")
    remove_checkpoints(study, trial.number)
    return 0


def remove_checkpoints(study: Study, number: int) -> None:
    """Remove the checkpoints of a trial that has ended: nothing resumes it."""
    shutil.rmtree(study.plan.trial(number) / "checkpoints", ignore_errors=True)


def _so_far(study: Study, trial: Any) -> str:
    """How long a trial took, and the best one so far."""
    took, best = f"after {duration(trial.user_attrs.get('seconds', 0.0))}", study.best()
    return took if best is None else f"{took}; best so far: trial {best.number}, {study.score(best):.4g}"


def search(study: Study, *, minutes: float, trials: int, processes: int, say: Say) -> int:
    """Train trials in this process; returns 0, or the exit code of a signal."""
    for one in study.trials():
        if one.state.is_finished():  # a process was killed before it had tidied up
            remove_checkpoints(study, one.number)
    left = 60 * minutes - study.seconds() / processes if minutes else float("inf")
    deadline = time.monotonic() + left
    while time.monotonic() < deadline:
        with study.next(trials) as trial:
            if trial is None:
                break
            code = run_trial(study, trial, deadline, say)
        if code:
            return code
        _check_failures(study)
    return 0


def _check_failures(study: Study) -> None:
    last: list[Any] = [one for one in study.trials() if one.state.is_finished()][-FAILURES:]
    if len(last) == FAILURES and all(study.score(one) is None for one in last):
        why = last[-1].user_attrs.get("why", "unknown")
        raise ConfigError(
            f"{study.plan.folder}: the last {FAILURES} trials failed, the last one with: {why}; "
            "narrow the space with --space"
        )
