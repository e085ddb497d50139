"""What is searched: a recipe, its space, its score, and the limits of the search. Read next: study.py."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from weft.config import Table, dump, parse, read_recipe
from weft.config.recipe import at, difference, find_recipe
from weft.errors import ConfigError
from weft.run.training import check_recipe, with_defaults
from weft.store import files, jsonfile
from weft.tasks.space import PER_TOKEN, Range
from weft.tune import space as spaces

QUIET = ("training.tensorboard=false", "training.monitors=false")
"""What no trial needs."""

DECODING = "decoding."
"""Begins the names of settings that change a trained model's answers."""

VOCABULARY = "data.vocabulary."
RANDOM = (f"{VOCABULARY}dropout", f"{VOCABULARY}alpha")
"""Settings of the vocabulary that change no validation text."""

TEST = ("data", "test")
"""The setting that names test files; no trial gets it, so that not even their first line is read."""


class SearchPlan(NamedTuple):
    """A search that was checked."""

    recipe: Path
    given: Sequence[str]  # the user's overrides
    space: dict[str, Range]  # the settings to change
    plain: dict[str, Any]  # the recipe with every default
    metric: str  # the score that is searched for, on the validation data
    higher: bool  # whether higher is better
    folder: Path  # of the study
    trial_minutes: float  # CPU minutes of a trial; 0 for what the recipe says
    plugins: Collection[str]  # packages that the recipe may name
    decoding: Mapping[str, Range] = MappingProxyType({})  # tried on the best trial's model, without training

    def table(self, settings: dict[str, Any], *more: str, tested: bool = False) -> Table:
        """The recipe of a trial with these settings; without test data unless `tested`."""
        hidden = [] if tested else self.hidden()
        changes = [*self.given, *self.limits(), *hidden, *spaces.overrides(settings), *more]
        return read_recipe(self.recipe, changes)

    def hidden(self) -> list[str]:
        """The test files left out, as overrides."""
        return [".".join(TEST) + "=null"] if isinstance(at(self.plain, TEST), str) else []

    def limits(self) -> list[str]:
        """The end of a trial, as overrides."""
        if not self.trial_minutes:
            return []
        ends = ("max_updates", "max_epochs", "max_tokens", "max_minutes")
        return [*(f"training.{name}=0" for name in ends), f"training.max_cpu_minutes={self.trial_minutes}"]

    def trial(self, number: int) -> Path:
        """The run directory of a trial."""
        return self.folder / "trials" / f"{number:04}"

    def retrained(self, number: int, seed: int) -> Path:
        """The run directory of a trial that is trained again."""
        return self.folder / "retrained" / f"{number:04}" / f"seed-{seed}"

    def doubt(self) -> str:
        """Why the scores of trials may not be comparable; "" if they are."""
        names = [name for one, found in self.space.items() for name in (one, *found.also)]
        changed = [name for name in names if name.startswith(VOCABULARY) and name not in RANDOM]
        if not changed or self.metric not in PER_TOKEN:
            return ""
        return (
            f"{changed[0]} is searched by {self.metric}: if that is per token, settings that cut texts into "
            "more tokens look better than they are; use a score of the output, such as bleu, or leave it out"
        )

    def better(self, one: float, other: float) -> bool:
        """Whether a score beats another."""
        return one > other if self.higher else one < other


def plan(
    recipe: Path,
    given: Sequence[str],
    folder: Path,
    *,
    space: Path | None = None,
    trial_minutes: float = 0.0,
    plugins: Collection[str] = (),
) -> SearchPlan:
    """Check a recipe and a space, each end of each range included."""
    found = find_recipe(recipe)
    given = [*found.overrides, *given]
    bare = SearchPlan(found.path, given, {}, {}, "", False, folder, trial_minutes, plugins)
    checked = check_recipe(bare.table({}), plugins=plugins)
    if checked.settings.scale == "gpu":  # a trial's numbers are those it trains with, not to be scaled again
        bare = bare._replace(given=[*given, *checked.scaled, "training.scale=cpu"])
        checked = check_recipe(bare.table({}), plugins=plugins)
    chosen = checked.task.search_space(checked.plain) if space is None else spaces.read_space(space)
    chosen = spaces.around(chosen, checked.plain)
    searched = {name: one for name, one in chosen.items() if name.startswith(DECODING)}
    if wrong := [name for name, one in searched.items() if not one.values]:
        raise ConfigError(f"{space}: {wrong[0]}: expected a list of values, got a range; list them")
    decoding = searched if space is not None else checked.task.decoding_space(checked.plain)
    chosen = {name: one for name, one in chosen.items() if name not in searched}
    if not chosen:
        raise ConfigError(f"{recipe}: expected settings to search, got none; name them with --space")
    metric = checked.settings.metric
    higher = checked.settings.better(checked.task.better)[metric] == "higher"
    ready = bare._replace(space=chosen, decoding=decoding, plain=checked.plain, metric=metric, higher=higher)
    check_recipe(ready.table({}), plugins=plugins)
    for settings in spaces.corners(chosen | searched, checked.plain) if space is not None else ():
        try:
            check_recipe(ready.table(settings), plugins=plugins)
        except ConfigError as error:
            raise ConfigError(f"{space}: {str(error).removeprefix('override ')}") from error
    return ready


class _Kept(jsonfile.Schema):
    text: str
    given: list[str]
    plain: dict[str, Any]
    space: dict[str, Any]


def keep(ready: SearchPlan) -> None:
    """Write what is searched into the study's folder, or see that it is the same as before."""
    path = ready.folder / "plan.json"
    space = spaces.as_json(ready.space)
    if files.claim(ready.folder, path.name, "study", "choose another --study"):
        old = jsonfile.load(path, _Kept, "restore it from a copy, or start another study with --study")
        old_space = spaces.as_json({name: Range(**entry) for name, entry in old.space.items()})
        recipe = parse(dump(old.plain), str(path))
        assert isinstance(recipe, Table)
        plain = with_defaults(recipe, ready.plugins)
        changed = difference(plain, ready.plain, "") or difference(old_space, space, "space").replace(
            "the recipe says", "now"
        )
        if changed:
            raise ConfigError(
                f"{ready.folder}: this study was started with {changed}; pass another --study for the new one"
            )
        return
    text = ready.recipe.read_text("utf-8")
    about = {"text": text, "given": [*ready.given, *ready.limits()], "plain": ready.plain, "space": space}
    files.replace(path, files.to_json(about))


def text_of(ready: SearchPlan) -> str:
    """The recipe's text when the study was begun."""
    return jsonfile.load(ready.folder / "plan.json", _Kept, "restore it from a copy").text
