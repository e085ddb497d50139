"""A run directory: what training leaves behind, and how it becomes a model again.

    RUN/recipe.yaml          the recipe with every default written out
    RUN/run.json             format and versions it was begun with
    RUN/tokenizer*.json      vocabularies
    RUN/model.safetensors    the best model
    RUN/checkpoints/         to go on from; RUN/checkpoints.json says which is best and last
    RUN/metrics.jsonl, RUN/tensorboard/, RUN/README.md (the model card)

Read next: train/checkpoints.py; commands/train.py.
"""

import json
import platform
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

import weft.tasks
from weft import __version__, rooms
from weft.config import Table, build, dump, read_recipe, resolved
from weft.errors import CheckpointError, ConfigError
from weft.tasks.task import Task
from weft.train import devices, files, weights
from weft.train.settings import Settings

FORMAT = 1
FREE = ("training", "decoding")
"""Sections that may change when a run goes on; data and model may not."""


class Begun(NamedTuple):
    """A recipe that was checked, made into objects."""

    task: Task
    settings: Settings
    plain: dict[str, Any]  # the recipe with every default


class Opened(NamedTuple):
    """A trained model and what it needs."""

    task: Any
    model: nn.Module
    path: Path
    recipe: Table


def check(recipe: Table, *, plugins: Collection[str] = ()) -> Begun:
    """Make the objects that a recipe describes, so that every mistake in it shows before any work starts."""
    name = recipe.value.get("task")
    if name is None or not isinstance(name.value, str):
        raise recipe.refuse("a recipe begins with the task, for example task: translate")
    try:
        kind: Any = rooms.find(weft.tasks, Task, name.value)
    except ConfigError as error:
        raise name.refuse(str(error)) from None
    recipe.check_keys(["task", *kind.sections, "training"])
    parts: dict[str, Any] = {}
    plain: dict[str, Any] = {"task": name.value}
    for section, target in {**kind.sections, "training": Settings}.items():
        table = recipe.section(section, optional=True)
        parts[section] = build(table, target, plugins=plugins)
        plain[section] = resolved(table, target, plugins=plugins)
    settings = parts.pop("training")
    return Begun(kind(**parts), settings, plain)


def begin(path: Path, recipe: Table, *, plugins: Collection[str] = ()) -> Begun:
    """Make the run directory, or see that the recipe is the one it was begun with.

    Raises:
        ConfigError: data or model differ from those of the run.
        CheckpointError: it is of another format, or cannot be written.
    """
    begun = check(recipe, plugins=plugins)
    try:
        path.mkdir(parents=True, exist_ok=True)
        if (path / "recipe.yaml").exists():
            _check_format(path)
            _check_same(path, begun.plain)
        elif any(not child.name.startswith(".") for child in path.iterdir()):
            raise ConfigError(f"{path}: is not empty and no run directory; choose another one with --run")
        else:
            versions = {"format": FORMAT, "weft": __version__, "torch": torch.__version__}
            about = {**versions, "python": platform.python_version(), "threads": torch.get_num_threads()}
            files.replace(path / "run.json", files.to_json(about))
        files.replace(path / "recipe.yaml", dump(begun.plain).encode())
    except OSError as error:
        raise CheckpointError(
            f"{path}: cannot be written ({error.strerror or error}); choose another directory with --run"
        ) from error
    return begun


def open_run(path: str | Path, *, device: str = "auto", plugins: Collection[str] = ()) -> Opened:
    """The best model of a run, in evaluation mode.

    Args:
        path: the run directory.
        device: cpu, cuda or auto.
        plugins: packages whose parts the recipe may name.

    Raises:
        CheckpointError: it is no run directory, of another format, not yet trained, or damaged.
    """
    path = Path(path)
    if not (path / "recipe.yaml").is_file():
        raise CheckpointError(f"{path}: is no run directory (there is no recipe.yaml in it); train one first")
    _check_format(path)
    recipe = read_recipe(path / "recipe.yaml")
    begun = check(recipe, plugins=plugins)
    if not (path / "model.safetensors").is_file():
        raise CheckpointError(
            f"{path}: has no model.safetensors yet; let `weft train` reach a first validation"
        )
    begun.task.open(path)
    model = begun.task.model()
    weights.restore(model, weights.load(path / "model.safetensors"), str(path / "model.safetensors"))
    model = model.to(devices.choose(device)).eval().requires_grad_(False)
    return Opened(begun.task, model, path, recipe)


def load(path: str | Path, *, device: str = "auto") -> Any:
    """A trained run, ready for use from Python.

    Example:
        translator = weft.load("runs/en-es")
        translator.predict("Click the button.")
    """
    opened = open_run(path, device=device)
    return opened.task.predictor(opened.model)


def _check_format(path: Path) -> None:
    try:
        about = json.loads((path / "run.json").read_text("utf-8"))
        written = about["format"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"{path / 'run.json'}: is missing or damaged ({error}); is this a run of weft?"
        ) from None
    if written != FORMAT:
        raise CheckpointError(
            f"{path}: was written in format {written} by weft {about.get('weft')}, and weft {__version__} "
            f"reads format {FORMAT}; use that version, or train anew with another --run"
        )


def _check_same(path: Path, plain: dict[str, Any]) -> None:
    old = read_recipe(path / "recipe.yaml").plain()
    for section in plain:
        if section in FREE:
            continue
        difference = _difference(old.get(section), plain[section], section)
        if difference:
            raise ConfigError(
                f"{path}: this run was begun with {difference}; a run keeps its data and its model, "
                "so train the new recipe with another --run"
            )


def _difference(old: Any, new: Any, name: str) -> str:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in {**old, **new}:
            found = _difference(old.get(key), new.get(key), f"{name}.{key}")
            if found:
                return found
        return ""
    return "" if old == new else f"{name}: {old}, the recipe says {new}"
