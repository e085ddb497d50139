"""weft init embeddings: look at a text and write a commented recipe for vectors of its words."""

import shlex
from pathlib import Path

import click

from weft.commands.program import program


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
    from weft.errors import ConfigError
    from weft.tasks.words.recipe import recipe

    output = output or Path("embeddings.yaml")
    if output.exists():
        raise ConfigError(f"{output}: is there already; remove it or choose another name with --output")
    outputs.check(output)
    text = recipe(train, test)
    outputs.write(output, text)
    click.echo(text)
    check = ["data", "check", "--task", "embeddings", str(train)]
    steps = "".join(f"  {shlex.join([program(), *step])}\n" for step in (check, ["train", str(output)]))
    click.echo(f"written to {output}\nnext:\n{steps}", nl=False)
