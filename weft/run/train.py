"""A whole training: the recipe is checked, the run begun, the model trained, its card written.

Read next: training.py, the first step; ../train/loop.py, the training; card.py, the last.
"""

import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import NamedTuple

from weft.config import Table
from weft.errors import ConfigError, DataError
from weft.run.card import write_card
from weft.run.training import CheckedRecipe, as_begun, begin_run, check_recipe
from weft.train.finish import Outcome
from weft.train.loop import train
from weft.train.reporting import Reporter


class TrainedRun(NamedTuple):
    """A recipe and what its training gave."""

    checked: CheckedRecipe
    outcome: Outcome


def train_run(
    run: Path,
    recipe: Table,
    report: Callable[[CheckedRecipe], Reporter] | None = None,
    *,
    plugins: Collection[str] = (),
    begun: Callable[[CheckedRecipe], None] = lambda checked: None,
) -> TrainedRun:
    """Train a run from its beginning or its last checkpoint; a training that was stopped writes no card.

    Args:
        report: opens what shows the progress; None for what the recipe and the screen have.
        begun: called when the run has its directory, before the training.
    """
    first = not int(os.environ.get("RANK", "0"))  # of several processes it writes the directory
    if first:
        checked = begin_run(run, recipe, plugins=plugins)
        begun(checked)
    else:
        checked = as_begun(run, check_recipe(recipe, plugins=plugins, begun=run), recipe)
    shown = report and report(checked)
    try:
        outcome = train(checked.task, run, checked.settings, shown, recipe=checked.plain)
    except (ConfigError, DataError):
        if first:
            _remove_empty(run)
        raise
    if first and not outcome.exit_code:
        write_card(run, checked, outcome)
    return TrainedRun(checked, outcome)


def _remove_empty(run: Path) -> None:
    """Remove a run whose training was refused at its beginning; it has no model."""
    made = [*run.iterdir()]
    if {one.name for one in made} <= {"recipe.yaml", "run.json", ".lock"}:
        for one in made:
            one.unlink()
        run.rmdir()
