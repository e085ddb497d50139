"""The training loop, the same for every model and task.

Before each update it checks whether to save, validate or end. A save precedes its validation, so a validation
can be interrupted at any time and is simply repeated. Read next: session.py, ready.py, training_state.py.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from weft.tasks.task import Task
from weft.train.finish import Outcome
from weft.train.interrupts import Interrupted
from weft.train.position import groups
from weft.train.prefetch import coming
from weft.train.ready import check_training, make_ready
from weft.train.reporting import Reporter
from weft.train.session import session
from weft.train.settings import TrainingSettings


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
        shares = partial(s.processes.part, accumulate=settings.accumulate, even=s.sharded)
        order = groups(state.plan, state.position, settings.accumulate)
        with coming(order, shares, state.training, settings.seed, device) as made:
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
