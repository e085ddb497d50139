"""weft init draw: look at pictures with captions and write a commented recipe for them."""

from pathlib import Path

import click


@click.command("draw", short_help="Pictures for captions.")
@click.option(
    "--train",
    type=click.Path(path_type=Path),
    required=True,
    help=".tsv (IMAGE TAB CAPTION), .jsonl, or COCO's .json.",
)
@click.option(
    "--images", type=click.Path(path_type=Path), help="Folder of the pictures; beside the captions."
)
@click.option("--valid", type=click.Path(path_type=Path), help="Validation captions; found if so named.")
@click.option("--test", type=click.Path(path_type=Path), help="Test captions, likewise.")
@click.option(
    "--output", "-o", type=click.Path(path_type=Path), help="Recipe to write; draw.yaml by default."
)
def command(
    train: Path, images: Path | None, valid: Path | None, test: Path | None, output: Path | None
) -> None:
    """Pictures for captions.

    \b
    weft init draw --train photos/train.tsv --images photos
    """  # noqa: D301  click reads the \b
    from weft.commands import outputs
    from weft.tasks.pictures.recipe import caption_recipe

    output = outputs.fresh(output or Path("draw.yaml"))
    text = caption_recipe(train, valid, test, images, draws=True)
    outputs.begin(output, text, ["data", "check", str(train), "--task", "draw"])
