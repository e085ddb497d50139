"""A run directory: what training leaves behind, and how it becomes a model again.

    RUN/recipe.yaml          the recipe with every default written out
    RUN/run.json             format and versions it was begun with
    RUN/tokenizer*.json      vocabularies
    RUN/model.safetensors    the best model
    RUN/checkpoints/         to go on from; RUN/checkpoints.json says which is best and last
    RUN/metrics.jsonl, RUN/tensorboard/, RUN/README.md (the model card)

Read next: train/checkpoints.py; commands/train.py.
"""

import importlib.util
import platform
import sys
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from weft import __version__, files, jsonfile
from weft.config import Table, build, dump, named, read_recipe, resolved
from weft.config.compared import at, difference
from weft.errors import CheckpointError, ConfigError
from weft.tasks.predictor import Predictor
from weft.tasks.task import Task
from weft.train import blueprint, claim, devices, weights
from weft.train.checkpoints import Checkpoints
from weft.train.settings import Settings

FORMAT = 1
FREE = ("training", "decoding")
"""Sections that may change when a run is resumed; data and model may not."""

KEPT = (("seed",), ("optimiser", "use"))
"""What of `training` may not change all the same: the checkpoints depend on it."""

WHERE = ("data", "folder")
"""Where the data lies may change: a project moves. Resuming sees whether as much of it is there."""


class _Written(jsonfile.Form):
    format: int
    weft: str = "of unknown version"


class Begun(NamedTuple):
    """A recipe that was checked, made into objects."""

    task: Task
    settings: Settings
    plain: dict[str, Any]  # the recipe with every default


class Opened(NamedTuple):
    """A trained model and what it needs."""

    task: Any  # a Task
    ready: Any  # a Ready
    model: nn.Module
    path: Path
    recipe: Table
    name: str  # of the task, as recipes call it


def check(recipe: Table, *, plugins: Collection[str] = ()) -> Begun:
    """Make the objects that a recipe describes, so that every mistake in it shows before any work starts.

    Raises:
        ConfigError: a mistake in the recipe, or a plugin that is nowhere to be found.
    """
    _find(plugins)
    name = recipe.value.get("task")
    if name is None or not isinstance(name.value, str):
        raise recipe.refuse("a recipe begins with the task, for example task: translate")
    kind: Any = named(name, Task, plugins=plugins)
    recipe.check_keys(["task", *kind.sections, "training"])
    parts: dict[str, Any] = {}
    plain: dict[str, Any] = {"task": name.value}
    for section, target in {**kind.sections, "training": Settings}.items():
        table = recipe.section(section, optional=True)
        parts[section] = build(table, target, plugins=plugins)
        plain[section] = resolved(table, target, plugins=plugins)
    settings = parts.pop("training")
    if "loss" not in kind.better and "metric" not in (recipe.section("training", optional=True).value or {}):
        settings = replace(settings, metric=next(iter(kind.better)))
        plain["training"]["metric"] = settings.metric
    if settings.metrics and not kind.evaluation.compares:
        wrong = recipe.section("training").value["metrics"]
        raise wrong.refuse(f"the task {name.value} compares no texts with references; leave it out")
    better = settings.better(kind.better)
    if settings.metric not in better:
        metric = recipe.section("training").value["metric"] if settings.metric != Settings.metric else recipe
        raise metric.refuse(f"expected one of {', '.join(better)}, got {settings.metric!r}")
    task = kind(**parts)
    task.trained = lambda run: open_run(run, device="cpu", plugins=plugins)
    task.untrained = lambda run: _untrained(run, plugins)
    return Begun(task, settings, plain)


def begin(path: Path, recipe: Table, *, plugins: Collection[str] = ()) -> Begun:
    """Make the run directory, or see that the recipe is the one it was begun with.

    A run that has no checkpoint yet takes a changed recipe and begins anew, so that a mistake which shows
    only when the data is read can be mended in place.

    Raises:
        ConfigError: data or model differ from those of the run, or the device is not there.
        DataError: data files are missing.
        CheckpointError: it is of another format, or cannot be written, or another process trains it.
    """
    begun = check(recipe, plugins=plugins)
    devices.choose(begun.settings.device)
    try:
        begun.task.check_ready()
    except ConfigError as error:
        section, _, sentence = str(error).partition(": ")
        if section not in recipe:
            raise
        raise recipe.section(section).refuse(sentence) from error
    try:
        if path.is_dir() and not (path / "recipe.yaml").exists() and any(map(_foreign, path.iterdir())):
            raise ConfigError(f"{path}: is not empty and no run directory; choose another one with --run")
        claim.alone(path)
        with claim.claim(path):
            if (path / "recipe.yaml").exists():
                _check_format(path)
                _go_on(path, begun, _begun_with(path, plugins))
            else:
                versions = {"format": FORMAT, "weft": __version__, "torch": torch.__version__}
                about = {**versions, "python": platform.python_version(), "threads": torch.get_num_threads()}
                files.replace(path / "run.json", files.to_json(about))
            if begun.settings.start is not None and not Checkpoints(path, print).updates():
                _start_from(begun.settings.start, path, begun.task)
            files.replace(path / "recipe.yaml", dump(begun.plain).encode())
    except OSError as error:
        raise CheckpointError(
            f"{path}: cannot be written ({error.strerror or error}); choose another directory with --run"
        ) from error
    return begun


def _start_from(old: Path, path: Path, task: Task) -> None:
    """Give a new run the weights of another one, and what the task keeps there, such as vocabularies.

    Raises:
        CheckpointError: that is no run directory, or not yet trained.
    """
    model = old / "model.safetensors"
    if not (old / "recipe.yaml").is_file() or not model.is_file():
        raise CheckpointError(
            f"training.start: expected a trained run, got {old}; train it first, or leave start out"
        )
    claim.alone(old)
    for kept in _kept(old, task):
        files.replace(path / kept.name, kept.read_bytes())
    files.replace(path / weights.START, model.read_bytes())


def _kept(path: Path, task: Task) -> list[Path]:
    """The files of a run that its task made ready."""
    return [found for pattern in task.keeps for found in path.glob(pattern)]


def _foreign(path: Path) -> bool:
    """Whether this in a directory without a recipe.yaml is another's; run.json alone was written first."""
    return not path.name.startswith(".") and path.name != "run.json"


def _find(plugins: Collection[str]) -> None:
    """See that the user's packages are there; the working directory is looked at last."""
    for name in plugins:
        if "" not in sys.path and str(Path.cwd()) not in sys.path:
            sys.path.append(str(Path.cwd()))
        try:
            found = importlib.util.find_spec(name.partition(".")[0])
        except (ImportError, ValueError):
            found = None
        if found is None:
            raise ConfigError(
                f"--plugin {name}: no package of that name can be imported; "
                "install it, or start weft in the directory that holds it"
            )


def open_run(
    path: str | Path, *, device: str = "auto", plugins: Collection[str] = (), changes: Sequence[str] = ()
) -> Opened:
    """The best model of a run, in evaluation mode.

    Args:
        path: the run directory.
        device: cpu, cuda or auto.
        plugins: packages whose parts the recipe may name.
        changes: section.key=value of the recipe, to use the run in another way than it says.

    Raises:
        ConfigError: a change that does not fit.
        CheckpointError: it is no run directory, of another format, not yet trained, or damaged.
    """
    path = Path(path)
    try:
        is_run, is_trained = (path / "recipe.yaml").is_file(), (path / "model.safetensors").is_file()
    except OSError as error:
        raise CheckpointError(
            f"{path}: cannot be read ({error.strerror or error}); check its permissions"
        ) from error
    if not is_run:
        raise CheckpointError(f"{path}: not a run directory (it has no recipe.yaml); train one first")
    claim.alone(path)
    _check_format(path)
    recipe = read_recipe(path / "recipe.yaml", changes)
    begun = check(recipe, plugins=plugins)
    if not is_trained:
        raise CheckpointError(
            f"{path}: has no model.safetensors yet; let `weft train` reach a first validation"
        )
    ready = begun.task.open(path)
    stored, place = weights.load(path / "model.safetensors"), str(path / "model.safetensors")
    model = blueprint.build_for(ready.model, stored, place)
    weights.restore(model, stored, place)
    model = model.to(devices.choose(device)).eval().requires_grad_(False)
    return Opened(begun.task, ready, model, path, recipe, str(recipe.value["task"].value))


def _untrained(path: Path, plugins: Collection[str]) -> Opened:
    """A run whose weights are not there: recipe and vocabularies alone, and a new model."""
    if not (path / "recipe.yaml").is_file():
        raise CheckpointError(f"{path}: is missing or damaged; train the run anew")
    _check_format(path)
    recipe = read_recipe(path / "recipe.yaml")
    task = check(recipe, plugins=plugins).task
    ready = task.open(path)
    return Opened(
        task, ready, blueprint.build(ready.model).eval(), path, recipe, str(recipe.value["task"].value)
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
    return opened.ready.predictor(opened.model)


def _check_format(path: Path) -> None:
    remedy = "restore it from a copy, or train anew with another --run"
    about = jsonfile.load(path / "run.json", _Written, remedy)
    if about.format != FORMAT:
        raise CheckpointError(
            f"{path}: was written in format {about.format} by weft {about.weft}, and weft {__version__} "
            f"reads format {FORMAT}; use that version, or train anew with another --run"
        )


def _begun_with(path: Path, plugins: Collection[str]) -> dict[str, Any]:
    """The recipe of a run; a setting that came with a later version of Weft has its default."""
    recipe = read_recipe(path / "recipe.yaml")
    try:
        return check(recipe, plugins=plugins).plain
    except ConfigError:  # a setting that is gone, or damaged by hand
        return recipe.plain()  # type: ignore[no-any-return]


def _go_on(path: Path, begun: Begun, old: dict[str, Any]) -> None:
    """See that a recipe fits the run; one that has no checkpoint yet fits any."""
    plain = begun.plain
    if isinstance(old.get(WHERE[0]), dict) and Checkpoints(path, print).updates():
        old[WHERE[0]][WHERE[1]] = at(plain, WHERE)
    if at(old, ("training", "start")) and not Checkpoints(path, print).updates():
        for taken_over in [path / weights.START, *_kept(path, begun.task)]:
            taken_over.unlink(missing_ok=True)
    fixed = [((section,), "a run keeps its data and its model") for section in plain if section not in FREE]
    fixed += [(("training", *keys), "a run keeps its seed and its optimiser") for keys in KEPT]
    for keys, reason in fixed:
        changed = difference(at(old, keys), at(plain, keys), ".".join(keys))
        if changed and Checkpoints(path, print).updates():
            raise ConfigError(
                f"{path}: this run was begun with {changed}; {reason}, "
                "so train the new recipe with another --run"
            )
        if changed and (path / weights.START).exists():
            if keys == ("model",):
                raise ConfigError(
                    f"{path}: this run was imported with {changed}; train another model with another --run"
                )
        elif changed:
            for made in _kept(path, begun.task):
                made.unlink()
