"""weft init embeddings: look at a text and write a commented recipe for vectors of its words."""

from pathlib import Path

import click


@click.command("embeddings", short_help="Vectors for the words of a text.")
@click.option("--train", type=click.Path(path_type=Path), required=True, help="Plain text, also compressed.")
@click.option("--test", type=click.Path(path_type=Path), help="Word pairs with a similarity, or analogies.")
@click.option(
    "--output", "-o", type=click.Path(path_type=Path), help="Recipe to write; embeddings.yaml by default."
)
def command(train: Path, test: Path | None, output: Path | None) -> None:
    """Vectors for the words of a text.

    \b
    weft init embeddings --train text.txt
    """  # noqa: D301  click reads the \b
    from weft.commands import outputs
    from weft.tasks.embeddings.init import recipe

    output = outputs.fresh(output or Path("embeddings.yaml"))
    text = recipe(train, test)
    outputs.begin(output, text, ["data", "check", "--task", "embeddings", str(train)])
