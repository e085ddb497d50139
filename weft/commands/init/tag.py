"""weft init tag: look at tagged sentences and write a commented recipe for them."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from weft.data.conllu import Column


@click.command("tag", short_help="A tagger for words in sentences.")
@click.option(
    "--train", type=click.Path(path_type=Path), required=True, help="CoNLL-U, or lines word TAB tag."
)
@click.option(
    "--valid", type=click.Path(path_type=Path), help="Validation file; found beside the other if so named."
)
@click.option("--test", type=click.Path(path_type=Path), help="Test file, likewise.")
@click.option("--column", type=click.Choice(["upos", "xpos", "feats"]), default="upos", help="Of CoNLL-U.")
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Recipe to write; tag.yaml by default.")
def command(
    train: Path,
    valid: Path | None,
    test: Path | None,
    column: "Column",
    output: Path | None,
) -> None:
    """A tagger for words in sentences.

    \b
    weft init tag --train en_ewt-ud-train.conllu
    """  # noqa: D301  click reads the \b
    from weft.commands import outputs
    from weft.tasks.tag.init import recipe

    output = outputs.fresh(output or Path("tag.yaml"))
    text_ = recipe(train, valid, test, column=column)
    outputs.begin(output, text_, ["data", "check", str(train)])
