"""weft init classify: look at labelled texts and write a commented recipe for them."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from weft.data.labelled import Labels


@click.command("classify", short_help="A classifier for texts.")
@click.option(
    "--train", type=click.Path(path_type=Path), required=True, help="__label__x lines, .tsv or .csv."
)
@click.option(
    "--valid", type=click.Path(path_type=Path), help="Validation file; found beside the other if so named."
)
@click.option("--test", type=click.Path(path_type=Path), help="Test file, likewise.")
@click.option("--text", help="Column of a table that holds the text; guessed, and printed, by default.")
@click.option("--label", help="Column of a table that holds the class; guessed by default.")
@click.option(
    "--labels",
    type=click.Choice(["marked", "first", "coarse"]),
    default="marked",
    show_default=True,
    help="Of lines: __label__x (marked), the first word is the class, or that word up to its colon (coarse).",
)
@click.option("--encoding", default="utf-8", show_default=True, help="Of the files, such as latin-1.")
@click.option(
    "--output", "-o", type=click.Path(path_type=Path), help="Recipe to write; classify.yaml by default."
)
def command(
    train: Path,
    valid: Path | None,
    test: Path | None,
    text: str | None,
    label: str | None,
    labels: "Labels",
    encoding: str,
    output: Path | None,
) -> None:
    """A classifier for texts.

    \b
    weft init classify --train reviews.tsv --label stars
    weft init classify --train train_5500.label --labels coarse --encoding latin-1
    """  # noqa: D301  click reads the \b
    from weft.commands import outputs
    from weft.tasks.classify.columns import columns
    from weft.tasks.classify.init import recipe

    text, label, note = columns(train, text, label, encoding)
    if note:
        click.echo(note)
    output = outputs.fresh(output or Path("classify.yaml"))
    text_ = recipe(train, valid, test, text=text, label=label, labels=labels, encoding=encoding)
    named = (
        ("--text", text, "text"),
        ("--label", label, "label"),
        ("--labels", labels, "marked"),
        ("--encoding", encoding, "utf-8"),
    )
    options = [word for option, name, usual in named if name != usual for word in (option, name)]
    outputs.begin(output, text_, ["data", "check", str(train), "--task", "classify", *options])
