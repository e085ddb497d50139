"""The training loop, the same for every model and task.

Before each update it checks whether to save, validate or end. A save precedes its validation, so a validation
can be interrupted at any time and is simply repeated. Read next: session.py, ready.py, course.py.
"""

from pathlib import Path

from weft.tasks.task import Task
from weft.train.interrupts import Interrupted
from weft.train.outcome import Outcome
from weft.train.position import groups
from weft.train.ready import check, make_ready
from weft.train.reporting import Reporter
from weft.train.session import session
from weft.train.settings import Settings


def train(task: Task, run: Path, settings: Settings, report: Reporter | None = None) -> Outcome:
    """Train a task, or resume where the run stopped.

    Args:
        task: what to learn, from which data.
        run: run directory; if it has checkpoints, training resumes from the newest.
        settings: training settings.
        report: receives progress; by default the screen, metrics.jsonl and TensorBoard.

    Raises:
        CheckpointError: the checkpoints cannot be loaded, do not fit the recipe, or cannot be written.
        NonFinite: a loss or gradient is not finite and must not be skipped.
        ConfigError: the task does not have the metric, or the machine does not have the device.
    """
    device, history = check(task, settings)
    with session(run, settings, device, report) as s:
        try:
            with s.interrupts.at_once():
                course = make_ready(s, task, history)
        except Interrupted:
            s.report.said("stopped before the first update; the same command starts again")
            return Outcome("interrupted", 0, exit_code=s.interrupts.exit_code)
        for group in groups(course.plan, course.position, settings.accumulate):
            end = course.end()
            if course.saves():
                course.save()
            try:
                with s.interrupts.at_once():
                    if course.validates():
                        course.validate()
                    if end := end or course.end():
                        return course.finish(end)
            except Interrupted:
                return course.stop()
            course.step(group)
    raise AssertionError("groups never ends")
