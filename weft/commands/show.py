"""weft show: print the sizes, scores, checkpoints and recipe of a run."""

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weft.commands.options import plugin
from weft.wording import columns, folded

if TYPE_CHECKING:
    from weft.train.checkpoints import Checkpoints

SOLVED = {
    "start",
    "seed",
    "precision",
    "device",
    "metric",
    "metrics",
    "refit",
    "deterministic",
    "tensorboard",
}
"""The settings of the section training that a model has that is solved at once, without updates."""


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--all", "every", is_flag=True, help="List the settings too that have no effect beside others.")
@plugin
def command(run: Path, every: bool, plugins: tuple[str, ...]) -> None:
    """Print the sizes, scores, checkpoints and recipe of RUN, with all defaults."""
    from weft.config import dump
    from weft.run import open_run
    from weft.train.checkpoints import Checkpoints

    opened = open_run(run, device="cpu", plugins=plugins)
    click.echo("parameters (shared ones counted once)")
    seen: set[int] = set()
    total = 0
    for name, part in opened.model.named_children():
        own = [p for p in part.parameters() if id(p) not in seen]
        seen |= {id(p) for p in own}
        count = sum(p.numel() for p in own)
        total += count
        if count:
            click.echo(f"  {name:<14}{count:>12,}")
    click.echo(f"  {'all':<14}{total:>12,}\n")
    checkpoints = Checkpoints(run, lambda text: click.echo(f"warning: {text}", err=True))
    index = checkpoints.index()
    for entry in index.validations:
        scores = "  ".join(f"{name} {value:.3f}" for name, value in entry.scores.items() if value is not None)
        mark = "  <- best" if entry.update == index.best else ""
        click.echo(f"update {entry.update:>8,}  {scores}{mark}")
    if index.mean is not None and index.mean.taken:
        click.echo(f"the model is the mean of updates {', '.join(map(str, index.mean.of))}")
    if opened.pipeline.refit:
        click.echo(
            "then trained again in the same way on the validation examples too (training.refit): the scores "
            "are those of the model before"
        )
    kept = sorted(path.name for path in (run / "checkpoints").glob("step-*"))
    click.echo(f"checkpoints: {', '.join(kept) or 'none'}\n")
    for line in _machine(checkpoints):
        click.echo(line)
    unused = () if every else opened.task.unused()
    if not unused:
        click.echo("recipe, with all defaults")
        click.echo((run / "recipe.yaml").read_text("utf-8").rstrip())
        return
    click.echo("recipe, with all defaults that have an effect; --all lists the others too")
    click.echo(dump(_acting(opened.recipe.plain(), unused)).rstrip())


def _acting(plain: dict[str, Any], unused: Sequence[str]) -> dict[str, Any]:
    """A recipe without the settings that have no effect."""
    found = copy.deepcopy(plain)
    for key in unused:
        *above, name = key.split(".")
        inside = found
        for section in above:
            inside = inside[section]
        if above:
            inside.pop(name, None)
        else:
            found[name] = {one: value for one, value in found[name].items() if one in SOLVED}
    return found


def _machine(checkpoints: "Checkpoints") -> list[str]:
    """The machine and the precision of the training, from the newest checkpoint."""
    saved = checkpoints.newest()
    if saved is None or not saved.state.about.machine:
        return []
    about = saved.state.about
    line = f"trained on {about.machine}{f', in {about.precision}' if about.precision else ''}"
    return [folded(line, columns()), ""]
