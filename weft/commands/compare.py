"""weft compare: several runs side by side, or the variants of a recipe trained and then side by side."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from weft.inspect.comparing.measured import Measured
    from weft.run import Opened

Named = tuple[str, Path, str]
"""The name of a run, where it is, and of which variant it is a repetition ("" if it is not known)."""


@click.command(short_help="Several runs, or the variants of a recipe, side by side.")
@click.argument("given", nargs=-1, required=True, metavar="RUN... | RECIPE [SECTION.KEY=VALUE]...")
@click.option(
    "--grid",
    "grids",
    multiple=True,
    metavar="KEY=VALUE,VALUE",
    help="Train RECIPE with each of these values; several give every combination, KEY+KEY changes both.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    default=Path("comparison"),
    show_default=True,
    help="Directory of the report, of what was measured, and of the trained variants.",
)
@click.option(
    "--text", help="The example whose gradient reach is compared; one of the first run's own by default."
)
@click.option("--device", default="auto", help="cpu, cuda or auto.")
@click.option("--plugin", "plugins", multiple=True, help="A package of yours whose parts the recipes name.")
def command(
    given: tuple[str, ...],
    grids: tuple[str, ...],
    output: Path,
    text: str | None,
    device: str,
    plugins: tuple[str, ...],
) -> int:
    """Write one report, as HTML and as Markdown, about several runs of one task.

    Scores on the test split with signatures, intervals and baselines, significance by paired bootstrap,
    scores by length, parameters, speed, memory, learning curves, gradient reach, and the winner of each
    column. Runs that differ in training.seed alone are repetitions of one variant: their mean and deviation
    are compared. The same command resumes where it was stopped: what is trained and measured stays.

    \b
    weft compare runs/lstm runs/gru --output lstm-gru
    weft compare recipe.yaml --grid model.encoder.cell=elman,lstm,gru --grid training.seed=1,2
    """  # noqa: D301  click reads the \b
    from weft.commands import outputs
    from weft.commands.views import folder_for
    from weft.errors import ConfigError
    from weft.inspect.comparing.report import markdown, page

    if grids:
        runs, code = _trained(given, grids, output, plugins)
        if code:
            return code
    else:
        paths = [Path(one) for one in given]
        if any(path.is_file() for path in paths):
            raise ConfigError(
                f"{given[0]}: is a file; compare runs, or give the values of a recipe with --grid"
            )
        if len(set(paths)) < 2:
            raise ConfigError(f"{given[0]}: expected two or more runs to compare, got one")
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
    """Train every variant; what was trained before is not trained again."""
    from weft.card import write_card
    from weft.commands.views import folder_for
    from weft.config import read_recipe
    from weft.inspect.comparing.grid import folder_name, variants
    from weft.run import begin, check
    from weft.train.loop import train

    recipe, overrides = Path(given[0]), list(given[1:])
    plan = variants(grids)
    for variant in plan:  # every mistake shows before anything is trained
        check(read_recipe(recipe, [*overrides, *variant.changes]), plugins=plugins)
    folder_for(output / "runs")
    runs: list[Named] = []
    for number, variant in enumerate(plan, 1):
        run = output / "runs" / folder_name(variant.name)
        runs.append((variant.name, run, variant.group))
        click.echo(f"{number} of {len(plan)}: {variant.name}", err=True)
        begun = begin(run, read_recipe(recipe, [*overrides, *variant.changes]), plugins=plugins)
        outcome = train(begun.task, run, begun.settings)
        if outcome.exit_code:
            click.echo("stopped; the same command resumes", err=True)
            return runs, outcome.exit_code
        write_card(run, begun, outcome)
    return runs, 0


def _measured(
    runs: Sequence[Named], folder: Path, text: str | None, device: str, plugins: Sequence[str]
) -> "list[Measured]":
    from weft.errors import ConfigError
    from weft.inspect.comparing.grid import folder_name
    from weft.inspect.comparing.measured import measured
    from weft.inspect.inspection import examples
    from weft.run import open_run

    opened = [open_run(path, device=device, plugins=plugins) for _, path, _ in runs]
    for one in opened:
        if one.name != opened[0].name:
            raise ConfigError(
                f"{one.path}: is a run of {one.name}, {opened[0].path} one of {opened[0].name}; "
                "runs of one task can be compared"
            )
    if text is None and opened[0].task.samples_readable:
        text = next(reversed(examples(opened[0].path).texts), None)
    found = []
    groups: dict[str, str] = {}  # a recipe without its seed: the first run of it
    for (name, _, group), one in zip(runs, opened, strict=True):
        click.echo(f"measuring {name}", err=True)
        facts = measured(one, name, folder / f"{folder_name(name) or 'run'}.json", text)
        found.append(facts._replace(variant=group or groups.setdefault(_without_seed(one), name)))
    return found


def _without_seed(opened: "Opened") -> str:
    """What tells a variant from another: its recipe but for the seed."""
    plain = opened.recipe.plain()
    training = {key: value for key, value in plain.get("training", {}).items() if key != "seed"}
    return repr({**plain, "training": training})
