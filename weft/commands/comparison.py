"""The comparison of runs as one report, for the command and for `weft.compare`.

Read next: variants.py, the training; ../inspect/comparing/report.py, the report.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from weft.commands import outputs
from weft.commands.outputs import folder_for
from weft.commands.variants import NamedRun, seeds_of, train_planned
from weft.data.frames import given_as_file, in_python, located
from weft.errors import CheckpointError, ConfigError, given_path
from weft.figures.picture import save
from weft.inspect.comparing.measured import RunFacts, measure_run
from weft.inspect.comparing.report import markdown, page
from weft.inspect.comparing.tables import figures, folder_name, latex, scores_csv, significance_csv, summary
from weft.inspect.inspection import examples
from weft.run import LoadedRun, open_run
from weft.tasks.predictor import Predictor
from weft.wording import kind_of

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
