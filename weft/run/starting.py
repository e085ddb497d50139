"""What `training.start: runs/bert` means for a recipe of another task: its encoder becomes the model's.

The recipe gets the settings of that encoder and `training.start_parts`; the new run is one like any other.
Read next: ../tasks/reused.py; training.py, which takes the weights; ../train/transfer.py.
"""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from weft.config import Table, read_recipe
from weft.config.recipe import at, changed
from weft.errors import ConfigError
from weft.run.loading import task_class
from weft.store import files
from weft.tasks.reused import ReusedEncoder

START = "training.start"


def with_start(recipe: Table, plugins: Collection[str], begun: Path | None = None) -> Table:
    """The recipe with what its `training.start` implies; unchanged if that is nothing.

    Args:
        begun: the directory of the run, whose own recipe knows it if the other run is gone.

    Raises:
        ConfigError: the other run has no encoder for this task, or the recipe names another one.
    """
    plain = recipe.plain()
    start, task = at(plain, ("training", "start")), plain.get("task")
    if not isinstance(start, str) or at(plain, ("training", "start_parts")):
        return recipe
    source, kind = Path(start) / "recipe.yaml", task_class(recipe, plugins)
    if not files.is_file(source):
        own = begun and begun / "recipe.yaml"
        then = read_recipe(own).plain() if own and files.is_file(own) else {}
        known = at(then, ("training", "start")) == start and kind.started(ReusedEncoder({}, 1, "none"))
        found = {key: at(then, tuple(key.split("."))) for key in known or ()}
    else:
        other = read_recipe(source)
        there = other.plain()
        if there.get("task") == task:
            return recipe
        reused = task_class(other, plugins).encoder_of(there)
        if reused is None or (wanted := kind.started(reused)) is None:
            which = f"{start}, a run of the task {there.get('task')}, which has no encoder for others"
            which = which if reused is None else f"{start}: the task {task} cannot start with its encoder"
            raise ConfigError(
                f"{START}: expected a run of the same task, or one with an encoder over tokens, such as a "
                f"masked or language model, got {which}; name another run, or parts in {START}_parts"
            )
        found = dict(wanted)
    for key, value in found.items():
        recipe = _with(recipe, key, value, start)
    return recipe


def _with(recipe: Table, key: str, value: Any, start: str) -> Table:
    """The recipe with one setting of the other run; what the recipe says of it itself must agree."""
    section, *keys = key.split(".")
    entry = recipe.value.get(section)
    for name in keys:
        entry = entry.value.get(name) if isinstance(entry, Table) else None
    given = None if entry is None else entry.plain()
    if given and key != "training.start_parts":
        assert entry is not None
        settings = {"use": given} if isinstance(value, Mapping) and isinstance(given, str) else given
        wrong = _difference(settings, value)
        if wrong is not None:
            raise entry.refuse(
                f"expected {wrong[1]}, as in {start} ({START}), got {wrong[0]}; leave {key} out"
            )
        value = {**value, **settings} if isinstance(value, Mapping) else value
    return recipe if value is None else changed(recipe, f"{key}={json.dumps(value)}")


def _difference(given: Any, value: Any) -> tuple[str, str] | None:
    """What a recipe says and what it should say; settings of dropout may differ."""
    if isinstance(value, Mapping) and isinstance(given, Mapping):
        for name in given:
            if "dropout" not in name and (found := _difference(given[name], value.get(name))):
                return (f"{name}: {found[0]}", f"{name}: {found[1]}")
        return None
    if isinstance(value, Mapping):
        value = value.get("use")
    return None if given == value else (json.dumps(given), "nothing" if value is None else json.dumps(value))
