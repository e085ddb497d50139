"""The settings that a search changes: read from a file, proposed by Optuna, written as overrides.

Read next: ../tasks/space.py, what a task declares; study.py.
"""

import itertools
import json
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from weft.config import build, dump, read_recipe
from weft.config.recipe import at
from weft.errors import ConfigError
from weft.tasks.space import Range

FIXED = {
    "training": ("metric", "seed"),
    "data": (
        *("valid", "test", "folder", "corpus", "source", "target", "label", "labels", "column", "horizon"),
        *("hold_out", "split_seed", "split_column", "folds", "fold", "group", "time"),
    ),
}
"""Settings whose values cannot be compared: another score, or scored on other examples."""

LAYERS = ".layers"
"""Ending of the parameter that counts the layers of a list."""


def read_space(path: Path) -> dict[str, Range]:
    """The space in a YAML file: each setting's name, and the arguments of its Range or a list of values."""
    if not path.is_file():
        raise ConfigError(f"--space {path}: no such file; name one with settings to search, or leave it out")
    space = {}
    for name, entry in read_recipe(path, holds="settings and their ranges").value.items():
        section, _, key = name.partition(".")
        if key in FIXED.get(section, ()):
            raise entry.refuse(
                "trials that differ in this setting cannot be compared by their score; leave it out"
            )
        if isinstance(entry.value, list):
            if not entry.value:
                raise entry.refuse("expected at least 1 value, got none")
            space[name] = Range(values=tuple(entry.plain()))
        else:
            space[name] = build(entry, Range)
    if not space:
        raise ConfigError(f"{path}: expected at least 1 setting, such as training.optimiser.lr, got none")
    for name, one in space.items():
        if one.unless and one.unless not in space:
            raise ConfigError(
                f"{path}: {name}: unless: expected another setting of this file, got {one.unless!r}"
            )
    return space


def around(space: Mapping[str, Range], recipe: Mapping[str, Any]) -> dict[str, Range]:
    """The space, widened where needed so that it contains the recipe's own values."""
    return {name: _widened(one, at(recipe, tuple(name.split(".")))) for name, one in space.items()}


def own(space: Mapping[str, Range], recipe: Mapping[str, Any]) -> dict[str, Any]:
    """The recipe's values as parameters of a trial."""
    found: dict[str, Any] = {}
    for name, one in space.items():
        value = at(recipe, tuple(name.split(".")))
        if one.values:
            found[name] = next((written(each) for each in one.values if _same(each, value)), None)
        elif one.layers and isinstance(value, list):
            found |= {name: value[0], name + LAYERS: len(value)}
        else:
            found[name] = value
    return found


def proposed(trial: Any, space: Mapping[str, Range]) -> dict[str, Any]:
    """The parameters that Optuna proposes for a trial."""
    found: dict[str, Any] = {}
    for name, one in space.items():
        if one.values:
            found[name] = trial.suggest_categorical(name, [written(value) for value in one.values])
        elif one.whole:
            step = {} if one.log else {"step": max(1, int(one.step))}
            found[name] = trial.suggest_int(name, one.low, one.high, log=one.log, **step)
        else:
            found[name] = trial.suggest_float(name, one.low, one.high, log=one.log, step=one.step or None)
        if one.layers:
            found[name + LAYERS] = trial.suggest_int(name + LAYERS, 1, one.layers)
    return found


def changes(space: Mapping[str, Range], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that parameters stand for; a number has three digits."""
    found: dict[str, Any] = {}
    for name, one in space.items():
        value = parameters[name]
        if one.values:
            value = next(each for each in one.values if written(each) == value)
        elif not one.whole:
            value = float(f"{value:.3g}")
        if one.layers:
            value = [value] * parameters[name + LAYERS]
        found |= dict.fromkeys((name, *one.also), value)
    off = [(name, *one.also) for name, one in space.items() if found.get(one.unless)]
    return found | dict.fromkeys(itertools.chain(*off), 0)


def overrides(settings: Mapping[str, Any]) -> list[str]:
    """Settings as overrides of the command line."""
    return [f"{name}={written(value)}" for name, value in settings.items()]


def corners(space: Mapping[str, Range], recipe: Mapping[str, Any]) -> list[dict[str, Any]]:
    """For each setting its extremes, everything else as in the recipe: what to check before a search."""
    found = []
    for name, one in space.items():
        if at(recipe, tuple(one.unless.split("."))):
            continue
        for value in one.values or (one.low, one.high):
            plain = [value] * max(1, one.layers) if one.layers else value
            found.append(dict.fromkeys((name, *one.also), plain))
    return found


def written(value: Any) -> str:
    """A value in YAML, on one line.

    Example:
        >>> written([7, 7]), written({"use": "queries"}), written("1e-3"), written(None)
        ('[7, 7]', '{"use": "queries"}', '"1e-3"', 'null')
    """
    return json.dumps(value) if isinstance(value, dict) else dump(value).strip()


def as_json(space: Mapping[str, Range]) -> dict[str, dict[str, Any]]:
    """The space as plain data, to compare it with the one that a study was begun with."""
    plain: dict[str, dict[str, Any]] = {}
    for name, one in space.items():
        values = {each.name: getattr(one, each.name) for each in fields(one)}
        plain[name] = {key: list(v) if isinstance(v, tuple) else v for key, v in values.items()}
    return plain


def _widened(one: Range, value: Any) -> Range:
    """The range with the recipe's value on its grid."""
    if one.values:
        known = any(_same(each, value) for each in one.values)
        return one if known else replace(one, values=(value, *one.values))
    layers = one.layers
    if layers and isinstance(value, list):
        layers, value = max(layers, len(value)), value[0]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return one
    assert one.low is not None and one.high is not None
    low, high = min(one.low, value), max(one.high, value)
    if one.log and not low > 0:
        low = one.low
    if one.step:
        low = value - (value - low) // one.step * one.step
        high = low + (high - low) // one.step * one.step
    return replace(one, low=low, high=high, layers=layers)


def _same(value: Any, own: Any) -> bool:
    """Whether a value means what a recipe with all its defaults says: mean, and {use: mean}."""
    if isinstance(own, dict) and isinstance(value, str):
        return own.get("use") == value
    if isinstance(own, dict) and isinstance(value, dict):
        return all(_same(one, own.get(name)) for name, one in value.items())
    return bool(value == own)
