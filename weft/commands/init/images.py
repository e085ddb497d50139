"""weft init images: look at a folder for each class and write a commented recipe for its pictures."""

from pathlib import Path

import click


@click.command("images", short_help="A classifier for pictures or clips.")
@click.option(
    "--train",
    type=click.Path(path_type=Path),
    required=True,
    help="A folder with a folder for each class: pictures, or clips as .gif or .npy.",
)
@click.option("--valid", type=click.Path(path_type=Path), help="Validation folder; found if so named.")
@click.option("--test", type=click.Path(path_type=Path), help="Test folder, likewise.")
@click.option(
    "--output", "-o", type=click.Path(path_type=Path), help="Recipe to write; images.yaml by default."
)
def command(train: Path, valid: Path | None, test: Path | None, output: Path | None) -> None:
    """A classifier for pictures or clips.

    \b
    weft init images --train photos/train
    """  # noqa: D301  click reads the \b
    from weft.commands import outputs
    from weft.tasks.shared.pictures.init import images_recipe

    output = outputs.fresh(output or Path("images.yaml"))
    text = images_recipe(train, valid, test)
    outputs.begin(output, text, ["data", "check", str(train), "--task", "images"])
