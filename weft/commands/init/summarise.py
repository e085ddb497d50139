"""weft init summarise: look at texts and their summaries and write a commented recipe for them."""

from pathlib import Path

import click


@click.command("summarise", short_help="A summariser for texts.")
@click.option(
    "--train", type=click.Path(path_type=Path), required=True, help="A .tsv, or PREFIX of two files."
)
@click.option("--text", default="text", show_default=True, help="Column, or file ending, of the texts.")
@click.option("--summary", default="summary", show_default=True, help="That of the summaries.")
@click.option(
    "--valid", type=click.Path(path_type=Path), help="Validation files; found beside the others if so named."
)
@click.option("--test", type=click.Path(path_type=Path), help="Test files, likewise.")
@click.option(
    "--output", "-o", type=click.Path(path_type=Path), help="Recipe to write; summarise.yaml by default."
)
def command(
    train: Path, text: str, summary: str, valid: Path | None, test: Path | None, output: Path | None
) -> None:
    """A summariser for texts and their summaries, two columns of a TSV file or two files.

    \b
    weft init summarise --train data/train.tsv --text article --summary headline
    """  # noqa: D301  click reads the \b
    from weft.commands import outputs
    from weft.tasks.summarise.init import recipe

    output = outputs.fresh(output or Path("summarise.yaml"))
    written = recipe(train, valid, test, text, summary)
    outputs.begin(output, written)
