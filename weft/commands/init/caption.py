"""weft init caption: look at pictures with captions and write a commented recipe for them."""

from pathlib import Path

import click

from weft.commands.pictured import pictured


@click.command("caption", short_help="Captions for pictures.")
@pictured("caption")
def command(
    train: Path, images: Path | None, valid: Path | None, test: Path | None, output: Path | None
) -> None:
    """Captions for pictures.

    \b
    weft init caption --train photos/train.tsv --images photos
    """  # noqa: D301  click reads the \b
    from weft.commands import outputs
    from weft.tasks.shared.pictures.init import caption_recipe

    output = outputs.fresh(output or Path("caption.yaml"))
    text = caption_recipe(train, valid, test, images)
    outputs.begin(output, text, ["data", "check", str(train), "--task", "caption"])
