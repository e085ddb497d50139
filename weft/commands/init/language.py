"""weft init language: look at a text and write a commented recipe for it."""

from pathlib import Path
from typing import Any

import click


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
    from weft.tasks.language.init import recipe

    output = outputs.fresh(output or Path("language.yaml"))
    text = recipe(train, valid, test, kind=kind, model=model)
    outputs.begin(output, text, ["data", "check", str(train), "--task", "language"])
