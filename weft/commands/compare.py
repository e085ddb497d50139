"""weft compare: one report about several runs, or about the variants of a recipe, which it trains first."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weft.commands.options import device, plugin
from weft.commands.output_check import OutputPath, check_outputs

if TYPE_CHECKING:
    from weft.inspect.comparing.measured import RunFacts
    from weft.run import LoadedRun

Named = tuple[str, Path, str]
"""Name of a run, its directory, and the variant that it repeats with another seed ("" if unknown)."""


@click.command()
@click.argument("given", nargs=-1, required=True, metavar="RUN... | RECIPE [SECTION.KEY=VALUE]...")
@click.option(
    "--grid",
    "grids",
    multiple=True,
    metavar="KEY=VALUE,VALUE",
    help="Values to train RECIPE with, one run each. Several --grid give all combinations; KEY+KEY sets two "
    "keys to the same value.",
)
@click.option(
    "--output",
    metavar="DIR",
    type=OutputPath(folder=True),
    default=Path("comparison"),
    help="Directory for the report, the measurements and the trained variants.",
)
@click.option(
    "--text",
    show_default="an example of the first run",
    help="Input text on which gradient reach is compared.",
)
@device
@plugin
def command(
    given: tuple[str, ...],
    grids: tuple[str, ...],
    output: Path,
    text: str | None,
    device: str,
    plugins: tuple[str, ...],
) -> int:
    """Find out which run is better: one report, as HTML and Markdown, about several runs of one task.

    The report has scores on the test split with intervals, baselines and paired significance tests, scores by
    length, number of parameters, speed, memory, learning curves and gradient reach. Runs that differ only in
    training.seed are summarised by their mean and standard deviation. If you stop the command, the same
    command resumes: finished runs and measurements are kept.

    \b
    Examples:
      weft compare runs/lstm runs/gru --output lstm-gru
      weft compare recipe.yaml --grid model.encoder.cell=elman,lstm,gru --grid training.seed=1,2
    """  # noqa: D301  click reads the \b
    from weft.commands import outputs
    from weft.commands.views import folder_for
    from weft.errors import ConfigError
    from weft.inspect.comparing.report import markdown, page

    check_outputs(output / "report.md", output / "report.html")
    if grids:
        runs, code = _trained(given, grids, output, plugins)
        if code:
            return code
    else:
        paths = [Path(one) for one in given]
        if any(path.is_file() for path in paths):
            raise ConfigError(
                f"{given[0]}: expected run directories, got a file; to train variants of a recipe add --grid"
            )
        if len(set(paths)) < 2:
            raise ConfigError(f"{given[0]}: expected at least two runs, got one")
        names = [path.resolve().name for path in paths]
        names = names if len(set(names)) == len(names) else [str(path) for path in paths]
        runs = [(name, path, "") for name, path in zip(names, paths, strict=True)]
    folder_for(output / "measured")
    found = _measured(runs, output / "measured", text, device, plugins)
    title = f"weft compare: {', '.join(name for name, _, _ in runs)}"
    title = title if len(title) <= 90 else f"weft compare: {len(runs)} runs"
    outputs.write(output / "report.md", markdown(found, title))
    outputs.write(output / "report.html", page(found, title))
    click.echo(markdown(found, title))
    click.echo(f"report: {output / 'report.html'} and report.md")
    return 0


def _trained(
    given: Sequence[str], grids: Sequence[str], output: Path, plugins: Sequence[str]
) -> tuple[list[Named], int]:
    """Train the variants that are not trained yet; return all runs and the exit code."""
    from weft.commands.views import folder_for
    from weft.config import read_recipe
    from weft.config.shipped import find_recipe
    from weft.inspect.comparing.grid import folder_name, variants
    from weft.run.card import write_card
    from weft.run.training import begin_run, check_recipe
    from weft.train.loop import train

    recipe, overrides = Path(given[0]), list(given[1:])
    if note := find_recipe(recipe).note:
        click.echo(note, err=True)
    plan = variants(grids)
    for variant in plan:  # report every mistake before training starts
        check_recipe(read_recipe(recipe, [*overrides, *variant.changes]), plugins=plugins)
    folder_for(output / "runs")
    runs: list[Named] = []
    for number, variant in enumerate(plan, 1):
        run = output / "runs" / folder_name(variant.name)
        runs.append((variant.name, run, variant.group))
        click.echo(f"{number} of {len(plan)}: {variant.name}", err=True)
        checked = begin_run(run, read_recipe(recipe, [*overrides, *variant.changes]), plugins=plugins)
        outcome = train(checked.task, run, checked.settings)
        if outcome.exit_code:
            click.echo("stopped; the same command resumes", err=True)
            return runs, outcome.exit_code
        write_card(run, checked, outcome)
    return runs, 0


def _measured(
    runs: Sequence[Named], folder: Path, text: str | None, device: str, plugins: Sequence[str]
) -> "list[RunFacts]":
    from weft.errors import ConfigError
    from weft.inspect.comparing.grid import folder_name
    from weft.inspect.comparing.measured import measured
    from weft.inspect.inspection import examples
    from weft.run import open_run

    opened = [open_run(path, device=device, plugins=plugins) for _, path, _ in runs]
    for one in opened:
        if one.name != opened[0].name:
            raise ConfigError(
                f"{one.path}: expected a run of the task {opened[0].name}, as {opened[0].path} is, got "
                f"one of {one.name}; compare runs of one task"
            )
    if text is None and opened[0].task.samples_readable:
        text = next(reversed(examples(opened[0].path).texts), None)
    found = []
    groups: dict[str, str] = {}  # recipe without its seed -> name of its first run
    for (name, _, group), one in zip(runs, opened, strict=True):
        click.echo(f"measuring {name}", err=True)
        facts = measured(one, name, folder / f"{folder_name(name) or 'run'}.json", text)
        found.append(facts._replace(variant=group or groups.setdefault(_without_seed(one), name)))
    return found


def _without_seed(opened: "LoadedRun") -> str:
    """The recipe without its seed, which identifies a variant."""
    plain = opened.recipe.plain()
    training = {key: value for key, value in plain.get("training", {}).items() if key != "seed"}
    return repr({**plain, "training": training})
