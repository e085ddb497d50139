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
    "--plugin", "plugins", multiple=True, help="A package of yours; the recipe may name PACKAGE.FILE.CLASS."
)
def command(recipe: Path, overrides: tuple[str, ...], run: Path | None, plugins: tuple[str, ...]) -> int:
    """Train what RECIPE describes; in an existing run, go on where it stopped.

    \b
    weft train recipes/translate/help-lstm-attention.yaml
    weft train my.yaml --run runs/wide 'model.encoder.sizes=[512,512]' training.seed=2
    weft train my.yaml --plugin mine model.encoder.cell=mine.leaky.Leaky
    """  # noqa: D301  click reads the \b
    from weft.card import write_card
    from weft.config import read_recipe
    from weft.errors import ConfigError
    from weft.run import begin
    from weft.train.loop import train

    if (recipe / "recipe.yaml").is_file():
        go_on = shlex.join([program(), "train", str(recipe / "recipe.yaml"), "--run", str(recipe)])
        raise ConfigError(f"{recipe}: this is a run, not a recipe; to go on with it: {go_on}")
    run = run or Path("runs") / recipe.stem
    begun = begin(run, read_recipe(recipe, overrides), plugins=plugins)
    outcome = train(begun.task, run, begun.settings)
    if outcome.exit_code:
        again = [program(), "train", str(recipe), *overrides, "--run", str(run)]
        again += [word for plugin in plugins for word in ("--plugin", plugin)]
        click.echo(f"go on with: {shlex.join(again)}", err=True)
        return outcome.exit_code
    write_card(run, begun, outcome)
    click.echo(_closing(run, outcome, has_test=begun.task.has("test")))
    return 0


def _closing(run: Path, outcome: "Outcome", *, has_test: bool) -> str:
    scores = ", ".join(f"{name} {value:.3f}" for name, value in outcome.scores.items())
    best = f"update {outcome.best:,}"
    if outcome.mean_of:
        best = f"the mean of updates {', '.join(map(str, outcome.mean_of))}"
    test = ("", "scores on the test split, with floors and intervals")
    if not has_test:
        test = (" --data PREFIX", "scores on files that training never saw")
    steps = {
        f"{program()} evaluate {run}{test[0]}": test[1],
        f"{program()} predict {run} < FILE": "answer the inputs of a file",
        f"{program()} show {run}": "its recipe, sizes and scores",
    }
    width = max(map(len, steps))
    return (
        f"training ended ({outcome.reason}) after {outcome.update:,} updates; "
        f"the model of {run} is {best}: {scores}\n"
        "next:\n"
    ) + "\n".join(f"  {step:<{width}}   {what}" for step, what in steps.items())
