"""weft tune: search the settings of a recipe, and train the best ones again with several seeds."""

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weft.commands.options import RecipeFile, count_option, file_option, plugin
from weft.commands.outputs import check_outputs
from weft.errors import ConfigError
from weft.wording import plural

if TYPE_CHECKING:
    from weft.tune.study import Study

WORKER = "WEFT_TUNE_WORKER"
"""Environment variable of the processes of --processes: number of the process and its phase."""

PHASES = "search", "retrain"


@click.command()
@click.argument("recipe", type=RecipeFile())
@click.argument("overrides", nargs=-1, metavar="[SECTION.KEY=VALUE]...")
@file_option(
    "--study",
    "folder",
    metavar="DIR",
    show_default="runs/NAME-tuned of the recipe",
    help="Directory for the trials and the report.",
)
@click.option(
    "--minutes",
    type=click.FloatRange(0),
    default=0.0,
    show_default="no limit",
    help="Limit of the search by the clock, earlier starts included. On a busy machine, limit CPU time "
    "instead, with --trials and --trial-minutes.",
)
@click.option(
    "--trials", type=click.IntRange(0), default=0, show_default="no limit", help="Number of trials."
)
@click.option(
    "--trial-minutes",
    type=click.FloatRange(0),
    default=0.0,
    show_default="recipe",
    help="CPU minutes of a trial (training.max_cpu_minutes), instead of the recipe's own end.",
)
@click.option(
    "--seeds", type=click.IntRange(0, 10), default=3, help="Seeds to train the best trial with; 0 for none."
)
@file_option(
    "--space",
    show_default="declared by the task",
    help="YAML file with the settings to search and their ranges.",
)
@count_option("--processes", default=1, help="Trials to train at the same time.")
@click.option(
    "--storage",
    metavar="URL",
    default="",
    show_default="SQLite file in the study's directory",
    help="URL of a database that several machines share, in Optuna's form.",
)
@click.option("--name", show_default="name of the directory", help="Name of the study in the database.")
@click.option("--seed", type=int, default=1, help="Random seed of the search.")
@click.option(
    "--pruning/--no-pruning", default=True, help="End trials early that fall behind (successive halving)."
)
@plugin
def command(recipe: Path, overrides: tuple[str, ...], folder: Path | None, **given: Any) -> int:
    """Search for the settings of RECIPE that give the best validation score.

    Trial 0 is the recipe as it is. Optuna proposes the settings of the others; those that fall behind stop
    early (successive halving). The best trial and the recipe are then trained with several seeds; beam and
    length penalty are tried on the best trial's model, without training. DIR receives the trials
    (trials.tsv), pictures, and the best recipe (best.yaml). The test split is never read.

    If the command is stopped or killed, the same command resumes.

    \b
    Examples:
      weft tune help-demo --minutes 60
      weft tune my.yaml --minutes 600 --processes 4 --trial-minutes 5
      weft tune my.yaml --trials 20 --space space.yaml model.encoder.cell=gru
    """  # noqa: D301  click reads the \b
    from weft.tune.plan import keep, plan
    from weft.tune.study import Study, imported

    if not given["minutes"] and not given["trials"]:
        raise ConfigError("weft tune: expected an end of the search, got none; pass --minutes or --trials")
    imported()
    folder = folder or Path("runs") / f"{recipe.stem}-tuned"
    check_outputs(folder / "best.yaml", folder / "trials.tsv")
    ready = plan(
        recipe,
        overrides,
        folder,
        space=given["space"],
        trial_minutes=given["trial_minutes"],
        plugins=given["plugins"],
    )
    keep(ready)
    number, _, phase = os.environ.get(WORKER, "").partition(":")
    name = given["name"] or folder.resolve().name
    seed = given["seed"] + 1000 * int(number or 0)
    study = Study(ready, given["storage"], name, seed, halving=given["pruning"])
    with study.answering():
        return _run(phase, study, given) if phase else _searched(study, given)


def _searched(study: "Study", given: Mapping[str, Any]) -> int:
    """Do all phases, and report; the exit code."""
    from weft.train.resume import check_unchanged
    from weft.tune.decoding import search_decoding
    from weft.tune.report import write_report

    check_unchanged(study.plan.folder, "this search", "--study")
    study.begin()
    for line in _opening(study, given):
        _say(line)
    for one in PHASES:
        code = _run(one, study, given) if given["processes"] == 1 else several(one, given["processes"])
        if one == "search" and not code:
            _say(_found(study, given["seeds"]))
        if code:
            click.echo("stopped; the same command resumes", err=True)
            return code
    search_decoding(study, _say)
    for line in [*write_report(study, given["seeds"]), *_next(study)]:
        click.echo(line)
    return 0


def _run(phase: str, study: "Study", given: Mapping[str, Any]) -> int:
    """Do the part of a phase that falls to this process."""
    from weft.tune.report import retrain
    from weft.tune.trial import search

    if phase == "retrain":
        return retrain(study, given["seeds"], _say)
    limits = {name: given[name] for name in ("minutes", "trials", "processes")}
    return search(study, **limits, say=_say)


def _opening(study: "Study", given: Mapping[str, Any]) -> list[str]:
    """What is searched, by which score, until when, and what was tried before."""
    plan = study.plan
    ends = [f"{given['minutes']:g} minutes by the clock"] if given["minutes"] else []
    ends += [plural(given["trials"], "trial")] if given["trials"] else []
    better = "higher" if plan.higher else "lower"
    said = [
        f"searching {', '.join(plan.space)}",
        f"by validation {plan.metric} ({better} is better), for {' or '.join(ends)}",
    ]
    if note := plan.doubt():
        said.append(f"warning: {note}")
    tried = sum(one.state.is_finished() for one in study.trials())
    return said + (
        [f"resuming: {plural(tried, 'trial')}, {study.seconds() / 60:.1f} minutes so far"] if tried else []
    )


def _found(study: "Study", seeds: int) -> str:
    """How many trials there are, and what comes next."""
    count = plural(len(study.trials()), "trial")
    said = f"the search has ended: {count}, {len(study.whole())} trained to the end"
    if not seeds or study.best() is None:
        return said
    return f"{said}; the best and the recipe are now retrained (--seeds {seeds})"


def several(phase: str, count: int) -> int:
    """Run this command in several processes that do one phase; return the first exit code that is not 0."""
    from weft.commands.launch import started

    own = [{WORKER: f"{number}:{phase}"} | _device(number) for number in range(count)]
    with started(sys.argv[1:], own) as children:
        codes = [child.wait() for child in children]
    return next((code if code > 0 else 128 - code for code in codes if code), 0)


def _device(number: int) -> dict[str, str]:
    """The environment variable that gives each process one of several GPUs."""
    import torch

    count = torch.cuda.device_count()
    named = os.environ.get("CUDA_VISIBLE_DEVICES") or ",".join(map(str, range(count)))
    return {"CUDA_VISIBLE_DEVICES": named.split(",")[number % count].strip()} if count > 1 else {}


def _say(text: str) -> None:
    click.echo(f"{time.strftime('%H:%M:%S')} {text}", err=True)


def _next(study: "Study") -> list[str]:
    """What to type next with the best trial, if there is one."""
    from weft.commands.program import typed
    from weft.run.training import check_recipe
    from weft.store.files import is_file

    best = study.best()
    if best is None:
        return []
    run = study.plan.retrained(best.number, 1)
    if not is_file(run / "model.safetensors"):
        return [f"next: {typed('train', study.plan.folder / 'best.yaml')}   # train the best recipe"]
    plan = study.plan
    if check_recipe(plan.table({}, tested=True), plugins=plan.plugins).task.has("test"):
        return [f"next: {typed('evaluate', run)}   # score it on the test split"]
    return [f"next: {typed('show', run)}   # then weft evaluate --data with a file that no trial has seen"]
