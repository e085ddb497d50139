"""A trained run opened for use. Read next: begun.py; ../tasks/task.py."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from torch import nn

from weft.config import Table, read_recipe
from weft.errors import CheckpointError
from weft.nn import devices
from weft.run.checked import Begun, checked
from weft.store import blueprint, claim, form, weights
from weft.store.files import is_file
from weft.tasks.predictor import Predictor
from weft.tasks.task import Pipeline, Task
from weft.train.checkpoints import CYCLES


class Opened(NamedTuple):
    """A trained model and what it needs."""

    task: Task
    pipeline: Pipeline
    model: nn.Module
    path: Path
    recipe: Table
    name: str  # of the task, as recipes call it


def check(recipe: Table, *, plugins: Collection[str] = ()) -> Begun:
    """Make the objects that a recipe describes; its task can open other runs.

    Raises:
        ConfigError: a mistake in the recipe, or a plugin that cannot be found.
    """
    begun = checked(recipe, plugins)
    begun.task.trained = lambda run: open_run(run, device="cpu", plugins=plugins)
    begun.task.untrained = lambda run: _untrained(run, plugins)
    return begun


def open_run(
    path: str | Path, *, device: str = "auto", plugins: Collection[str] = (), changes: Sequence[str] = ()
) -> Opened:
    """The best model of a run, in evaluation mode.

    Args:
        path: the run directory, or one of the files in RUN/cycles.
        device: cpu, cuda or auto.
        plugins: packages whose parts the recipe may name.
        changes: section.key=value of the recipe, to use the run in another way than it says.

    Raises:
        ConfigError: a change that does not fit.
        CheckpointError: not a run directory, of another format, not yet trained, or damaged.
    """
    path, model_path = _places(Path(path))
    try:
        is_run, is_trained = is_file(path / "recipe.yaml"), is_file(model_path)
    except OSError as error:
        raise CheckpointError(
            f"{path}: cannot be read ({error.strerror or error}); check its permissions"
        ) from error
    if not is_run:
        raise CheckpointError(
            f"{path}: not a run directory (it has no recipe.yaml); make one with weft train RECIPE --run DIR"
        )
    claim.alone(path)
    form.check(path)
    recipe = read_recipe(path / "recipe.yaml", changes)
    begun = check(recipe, plugins=plugins)
    if not is_trained:
        raise CheckpointError(
            f"{path}: has no {model_path.relative_to(path)} yet; let `weft train` reach a first validation"
        )
    pipeline = begun.task.open(path)
    stored, place = weights.load(model_path), str(model_path)
    model = blueprint.build_for(pipeline.model, stored, place)
    weights.restore(model, stored, place)
    model = model.to(devices.prepare(devices.choose(device))).eval().requires_grad_(False)
    return Opened(begun.task, pipeline, model, path, recipe, str(recipe.value["task"].value))


def _places(path: Path) -> tuple[Path, Path]:
    """The run directory, and the file with the weights."""
    if path.suffix == ".safetensors" and path.parent.name == CYCLES:
        return path.parent.parent, path
    return path, path / "model.safetensors"


def _untrained(path: Path, plugins: Collection[str]) -> Opened:
    """A run whose weights are not there: recipe and vocabularies alone, and a new model."""
    if not is_file(path / "recipe.yaml"):
        raise CheckpointError(f"{path}: is missing or damaged; train the run again")
    form.check(path)
    recipe = read_recipe(path / "recipe.yaml")
    task = check(recipe, plugins=plugins).task
    pipeline = task.open(path)
    return Opened(
        task, pipeline, blueprint.build(pipeline.model).eval(), path, recipe, str(recipe.value["task"].value)
    )


def load(path: str | Path, *, device: str = "auto", plugins: Collection[str] = ()) -> Predictor[Any]:
    """A trained run, ready for use from Python.

    Args:
        path, device, plugins: see open_run.

    Example:
        translator = weft.load("runs/en-es")
        translator.predict("Click the button.")
    """
    opened = open_run(path, device=device, plugins=plugins)
    return opened.pipeline.predictor(opened.model)
