"""The training loop, the same for every model and task.

Before each update it checks whether to save, validate or end. A save precedes its validation, so a validation
can be interrupted at any time and is simply repeated. Read next: session.py, ready.py, training_state.py.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from weft.tasks.task import Task
from weft.train.finish import Outcome, is_published, refit_session
from weft.train.position import groups
from weft.train.prefetch import coming
from weft.train.ready import begin, check_training, make_ready
from weft.train.reporting import Reporter
from weft.train.session import Interrupted, session
from weft.train.settings import TrainingSettings
from weft.train.training_state import TrainingState
from weft.wording import plural


def train(
    task: Task,
    run: Path,
    settings: TrainingSettings,
    report: Reporter | None = None,
    *,
    recipe: Mapping[str, Any] | None = None,
) -> Outcome:
    """Train a task, or resume where the run stopped."""
    device, history = check_training(task, settings)
    with session(run, settings, device, report, recipe or task.recipe) as s:
        try:
            with s.interrupts.at_once():
                state = make_ready(s, task, history)
        except Interrupted:
            s.report.ending()
            s.report.said("stopped before the first update; the same command starts again")
            return Outcome("interrupted", 0, exit_code=s.interrupts.exit_code)
        ended = _updates(state)
        return _refit(state, ended) if settings.refit and not ended.exit_code else ended


def _updates(state: TrainingState) -> Outcome:
    """Take updates, save and validate until the training ends or is stopped."""
    s, settings = state.session, state.session.settings
    shares = partial(s.processes.part, accumulate=settings.accumulate, even=s.sharded)
    order = groups(state.plan, state.position, settings.accumulate)
    with coming(order, shares, state.training, settings.seed, s.device) as made:
        for group in made:
            end = state.end()
            if state.saves():
                state.save()
            try:
                with s.interrupts.at_once():
                    if state.validates():
                        state.validate()
                    if end := end or state.end():
                        return state.finish(end)
            except Interrupted:
                return state.stop()
            state.step(group)
    raise AssertionError("groups never ends")


def _refit(state: TrainingState, ended: Outcome) -> Outcome:
    """Train on the validation examples too; see finish.py."""
    report, chosen = state.session.report, state.choice()
    if chosen is None:
        report.said("training.refit: no update was better than the start, so nothing is trained again")
        return ended
    if is_published(state.session.run, chosen):
        return ended._replace(refit=True)
    count = plural(chosen.last, "update") if chosen.last else "as before"
    report.said(
        f"training again, {count}, on the training and the validation examples (training.refit); the scores "
        "stay those of the model before"
    )
    with state.session.first_before_others():
        state.pipeline.widen(state.session.run)
    with refit_session(state.session, chosen) as s:
        try:
            with s.interrupts.at_once():
                again = begin(s, state.pipeline, state.history, chosen)
        except Interrupted:
            report.ending()
            report.said("stopped; the model before stands, and the same command starts training again")
            return ended._replace(reason="interrupted", exit_code=s.interrupts.exit_code)
        whole = _updates(again)
    if whole.exit_code:
        return ended._replace(reason="interrupted", exit_code=whole.exit_code)
    return ended._replace(refit=True)
