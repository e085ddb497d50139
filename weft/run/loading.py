"""A trained run opened for use; nothing here imports weft.train. Read next: training.py; ../tasks/task.py."""

import json
from collections.abc import Collection, Sequence
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, overload

from torch import nn

from weft.config import Table, built, named, read_recipe
from weft.config.plugins import check_plugins
from weft.config.recipe import at
from weft.errors import CheckpointError, ConfigError, MissingSplitError, given_path
from weft.nn import devices
from weft.rooms import wrong_result
from weft.store import digests, run_directory, weights
from weft.store.files import is_file
from weft.tasks.evaluation import Evaluation
from weft.tasks.predictor import Predictor
from weft.tasks.task import EvaluationSettings, Pipeline, Split, Task


class LoadedRun(NamedTuple):
    """A trained model and what it needs."""

    task: Task
    pipeline: Pipeline
    model: nn.Module
    path: Path
    recipe: Table

    @property
    def name(self) -> str:
        """The name of the task, as recipes call it."""
        return str(self.recipe.value["task"].value)

    def evaluate(
        self, *, split: Split = "test", data: Path | None = None, settings: EvaluationSettings | None = None
    ) -> Evaluation:
        """Pipeline.evaluate, unless a model was trained on the split."""
        runs = [self, *getattr(settings, "ensemble", ())]
        seen = [one.path for one in runs if one.pipeline.refit] if data is None and split == "valid" else []
        if seen:
            raise ConfigError(
                f"--split valid: {seen[0]} was trained on the validation examples too (training.refit), so "
                f"their score would say nothing; weft show {seen[0]} prints the score of the model before, "
                f"and --data FILE scores other data{self._folds()}"
            )
        try:
            return self.pipeline.evaluate(self.model, split=split, data=data, settings=settings)
        except MissingSplitError as error:
            if not self.pipeline.refit:
                raise
            before = (
                f"weft show {self.path} prints the score of the model that had not seen the validation part"
            )
            raise ConfigError(f"{error.lack}; {before}{self._folds()}") from None

    def _folds(self) -> str:
        """How to score a recipe that holds nothing out for a test; empty if the task has no folds."""
        if "folds" not in signature(type(self.task).sections["data"]).parameters:
            return ""
        if any(at(self.recipe.plain(), ("data", part)) for part in ("test", "split_column", "corpus")):
            return ""
        return f"; weft folds {self.path / 'recipe.yaml'} data.folds=5 trains and tests every fifth in turn"


class Runs(NamedTuple):
    """Opens other runs for a task that depends on them, on the CPU."""

    plugins: Collection[str]

    def trained(self, run: Path) -> LoadedRun:
        """A trained run."""
        return open_run(run, device="cpu", plugins=self.plugins)

    def untrained(self, folder: Path) -> LoadedRun:
        """A run of which only the recipe and the vocabularies are there, with a new model."""
        if not is_file(folder / "recipe.yaml"):
            raise CheckpointError(f"{folder}: is missing or damaged; train the run again")
        run_directory.check_format(folder)
        recipe = read_recipe(folder / "recipe.yaml")
        task, _ = make_task(recipe, plugins=self.plugins)
        pipeline = task.open(folder)
        return LoadedRun(task, pipeline, weights.build(pipeline.model).eval(), folder, recipe)


def make_task(recipe: Table, *, plugins: Collection[str] = ()) -> tuple[Task, dict[str, Any]]:
    """The task that a recipe describes, and the recipe with every default; both without `training`."""
    kind, name = task_class(recipe, plugins), recipe.value["task"].value
    recipe.check_keys(["task", *kind.sections, "training"], owner=f"a recipe for the task {name}")
    made = {
        section: built(recipe.section(section, optional=True), target, plugins=plugins)
        for section, target in kind.sections.items()
    }
    sections = {section: one.value for section, one in made.items()}
    if kind.reads_runs:
        sections["runs"] = Runs(plugins)
    return kind(**sections), {"task": name} | {section: one.plain for section, one in made.items()}


def task_class(recipe: Table, plugins: Collection[str]) -> type[Task]:
    """The class of the task that a recipe names."""
    check_plugins(plugins)
    name = recipe.value.get("task")
    if name is None or not isinstance(name.value, str):
        raise recipe.refuse("expected a task, got none; add a line such as task: translate")
    found: type[Task] = named(name, Task, plugins=plugins)
    return found


def open_run(
    path: str | Path, *, device: str = "auto", plugins: Collection[str] = (), changes: Sequence[str] = ()
) -> LoadedRun:
    """The best model of a run, in evaluation mode.

    Args:
        path: the run directory, or one of the files in RUN/cycles.
        device: cpu, cuda or auto.
        plugins: packages whose parts the recipe may name.
        changes: section.key=value of the recipe, to use the run in another way than it says.

    Raises:
        ConfigError: a change that does not fit.
        CheckpointError: not a run directory, of another format, not yet trained, or damaged.

    Example:
        >>> open_run("runs/none")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        weft.errors.CheckpointError: runs/none: not a run directory ...
    """
    path, model_path = _places(given_path("load", path))
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
    run_directory.check_links(path)
    run_directory.check_format(path)
    recipe = read_recipe(path / "recipe.yaml", changes)
    task, _ = make_task(recipe, plugins=plugins)
    if not is_trained:
        raise CheckpointError(
            f"{path}: has no {model_path.relative_to(path)} yet; let `weft train` reach a first validation"
        )
    pipeline = task.open(path)
    if not isinstance(pipeline, Pipeline):
        raise wrong_result(task, "open", "a Pipeline", type(pipeline).__name__)
    if weights.refit_of(model_path) is not None:
        pipeline.belong_to_refit(path)
    stored, fits = weights.read(model_path)
    place = str(model_path)
    digests.check_kept(path, digests.kept_files(path, task.keeps), fits.kept, place)
    model = weights.build_for(pipeline.model, stored, place)
    weights.restore(model, stored, place)
    check_described(recipe.plain(), fits.recipe, place, path)
    model = model.to(devices.with_settings(devices.choose(device))).eval().requires_grad_(False)
    return LoadedRun(task, pipeline, model, path, recipe)


DESCRIBED = ("task", "model")
"""The sections of a recipe that describe the model, kept with its weights."""

FREE = ("dropout", "smoothing")
"""Words in the names of their settings that only training uses."""


def model_description(recipe: Any) -> Any:
    """What of a resolved recipe describes the model, as JSON, without paths: a project may move."""
    plain = json.loads(json.dumps({key: recipe[key] for key in DESCRIBED if key in recipe}, default=str))
    return _without_paths(plain)


def _without_paths(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_paths(one) for key, one in value.items() if not _is_path(one)}
    return value


def _is_path(value: Any) -> bool:
    """Whether a setting may be a path, or a list of them: a name of a part or a choice is a word."""
    values = value if isinstance(value, list) else [value]
    return any(isinstance(one, str) and not one.isidentifier() for one in values)


def check_described(now: Any, then: Any, place: str, run: Path, name: str = "") -> None:
    """Check that a recipe describes the model that was trained, also where shapes do not show it.

    Settings that only one of the two has are left out, so that other versions of Weft may have more of them.
    """
    if isinstance(now, dict) and isinstance(then, dict):
        for key in then:
            if key in now and not any(word in key for word in FREE):
                check_described(now[key], then[key], place, run, f"{name}.{key}" if name else key)
        return
    if now != then and not _is_path(now):
        raise CheckpointError(
            f"{place}: was trained with {name}: {json.dumps(then)}, but {run / 'recipe.yaml'} says "
            f"{json.dumps(now)}: one of the two is from another training; copy both from the same run"
        )


def _places(path: Path) -> tuple[Path, Path]:
    """The run directory, and the file with the weights."""
    if path.suffix == ".safetensors" and path.parent.name == weights.CYCLES:
        return path.parent.parent, path
    return path, path / "model.safetensors"


P = TypeVar("P", bound=Predictor[Any])


@overload
def load(path: str | Path, *, device: str = "auto", plugins: Collection[str] = ()) -> Predictor[Any]: ...


@overload
def load(path: str | Path, kind: type[P], *, device: str = "auto", plugins: Collection[str] = ()) -> P: ...


def load(
    path: str | Path,
    kind: type[Predictor[Any]] = Predictor,
    *,
    device: str = "auto",
    plugins: Collection[str] = (),
) -> Predictor[Any]:
    """A trained run, ready for use from Python.

    Args:
        path: the run directory, or one of the files in RUN/cycles.
        kind: the class that is expected, so that editors and type checkers know its methods; `weft.tasks` has
            one for each task, such as Translator, WordTagger or TextClassifier.
        device: cpu, cuda or auto.
        plugins: packages whose parts the recipe may name.

    Raises:
        ConfigError: the run is of a task with another class.
        CheckpointError: not a run directory, not yet trained, or damaged; see open_run.

    Example:
        translator = weft.load("runs/en-es")
        translator.predict("Click the button.")

        from weft.tasks import Translator
        translator = weft.load("runs/en-es", Translator)
    """
    opened = open_run(path, device=device, plugins=plugins)
    found = opened.pipeline.predictor(opened.model)
    if not isinstance(found, kind):
        raise ConfigError(
            f"{path}: expected a run that gives a {kind.__name__}, got one of the task {opened.name}, which "
            f"gives a {type(found).__name__}; give that class, or none"
        )
    found.origin = f"{opened.path}, {opened.name}: {opened.task.about()}"
    found.opened = opened
    return found
