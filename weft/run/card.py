"""The model card of a run, README.md."""

import json
import shlex
from pathlib import Path

import torch

from weft.config import dump
from weft.errors import CheckpointError
from weft.run.teacher import teacher_of
from weft.run.training import CheckedRecipe
from weft.store import files
from weft.train.finish import Outcome
from weft.version import __version__
from weft.wording import plural


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
