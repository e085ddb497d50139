"""weft train: train the model that a recipe describes, or resume a run."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weft.commands.longer import advice, degenerate
from weft.commands.options import RecipeFile, count_option, file_option, plugin, plugin_words
from weft.commands.program import piped, typed
from weft.errors import ConfigError
from weft.wording import numbered, plural

if TYPE_CHECKING:
    from weft.run.training import CheckedRecipe
    from weft.tasks.task import Task
    from weft.train.finish import Outcome


@click.command()
@click.argument("recipe", type=RecipeFile())
@click.argument("overrides", nargs=-1, metavar="[SECTION.KEY=VALUE]...")
@file_option("--run", metavar="DIR", show_default="runs/NAME of the recipe", help="Run directory.")
@plugin
@count_option(
    "--processes",
    show_default="1",
    help="Number of training processes on this machine, such as one per GPU; under srun, of its processes.",
)
@click.option(
    "--deterministic",
    is_flag=True,
    help="Make repeated runs bit-identical, also on a GPU; the same as training.deterministic=true.",
)
def command(
    recipe: Path,
    overrides: tuple[str, ...],
    run: Path | None,
    plugins: tuple[str, ...],
    processes: int | None,
    deterministic: bool,
) -> int:
    """Train the model that RECIPE describes, or resume the run if --run already exists.

    RECIPE is a file, or the name of a recipe that comes with Weft (see them with: weft recipes). A
    SECTION.KEY=VALUE changes one setting of the recipe.

    Progress is saved regularly. Ctrl-C saves too; the same command resumes.

    \b
    Examples:
      weft train help-demo
      weft train my.yaml --run runs/wide 'model.encoder.sizes=[512,512]' training.seed=2
      weft train my.yaml --plugin mine model.encoder.cell=mine.leaky.Leaky
      srun --ntasks=8 weft train my.yaml --run runs/my --processes 8
      torchrun --nproc-per-node 8 --no-python -- weft train my.yaml --run runs/my
    """  # noqa: D301  click reads the \b
    from weft.commands.launch import LOST, join_slurm, launch
    from weft.config import read_recipe
    from weft.machine import LAUNCHED
    from weft.run.train import train_run
    from weft.run.training import check_recipe
    from weft.train.processes import Lost

    if (recipe / "recipe.yaml").is_file():
        resume = typed("train", recipe / "recipe.yaml", "--run", recipe)
        raise ConfigError(f"{recipe}: expected a recipe, got a run; to resume it: {resume}")
    run = run or Path("runs") / recipe.stem
    overrides = (*overrides, *(["training.deterministic=true"] if deterministic else []))
    table = read_recipe(recipe, overrides)
    join_slurm(processes)
    if processes and processes > 1 and "WORLD_SIZE" not in os.environ:
        check_recipe(table, plugins=plugins)  # reports a mistake once, not once per process
        return launch(
            ["train", str(recipe), *overrides, "--run", str(run), *plugin_words(plugins)], processes
        )
    try:
        checked, outcome = train_run(run, table, plugins=plugins, begun=_say_note)
    except Lost:
        if LAUNCHED in os.environ:  # the launcher reports the cause
            return LOST
        raise
    if os.environ.get("RANK", "0") != "0":
        return outcome.exit_code
    if outcome.exit_code:
        words = ["train", recipe, *overrides, "--run", run, *plugin_words(plugins), *_processes()]
        click.echo(f"resume with: {typed(*words)}", err=True)
        return outcome.exit_code
    click.echo(_closing(run, checked, outcome, plugins))
    return 0


def _say_note(checked: "CheckedRecipe") -> None:
    if checked.note:
        click.echo(checked.note, err=True)


def _processes() -> list[str]:
    return ["--processes", os.environ["WORLD_SIZE"]] if "WORLD_SIZE" in os.environ else []


def _closing(run: Path, checked: "CheckedRecipe", outcome: "Outcome", plugins: tuple[str, ...]) -> str:
    scores = ", ".join(f"{name} {value:.3f}" for name, value in outcome.scores.items())
    best = f"from update {outcome.best:,}"
    if not outcome.best and checked.settings.starts_trained:
        best = f"that of {checked.settings.start}, since no update was better"
    if outcome.mean_of:
        best = f"the mean of updates {', '.join(map(str, outcome.mean_of))}"
    trusted = plugin_words(plugins)
    steps = _steps(run, checked.task, trusted, refit=outcome.refit)
    ended = (
        f"training ended after {plural(outcome.update, 'update')} ({outcome.reason}); the best model, {best},"
    )
    if outcome.reason == "solved":
        ended = "solved without updates; the model"
    lines = [f"{ended} is in {run}: {scores}"]
    if outcome.refit:
        lines = [
            f"{ended} scored {scores}; trained again in the same way on the validation examples too, it is "
            f"in {run}"
        ]
    if why := degenerate(outcome.samples):
        lines.append(advice(why, run, checked.plain["task"], checked.settings, plugins))
    lines += ["next:", *(line for what, step in steps.items() for line in (f"  # {what}", f"  {step}"))]
    start = [] if outcome.reason == "solved" else [f"training.start={run}"]
    more = typed("train", run / "recipe.yaml", "--run", numbered(run), *start, *trusted)
    return "\n".join([*lines, f"when more data has arrived: {more}"])


def _steps(run: Path, task: "Task", trusted: Sequence[str], *, refit: bool) -> dict[str, str]:
    """Commands by what they do; each can be typed as it is."""
    from weft.inspect.inspection import examples

    found = {}
    if task.has("test"):
        found["score it on the test split"] = typed("evaluate", run, *trusted)
    elif "valid" in task.evaluates and not refit:
        found["score it on the validation split; --data FILE names other files"] = typed(
            "evaluate", run, "--split", "valid", *trusted
        )
    if (example := task.predict_example(examples(run).texts)) is not None:
        words = "predict", run, *example.words, *trusted
        found["use it; weft predict --help reads files"] = (
            piped(example.line, *words) if example.line else typed(*words)
        )
    found["see inside the model"] = typed("inspect", run, *trusted)
    found["print its sizes, scores and recipe"] = typed("show", run, *trusted)
    return found
