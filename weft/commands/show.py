"""weft show: print the sizes, scores, checkpoints and recipe of a run."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from weft.commands.options import plugin
from weft.wording import columns, folded

if TYPE_CHECKING:
    from weft.train.checkpoints import Checkpoints


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@plugin
def command(run: Path, plugins: tuple[str, ...]) -> None:
    """Print the sizes, scores, checkpoints and full recipe of RUN."""
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
    click.echo("recipe, with all defaults")
    click.echo((run / "recipe.yaml").read_text("utf-8").rstrip())


def _machine(checkpoints: "Checkpoints") -> list[str]:
    """The machine and the precision of the training, from the newest checkpoint."""
    saved = checkpoints.newest()
    if saved is None or not saved.state.about.machine:
        return []
    about = saved.state.about
    line = f"trained on {about.machine}{f', in {about.precision}' if about.precision else ''}"
    return [folded(line, columns()), ""]
