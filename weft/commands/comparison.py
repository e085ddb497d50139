"""The comparison of runs as one report, for the command and for `weft.compare`.

The runs are given ones, and the variants and seeds that it trains. Read next: compare.py;
../inspect/comparing/report.py, the report; ../inspect/comparing/tables.py, the combinations.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from weft.commands import outputs
from weft.commands.outputs import folder_for
from weft.config import read_recipe
from weft.config.recipe import at, find_recipe
from weft.data.frames import given_as_file, in_python, located
from weft.errors import CheckpointError, ConfigError, given_path
from weft.figures.picture import save
from weft.inspect.comparing.budget import Budget, budget, fitted
from weft.inspect.comparing.measured import RunFacts, measure_run
from weft.inspect.comparing.report import markdown, page
from weft.inspect.comparing.tables import (
    GridVariant,
    figures,
    folder_name,
    latex,
    scores_csv,
    significance_csv,
    summary,
    variants,
)
from weft.inspect.inspection import examples
from weft.run import LoadedRun, open_run
from weft.run.train import train_run
from weft.run.training import check_recipe
from weft.tasks.predictor import Predictor
from weft.tasks.task import Task
from weft.wording import kind_of

SEED = "training.seed"


class NamedRun(NamedTuple):
    """A run, and the variant that it repeats with another seed ("" if unknown)."""

    name: str
    path: Path
    variant: str


class Missing(NamedTuple):
    """A training that may have to be done."""

    name: str
    variant: str
    recipe: Path
    changes: Sequence[str]


class Asked(NamedTuple):
    """The options of weft compare: runs, or recipes with overrides of all of them."""

    runs: Sequence[Path]
    recipes: Sequence[Path]
    overrides: Sequence[str]
    grids: Sequence[str]
    seeds: int
    budget: Budget


def asked(given: Sequence[str], grids: Sequence[str], seeds: int | None, budgets: Sequence[str]) -> Asked:
    """Tell runs, recipes and overrides apart."""
    words = [one for one in given if "=" not in one or Path(one).exists()]
    overrides = [one for one in given if one not in words]
    paths = [Path(one) for one in words]
    runs = [path for path in paths if path.is_dir()]
    recipes = [path for path in paths if path not in runs]
    limits = budget(budgets)
    if not paths:
        raise ConfigError(f"{given[0]}: expected runs or a recipe before the settings, got none")
    if recipes and not (grids or seeds or budgets):
        if recipes[0].is_file():
            raise ConfigError(
                f"{recipes[0]}: expected run directories, got a file; to train variants of a recipe "
                "add --grid, --seeds or --budget"
            )
        runs, recipes = paths, []
    if runs and recipes:
        raise ConfigError(
            f"weft compare: expected runs or recipes, got the run {runs[0]} and the recipe {recipes[0]}; "
            f"for the recipe of a run give {runs[0] / 'recipe.yaml'}"
        )
    if runs and (grids or budgets or overrides):
        option = "--grid" if grids else "--budget" if budgets else overrides[0]
        raise ConfigError(
            f"{option}: changes recipes, got the run {runs[0]}; give its recipe: {runs[0] / 'recipe.yaml'}"
        )
    if len(set(runs)) == 1 and not seeds:
        raise ConfigError(f"{given[0]}: expected at least two runs, got one")
    return Asked(runs, recipes, overrides, grids, seeds or 1, limits)


def train_planned(
    plan: Sequence[Missing], output: Path, plugins: Collection[str], *, test: bool
) -> tuple[list[NamedRun], int]:
    """Train each that is not trained yet; return their runs and the exit code.

    test: whether all are scored on given test data; see `untested` otherwise.
    """
    runs = []
    if plan:
        folder_for(output / "runs")
    if plan and not test:
        plan = _held_out(plan, plugins)
    for number, one in enumerate(plan, 1):
        run = output / "runs" / folder_name(one.name)
        runs.append(NamedRun(one.name, run, one.variant))
        click.echo(f"{number} of {len(plan)}: {one.name}", err=True)
        if code := train_run(run, read_recipe(one.recipe, one.changes), plugins=plugins).outcome.exit_code:
            click.echo("stopped; the same command resumes", err=True)
            return runs, code
    return runs, 0


def planned(wanted: Asked, output: Path, plugins: Collection[str]) -> list[Missing]:
    """Every recipe with every combination of the grid and every seed, with the budget."""
    found = []
    recipes = list(dict.fromkeys(wanted.recipes))
    stems = [recipe.stem for recipe in recipes]
    names = stems if len(set(stems)) == len(stems) else [str(one.with_suffix("")) for one in recipes]
    for recipe, own in zip(recipes, names, strict=True):
        if note := find_recipe(recipe).note:
            click.echo(note, err=True)
        base = [*wanted.overrides, *wanted.budget.changes]
        grids = [*wanted.grids, *_seed_axis(wanted, recipe, base)]
        for each in variants(grids) if grids else [GridVariant(own, (), own)]:
            name, group = each.name, each.group
            if grids and len(recipes) > 1:
                name, group = f"{own},{name}", f"{own},{group}".removesuffix(",the recipe")
            found.append(Missing(name, group, recipe, [*base, *each.changes]))
    for one in found:
        check_recipe(read_recipe(one.recipe, one.changes), plugins=plugins)
    if not wanted.budget.parameters:
        return found
    folder_for(output / "measured")
    sized = []
    for one in found:
        plain = [change for change in one.changes if not change.startswith(f"{SEED}=")]
        widths = fitted(one.recipe, plain, wanted.budget.parameters, output / "measured", plugins)
        click.echo(f"{one.name}: {' '.join(widths)}", err=True)
        sized.append(one._replace(changes=[*one.changes, *widths]))
    return sized


def _held_out(plan: Sequence[Missing], plugins: Collection[str]) -> list[Missing]:
    """The plan, such that what is not tested can be compared on its validation split; says so."""
    changes = {one.recipe: one.changes for one in plan}
    checked = {
        recipe: check_recipe(read_recipe(recipe, some), plugins=plugins) for recipe, some in changes.items()
    }
    if lacking := untested([one.task for one in checked.values()]):
        click.echo(lacking, err=True)
    again = {recipe for recipe, one in checked.items() if one.settings.refit and not one.task.has("test")}
    if again:
        click.echo(
            "variants are not trained again on the validation examples (training.refit=false)", err=True
        )
    unseen = ["training.refit=false"]
    return [one._replace(changes=[*one.changes, *unseen[: one.recipe in again]]) for one in plan]


def untested(tasks: Sequence[Task]) -> str:
    """What to say, before anything is trained, of tasks without a test split; "" if all have one."""
    if all(task.has("test") for task in tasks):
        return ""
    if all(task.has("test") or task.has("valid") for task in tasks):
        return (
            "no test split (data.test): variants are compared on the validation split, which also chooses "
            "their checkpoints, so all scores are a little too good"
        )
    return "no test split (data.test) and no validation split: no scores, only speed, size and curves"


def _seed_axis(wanted: Asked, recipe: Path, changes: Sequence[str]) -> list[str]:
    """The grid over seeds, from the recipe's own one upwards."""
    if wanted.seeds == 1:
        return []
    if any(SEED in grid for grid in wanted.grids):
        raise ConfigError(f"--seeds: the grid has {SEED} already; leave one of them out")
    own = at(read_recipe(recipe, changes).plain(), ("training", "seed"))
    first = 1 if own is None else own
    return [f"{SEED}={','.join(str(first + number) for number in range(wanted.seeds))}"]


def seeds_of(name: str, path: Path, seeds: int) -> list[Missing]:
    """The trainings of a recipe, or those that a run lacks, with seeds from its own one upwards."""
    recipe = path / "recipe.yaml" if path.is_dir() else path
    own = at(read_recipe(recipe).plain(), ("training", "seed")) or 1
    numbers = range(own + path.is_dir(), own + seeds)
    return [Missing(f"{name},seed={one}", name, recipe, [f"{SEED}={one}"]) for one in numbers]


def repeated(wanted: Asked) -> tuple[list[NamedRun], list[Missing]]:
    """The given runs, and for each variant among them the seeds that are missing."""
    names = [path.resolve().name for path in wanted.runs]
    names = names if len(set(names)) == len(names) else [str(path) for path in wanted.runs]
    runs = [NamedRun(name, path, "") for name, path in zip(names, wanted.runs, strict=True)]
    if wanted.seeds == 1:
        return runs, []
    alike: dict[str, list[tuple[NamedRun, int]]] = defaultdict(list)
    for run in runs:
        plain = read_recipe(run.path / "recipe.yaml").plain()
        seed = plain.get("training", {}).pop("seed", 1)
        alike[repr(plain)].append((run, seed))
    plan = []
    for own in alike.values():
        first, known = own[0][0], {seed for _, seed in own}
        free = (seed for seed in range(1, 10_000) if seed not in known)
        for _ in range(wanted.seeds - len(known)):
            seed = next(free)
            changes = [f"{SEED}={seed}"]
            plan.append(Missing(f"{first.name},seed={seed}", "", first.path / "recipe.yaml", changes))
    return runs, plan


if TYPE_CHECKING:
    import pandas as pd


class ComparedRuns(NamedTuple):
    """A comparison of runs, written into a folder: report.html, report.md, tables for a paper and figures."""

    folder: Path
    text: str
    drawn: Sequence[str] = ()

    @property
    def scores(self) -> "pd.DataFrame":
        """Every score of every run."""
        return self._table("scores")

    @property
    def tests(self) -> "pd.DataFrame":
        """The tests of the best variant against each other one."""
        return self._table("tests")

    def _table(self, name: str) -> "pd.DataFrame":
        import pandas as pd

        return pd.read_csv(self.folder / f"{name}.csv")

    def __repr__(self) -> str:
        return self.text


def compare(
    variants: Mapping[str, Predictor[Any] | str | Path],
    *,
    seeds: int = 1,
    test: Any = None,
    folder: str | Path = "comparison",
    text: str | None = None,
    device: str = "auto",
    plugins: Sequence[str] = (),
) -> ComparedRuns:
    """Find out which of several models is better, as `weft compare` does.

    Args:
        variants: by name, models of `weft.fit` or `weft.load`, directories of runs, or recipes.
        seeds: trainings of each variant, with different seeds; missing ones are trained.
        test: what all are scored on, as `weft.fit` takes it; by default the test part of their recipes.
        folder: for the report, the measurements and the runs; what is there already is kept.
        text: input on which gradient reach is compared; by default an example of the first run.
        device: cpu, cuda or auto.
        plugins: packages whose parts the recipes may name.

    Returns:
        Prints as a summary; `scores` and `tests` are DataFrames, the report is in its `folder`.

    Raises:
        ConfigError: the variants are of different tasks, or a recipe has a mistake.
        CheckpointError: a training was stopped; the same call resumes.

    Example:
        weft.compare({"lstm": lstm, "gru": "runs/gru"}, seeds=3)

        >>> compare({"lstm": "none.yaml"}, seeds=2)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        weft.errors.ConfigError: none.yaml: no such file and no such recipe; ...
    """
    if not isinstance(variants, Mapping) or len(variants) * seeds < 2:
        wanted = 'two models or more by name, {"lstm": one, "gru": other}, or one with seeds=2 or more'
        got = len(variants) if isinstance(variants, Mapping) else kind_of(variants)
        raise ConfigError(f"compare: expected {wanted}, got {got}")
    runs, plan, to = [], [], given_path("folder", folder)
    cells: Sequence[str] = ()
    for name, one in variants.items():
        opened = getattr(one, "opened", None)
        path = given_path(f"compare: {name}", one if opened is None else opened.path)
        cells = cells or getattr(one, "cells", ())
        test = located(test) if getattr(one, "file_columns", ()) else test
        if path.is_dir():
            runs.append(NamedRun(name, path, name))
        plan += seeds_of(name, path, seeds)
    trained, code = train_planned(plan, to, plugins, test=test is not None)
    if code:
        raise CheckpointError(f"{to}: the training was stopped; the same call resumes")
    with TemporaryDirectory() as kept, given_as_file(test, Path(kept), "test", cells) as file:
        found = report_of([*runs, *trained], to, text, device, plugins, test=file)
    return found._replace(text=in_python(found.text))


def report_of(
    runs: Sequence[NamedRun],
    folder: Path,
    text: str | None,
    device: str,
    plugins: Sequence[str],
    budget: str = "",
    *,
    test: Path | None = None,
) -> ComparedRuns:
    """Measure the runs, and write the report."""
    folder_for(measured := folder / "measured")
    opened = [open_run(path, device=device, plugins=plugins) for _, path, _ in runs]
    for one in opened:
        if one.name != opened[0].name:
            raise ConfigError(
                f"{one.path}: expected a run of the task {opened[0].name}, as {opened[0].path} is, got "
                f"one of {one.name}; compare runs of one task"
            )
    if text is None and opened[0].task.samples_readable:
        text = next(reversed(examples(opened[0].path).texts), None)
    found: list[RunFacts] = []
    groups: dict[str, str] = {}  # recipe without its seed -> name of its first run
    for (name, _, group), one in zip(runs, opened, strict=True):
        click.echo(f"measuring {name}", err=True)
        facts = measure_run(one, name, measured / f"{folder_name(name) or 'run'}.json", text, test)
        found.append(facts._replace(variant=group or groups.setdefault(_without_seed(one), name)))
    names = ", ".join(dict.fromkeys(one.variant or one.name for one in found))
    title = f"weft compare: {names}" if len(names) <= 76 else f"weft compare: {len(runs)} runs"
    outputs.write(folder / "report.md", markdown(found, title, budget))
    outputs.write(folder / "report.html", page(found, title, budget))
    outputs.write(folder / "scores.csv", scores_csv(found))
    outputs.write(folder / "tests.csv", significance_csv(found))
    outputs.write(folder / "tables.tex", latex(found, title.removeprefix("weft compare: "), budget))
    drawn = []
    for name, figure in figures(found, title.removeprefix("weft compare: ")).items():
        for file in (f"{name}.svg", f"{name}.pdf"):
            save(figure, folder / file)
            drawn.append(file)
    return ComparedRuns(folder, summary(found, title, budget), drawn)


def _without_seed(opened: LoadedRun) -> str:
    """The recipe without its seed, which identifies a variant."""
    plain = opened.recipe.plain()
    training = {key: value for key, value in plain.get("training", {}).items() if key != "seed"}
    return repr({**plain, "training": training})
