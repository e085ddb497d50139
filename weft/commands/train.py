"""weft train: from a recipe to a trained run, or on from where a run stopped."""

import os
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
@click.option(
    "--processes", type=click.IntRange(1), help="Train with so many processes on this machine; 1 by default."
)
@click.option(
    "--deterministic",
    is_flag=True,
    help="The same bits each time, on a GPU too: training.deterministic=true.",
)
def command(
    recipe: Path,
    overrides: tuple[str, ...],
    run: Path | None,
    plugins: tuple[str, ...],
    processes: int | None,
    deterministic: bool,
) -> int:
    """Train what RECIPE describes; in an existing --run, go on where it stopped.

    \b
    weft train recipes/translate/help-lstm-attention.yaml
    weft train my.yaml --run runs/wide 'model.encoder.sizes=[512,512]' training.seed=2
    weft train my.yaml --plugin mine model.encoder.cell=mine.leaky.Leaky
    weft train my.yaml --processes 2
    torchrun --nproc-per-node 8 -m -- weft train my.yaml --run runs/my
    """  # noqa: D301  click reads the \b
    from weft.card import write_card
    from weft.commands.launch import LOST, launch
    from weft.config import read_recipe
    from weft.errors import ConfigError
    from weft.run import begin, check
    from weft.train.loop import train
    from weft.train.processes import Lost

    if (recipe / "recipe.yaml").is_file():
        go_on = shlex.join([program(), "train", str(recipe / "recipe.yaml"), "--run", str(recipe)])
        raise ConfigError(f"{recipe}: this is a run, not a recipe; to go on with it: {go_on}")
    run = run or Path("runs") / recipe.stem
    if deterministic:
        overrides = (*overrides, "training.deterministic=true")
    table = read_recipe(recipe, overrides)
    if processes and processes > 1 and "WORLD_SIZE" not in os.environ:
        check(table, plugins=plugins)  # so that a mistake is told once
        words = ["train", str(recipe), *overrides, "--run", str(run)]
        return launch([*words, *(word for one in plugins for word in ("--plugin", one))], processes)
    first = not int(os.environ.get("RANK", "0"))  # it makes the run directory
    begun = begin(run, table, plugins=plugins) if first else check(table, plugins=plugins)
    try:
        outcome = train(begun.task, run, begun.settings)
    except Lost:
        if "WEFT_LAUNCHED" in os.environ:  # who started this one says why
            return LOST
        raise
    if not first:
        return outcome.exit_code
    if outcome.exit_code:
        again = [program(), "train", str(recipe), *overrides, "--run", str(run)]
        again += [word for plugin in plugins for word in ("--plugin", plugin)]
        again += ["--processes", os.environ["WORLD_SIZE"]] if "WORLD_SIZE" in os.environ else []
        click.echo(f"go on with: {shlex.join(again)}", err=True)
        return outcome.exit_code
    write_card(run, begun, outcome)
    click.echo(_closing(run, outcome, plugins, has_test=begun.task.has("test")))
    return 0


def _closing(run: Path, outcome: "Outcome", plugins: tuple[str, ...], *, has_test: bool) -> str:
    scores = ", ".join(f"{name} {value:.3f}" for name, value in outcome.scores.items())
    best = f"update {outcome.best:,}"
    if outcome.mean_of:
        best = f"the mean of updates {', '.join(map(str, outcome.mean_of))}"
    test = ("", "scores on the test split, with baselines and intervals")
    if not has_test:
        test = (" --data PREFIX", "scores on files that training never saw")
    trusted = "".join(f" --plugin {plugin}" for plugin in plugins)
    steps = {
        f"{program()} evaluate {run}{test[0]}{trusted}": test[1],
        f"{program()} predict {run}{trusted} < FILE": "answer the inputs of a file",
        f"{program()} show {run}{trusted}": "its recipe, sizes and scores",
    }
    width = max(map(len, steps))
    return (
        f"training ended ({outcome.reason}) after {outcome.update:,} updates; "
        f"the model of {run} is {best}: {scores}\n"
        "next:\n"
    ) + "\n".join(f"  {step:<{width}}   {what}" for step, what in steps.items())
