"""weft folds: train and test every fold of a recipe, and report the mean with its interval."""

from pathlib import Path

import click

from weft.commands.options import RecipeFile, count_option, plugin
from weft.commands.outputs import check_outputs, output_option
from weft.wording import plural


@click.command()
@click.argument("recipe", type=RecipeFile())
@click.argument("overrides", nargs=-1, metavar="[SECTION.KEY=VALUE]...")
@output_option(
    "--folder",
    show_default="runs/NAME-folds of the recipe",
    help="Directory for the runs and folds.tsv.",
    folder=True,
)
@count_option("--repeats", default=1, help="Split everything N times, with data.split_seed 1 to N.")
@plugin
def command(
    recipe: Path, overrides: tuple[str, ...], folder: Path | None, repeats: int, plugins: tuple[str, ...]
) -> int:
    """Cross-validate RECIPE: train on every fold of its data but one, test on that one, report the mean.

    The recipe needs data.folds. Each score is a mean over all trainings with a 95 % interval that allows for
    the data they share. If the command is stopped or killed, the same command resumes.

    \b
    Examples:
      weft folds mr-letters data.folder=PATH
      weft folds my.yaml data.folds=5 data.group=customer --repeats 4
    """  # noqa: D301  click reads the \b
    from weft.tune.folds import folds, run_folds, write_table

    folder = folder or Path("runs") / f"{recipe.stem}-folds"
    check_outputs(folder / "folds.tsv")
    plan = folds(recipe, overrides, folder, repeats=repeats, plugins=plugins)
    code = run_folds(plan, lambda text: click.echo(text, err=True))
    if code:
        click.echo("stopped; the same command resumes", err=True)
        return code
    trainings = plan.repeats * len(plan.tested)
    lines = write_table(plan)
    click.echo(f"mean of {plural(trainings, 'training')} ({plan.folder / 'folds.tsv'}):")
    for line in lines:
        click.echo(f"  {line}")
    return 0
