"""weft train: from a recipe to a trained run, or on from where a run stopped."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weft.commands.program import program

if TYPE_CHECKING:
    from weft.train.loop import Outcome


@click.command(short_help="Train what a recipe describes.")
@click.argument("recipe", type=click.Path(path_type=Path))
@click.argument("overrides", nargs=-1, metavar="[SECTION.KEY=VALUE]...")
@click.option(
    "--run", type=click.Path(path_type=Path), help="Run directory; runs/<name of the recipe> by default."
)
@click.option(
    "--plugin", "plugins", multiple=True, help="A package of yours whose parts the recipe may name."
)
def command(recipe: Path, overrides: tuple[str, ...], run: Path | None, plugins: tuple[str, ...]) -> int:
    """Train what RECIPE describes; in an existing run, go on where it stopped.

    \b
    weft train recipes/translate/lstm-attention.yaml
    weft train my.yaml --run runs/wide model.encoder.sizes=[512,512] training.seed=2
    """  # noqa: D301  click reads the \b
    from weft.card import write_card
    from weft.config import read_recipe
    from weft.run import begin
    from weft.train.loop import train

    run = run or Path("runs") / recipe.stem
    begun = begin(run, read_recipe(recipe, overrides), plugins=plugins)
    outcome = train(begun.task, run, begun.settings)
    if outcome.exit_code:
        again = [program(), "train", str(recipe), *overrides, "--run", str(run)]
        again += [word for plugin in plugins for word in ("--plugin", plugin)]
        click.echo(f"go on with: {shlex.join(again)}", err=True)
        return outcome.exit_code
    write_card(run, begun.plain, outcome)
    click.echo(_closing(run, outcome))
    return 0


def _closing(run: Path, outcome: "Outcome") -> str:
    scores = ", ".join(f"{name} {value:.3f}" for name, value in outcome.scores.items())
    best = f"update {outcome.best:,}"
    if outcome.mean_of:
        best = f"the mean of updates {', '.join(map(str, outcome.mean_of))}"
    return (
        f"training ended ({outcome.reason}) after {outcome.update:,} updates; "
        f"the model of {run} is {best}: {scores}\n"
        "next:\n"
        f"  {program()} evaluate {run}             scores on the test split, with floors and intervals\n"
        f"  {program()} predict {run} < FILE       answer each line of a file\n"
        f"  {program()} show {run}                 its recipe, sizes and scores"
    )
