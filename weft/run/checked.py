"""A recipe made into objects, so that every mistake in it shows before any work starts.

Read next: ../config/build.py, which makes each section; opened.py.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Any, NamedTuple

from weft.config import Table, build, named, resolved
from weft.config.plugins import find
from weft.tasks.task import Task
from weft.train.settings import Settings


class Begun(NamedTuple):
    """A recipe that was checked, made into objects."""

    task: Task
    settings: Settings
    plain: dict[str, Any]  # the recipe with every default
    note: str = ""  # what the user should know before training


def checked(recipe: Table, plugins: Collection[str]) -> Begun:
    """Make the objects that a recipe describes, so that every mistake in it shows before any work starts.

    Raises:
        ConfigError: a mistake in the recipe, or a plugin that is nowhere to be found.
    """
    kind: Any = task_of(recipe, plugins)
    name = recipe.value["task"]
    recipe.check_keys(["task", *kind.sections, "training"], owner=f"a recipe for the task {name.value}")
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
    return Begun(kind(**parts), settings, plain)


def task_of(recipe: Table, plugins: Collection[str]) -> type[Task]:
    """The class of the task that a recipe names.

    Raises:
        ConfigError: it names none, or a plugin is nowhere to be found.
    """
    find(plugins)
    name = recipe.value.get("task")
    if name is None or not isinstance(name.value, str):
        raise recipe.refuse("expected a task, got none; add a line such as task: translate")
    found: type[Task] = named(name, Task, plugins=plugins)
    return found
