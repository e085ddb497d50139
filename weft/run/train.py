"""A whole training: the recipe is checked, the run begun, the model trained, its card written.

A student that was distilled has a teacher.json, which its corpus has too and its card shows. Read next:
training.py, the first step; ../train/loop.py, the training; ../commands/distill.py, which trains students.
"""

import json
import os
import shlex
from collections.abc import Callable, Collection
from pathlib import Path
from typing import NamedTuple

import torch

from weft.config import Table, dump
from weft.errors import CheckpointError, ConfigError, DataError
from weft.run.training import CheckedRecipe, as_begun, begin_run, check_recipe
from weft.store import files, jsonfile
from weft.store.files import is_file
from weft.train.finish import Outcome
from weft.train.loop import train
from weft.train.reporting import Reporter
from weft.version import __version__
from weft.wording import plural


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

    `report` opens what shows the progress, None for the usual; `begun` is called when the run has its
    directory, before the training.
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


def write_card(run: Path, checked: CheckedRecipe, outcome: Outcome) -> None:
    """Write RUN/README.md."""
    task, plain = checked.task, checked.plain
    scores = "\n".join(f"| {name} | {value:.4f} |" for name, value in outcome.scores.items())
    source = f"update {outcome.best}"
    if outcome.mean_of:
        source = f"the mean of updates {', '.join(map(str, outcome.mean_of))}"
    which = "which selected it"
    if outcome.refit:
        which = "before the model was trained again in the same way, on these too"
    teacher = teacher_of(run)
    taught = f"\n{teacher.paragraph()}\n" if teacher else ""
    other = "" if task.has("test") else " --data PREFIX"
    text = f"""# {run.resolve().name}

A model for the task `{plain["task"]}` ({task.about()}), trained by Weft {__version__} (torch
{torch.__version__}).
{taught}
Training ended ({outcome.reason}) after {plural(outcome.update, "update")},
seed {plain["training"]["seed"]}. The model is {source}. Scores on the validation data,
{which}:

| score | value |
|---|---|
{scores}

{task.note}
Score it on data that was not used in training: `weft evaluate {shlex.quote(str(run))}{other}`. Use it:

```python
import weft
print(weft.load({json.dumps(str(run), ensure_ascii=False)}).predict("..."))
```

## Recipe

```yaml
{dump(plain).rstrip()}
```
"""
    try:
        files.replace(run / "README.md", text.encode())
    except OSError as error:
        raise CheckpointError(
            f"{run / 'README.md'}: could not be written ({error.strerror or error}), but the model is "
            "complete; free some space and run the same command again"
        ) from error


TEACHER_FILE = "teacher.json"


class Teacher(jsonfile.Schema):
    """The run that wrote the targets of a corpus, and how."""

    run: str  # absolute path
    weights: str  # SHA-256 of its model.safetensors
    about: str  # its task and data
    decoding: str  # its search settings
    sources: list[str]  # the texts that it read
    ensemble: list[str] = jsonfile.field(default_factory=list)  # further runs that it was averaged with
    # digests of files and runs it used
    files: dict[str, list[list[str]]] = jsonfile.field(default_factory=dict)
    mixed: bool = False  # whether the student was trained on original pairs too

    def save(self, folder: Path) -> None:
        """Write it into a folder, atomically."""
        jsonfile.save(folder / TEACHER_FILE, jsonfile.plain(self))

    def paragraph(self) -> str:
        """Teacher and settings for a model card."""
        also = ", together with the original pairs" if self.mixed else ""
        others = f" in an ensemble with {', '.join(self.ensemble)}" if self.ensemble else ""
        return (
            f"The training targets were written by a teacher, the run `{self.run}` ({self.about}){others}: "
            f"{self.decoding}, for the sources of {', '.join(self.sources)}{also}. "
            f"SHA-256 of the teacher's weights: `{self.weights}`."
        )


def teacher_of(folder: Path) -> Teacher | None:
    """The teacher of a run or a corpus; None if it has none."""
    if not is_file(folder / TEACHER_FILE):
        return None
    return jsonfile.load(folder / TEACHER_FILE, Teacher, "remove it, or distill again", error=CheckpointError)
