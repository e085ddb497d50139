"""weft init language: look at a text and write a commented recipe for it."""

import shlex
from pathlib import Path
from typing import Any

import click

from weft.commands.program import program


@click.command("language", short_help="A language model for plain text.")
@click.option("--train", type=click.Path(path_type=Path), required=True, help="A text file, also .gz.")
@click.option(
    "--valid", type=click.Path(path_type=Path), help="Validation file; found beside the other if so named."
)
@click.option("--test", type=click.Path(path_type=Path), help="Test file, likewise.")
@click.option(
    "--kind", type=click.Choice(["space", "word", "character", "bpe"]), help="Tokens; by the text's looks."
)
@click.option(
    "--model", type=click.Choice(["lstm", "gpt"]), default="lstm", show_default=True, help="Which model."
)
@click.option(
    "--output", "-o", type=click.Path(path_type=Path), help="Recipe to write; language.yaml by default."
)
def command(
    train: Path, valid: Path | None, test: Path | None, kind: Any, model: Any, output: Path | None
) -> None:
    """A language model for plain text.

    \b
    weft init language --train plays.txt --kind character --model gpt
    """  # noqa: D301  click reads the \b
    from weft.commands import outputs
    from weft.errors import ConfigError
    from weft.tasks.prose.recipe import recipe

    output = output or Path("language.yaml")
    if output.exists():
        raise ConfigError(f"{output}: is there already; remove it or choose another name with --output")
    outputs.check(output)
    text = recipe(train, valid, test, kind=kind, model=model)
    outputs.write(output, text)
    click.echo(text)
    check, train_it = ["data", "check", str(train), "--task", "language"], ["train", str(output)]
    steps = "".join(f"  {shlex.join([program(), *step])}\n" for step in (check, train_it))
    click.echo(f"written to {output}\nnext:\n{steps}", nl=False)
