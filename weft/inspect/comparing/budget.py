"""Equal budgets: the end that every variant gets, the width that fits a number of parameters, what was spent.

Read next: tables.py, the variants; measured.py, where the spent numbers come from.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from weft.config import Table, dump, read_recipe
from weft.errors import ConfigError, ShapeError
from weft.inspect.comparing.measured import RunFacts
from weft.inspect.comparing.variants import QUANTITIES
from weft.run.loading import make_task
from weft.run.training import begin_run
from weft.store import files, jsonfile, weights
from weft.tasks.space import flat
from weft.tasks.task import silent

ENDS = {
    "updates": "max_updates",
    "tokens": "max_tokens",
    "cpu-minutes": "max_cpu_minutes",
}
"""The setting of `training` by the name of its budget."""

PARAMETERS = "parameters"
NAMES = (*ENDS, PARAMETERS)
UNITS = {"k": 1e3, "M": 1e6, "G": 1e9}
WIDTHS = ("sizes", "size", "inner", "network", "features")
"""Last names of the settings that make a model wider; those of the embedding stay as they are."""

STEP = 8  # what the widths of a model with heads are multiples of, so that they divide them


class Budget(NamedTuple):
    """What every variant may use."""

    end: tuple[str, float] | None = None  # name and size of the budget; None for the recipe's own end
    parameters: int = 0  # maximum; 0 for the sizes of the recipe

    @property
    def changes(self) -> tuple[str, ...]:
        """The end as overrides of a recipe; its other ends are switched off."""
        if self.end is None:
            return ()
        name, size = self.end
        others = [
            *(one for one in ENDS.values() if one != ENDS[name]),
            "max_epochs",
            "max_minutes",
            "patience",
        ]
        whole = f"{size:g}" if name == "cpu-minutes" else f"{size:.0f}"
        return (*(f"training.{one}=0" for one in others), f"training.{ENDS[name]}={whole}")

    def __str__(self) -> str:
        """For example: 500 updates, at most 30,000 parameters."""
        parts = [f"{self.end[1]:,g} {self.end[0].replace('cpu-', 'CPU ')}"] if self.end else []
        parts += [f"at most {self.parameters:,} parameters"] if self.parameters else []
        return ", ".join(parts)


def budget(given: Sequence[str]) -> Budget:
    """The budget of the options --budget NAME=SIZE.

    Example:
        >>> str(budget(["updates=500", "parameters=30k"]))
        '500 updates, at most 30,000 parameters'
    """
    found: dict[str, float] = {}
    for one in given:
        name, _, text = one.partition("=")
        unit = UNITS.get(text[-1:], 1.0)
        try:
            size = float(text[:-1] if text[-1:] in UNITS else text) * unit
        except ValueError:
            size = 0.0
        if name not in NAMES or not 0 < size < 1e15:
            raise ConfigError(
                f"--budget {one}: expected {', '.join(NAMES[:-1])} or {NAMES[-1]}, and how many of them, "
                "such as updates=1000 or tokens=2M"
            )
        if name in found:
            raise ConfigError(f"--budget {one}: expected each kind once; leave one out")
        found[name] = size
    ends = [name for name in found if name != PARAMETERS]
    if len(ends) > 1:
        raise ConfigError(
            f"--budget: expected one end of the training, got {' and '.join(ends)}; leave one out"
        )
    return Budget((ends[0], found[ends[0]]) if ends else None, int(found.get(PARAMETERS, 0)))


class Widths(jsonfile.Schema):
    """The settings that were found for each variant, by a digest of its recipe and the budget."""

    found: dict[str, list[str]] = jsonfile.field(default_factory=dict)


def fitted(
    recipe: Path, changes: Sequence[str], most: int, folder: Path, plugins: Collection[str]
) -> list[str]:
    """The overrides that give a variant its widest model with at most that many parameters.

    All widths of the encoder and the decoder are scaled by one factor. The vocabulary is that of the training
    data, which is read for it once.
    """
    table = read_recipe(recipe, changes)
    key = hashlib.sha256(f"{dump(table.plain())}\n{most}".encode("utf-8", "replace")).hexdigest()[:16]
    place = folder / "widths.json"
    kept = jsonfile.load(place, Widths, "remove it") if files.is_file(place) else Widths()
    if key not in kept.found:
        kept.found[key] = _widest(recipe, changes, most, folder / f"width-{key}", plugins)
        files.replace(place, files.to_json(jsonfile.plain(kept)))
    return kept.found[key]


def _widest(
    recipe: Path, changes: Sequence[str], most: int, folder: Path, plugins: Collection[str]
) -> list[str]:
    checked = begin_run(folder, read_recipe(recipe, changes), plugins=plugins)
    checked.task.prepare(folder, silent)
    widths = _widths(checked.plain["model"])
    if not widths:
        raise ConfigError(f"--budget parameters: {recipe} has no width to change; leave it out")

    def count(factor: float) -> float:
        """Number of parameters; infinite if the parts do not fit together at this width."""
        try:
            table: Table = read_recipe(recipe, [*changes, *_scaled(widths, factor, step)])
            model = weights.build(make_task(table, plugins=plugins)[0].open(folder).model)
        except (ConfigError, ShapeError):
            return float("inf")
        return sum(one.numel() for one in model.parameters())

    step = STEP if any(name.endswith("num_heads") for name, _ in flat(checked.plain["model"])) else 1
    low, high = step / max(max(_numbers(size)) for size in widths.values()), 64.0
    if count(low) > most:
        raise ConfigError(
            f"--budget parameters={most:,}: {' '.join(changes) or recipe} has {count(low):,.0f} "
            "parameters at its smallest width; give a larger number"
        )
    for _ in range(12):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if count(middle) <= most else (low, middle)
    return _scaled(widths, low, step)


def _numbers(size: int | list[int]) -> list[int]:
    return size if isinstance(size, list) else [size]


def _widths(model: Mapping[str, Any]) -> dict[str, int | list[int]]:
    """The widths of a model's parts, by the name of the setting."""
    found = {}
    for name, value in flat(model, "model"):
        *parts, last = name.split(".")
        whole = value and all(type(one) is int and one > 0 for one in _numbers(value))
        if last in WIDTHS and whole and not any("embedding" in part for part in parts):
            found[name] = value
    return found


def _scaled(widths: Mapping[str, int | list[int]], factor: float, step: int) -> list[str]:
    def scaled(size: int) -> int:
        return max(step, step * round(size * factor / step))

    return [
        f"{name}={[scaled(one) for one in size] if isinstance(size, list) else scaled(size)}"
        for name, size in widths.items()
    ]


SPENT = ("updates", "target tokens", "CPU minutes", PARAMETERS)
"""What may be equal in a comparison."""


def spent(runs: Sequence[RunFacts]) -> str:
    """What the runs spent, and in what they are equal: within 1 %, or 5 % of the parameters.

    Example of the answer: "Equal: 500 updates. Not equal: 5,012 to 6,100 target tokens."
    """
    equal: list[str] = []
    other: list[str] = []
    for name in SPENT:
        value, form, _ = QUANTITIES[name]
        known = [one for run in runs if (one := value(run)) is not None]
        if not known:
            continue
        low, high = min(known), max(known)
        close = high <= low * (1.05 if name == PARAMETERS else 1.01)
        shown = f"{low:{form}}" if f"{low:{form}}" == f"{high:{form}}" else f"{low:{form}} to {high:{form}}"
        (equal if close else other).append(f"{shown} {name}")
    parts = [f"Equal: {', '.join(equal)}."] if equal else []
    return " ".join([*parts, *([f"Not equal: {', '.join(other)}."] if other else [])])
