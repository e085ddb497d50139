"""weft init draw: look at pictures with captions and write a commented recipe for them."""

from pathlib import Path

import click

from weft.commands.pictured import pictured


@click.command("draw", short_help="Pictures for captions.")
@pictured("draw")
def command(
    train: Path, images: Path | None, valid: Path | None, test: Path | None, output: Path | None
) -> None:
    """Pictures for captions.

    \b
    weft init draw --train photos/train.tsv --images photos
    """  # noqa: D301  click reads the \b
    from weft.commands import outputs
    from weft.tasks.shared.pictures.init import caption_recipe

    output = outputs.fresh(output or Path("draw.yaml"))
    text = caption_recipe(train, valid, test, images, draws=True)
    outputs.begin(output, text, ["data", "check", str(train), "--task", "draw"])
