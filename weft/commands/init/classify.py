"""weft init classify: look at labelled texts and write a commented recipe for them."""

import shlex
from pathlib import Path

import click

from weft.commands.program import program


@click.command("classify", short_help="A classifier for texts.")
@click.option(
    "--train", type=click.Path(path_type=Path), required=True, help="__label__x lines, .tsv or .csv."
)
@click.option(
    "--valid", type=click.Path(path_type=Path), help="Validation file; found beside the other if so named."
)
@click.option("--test", type=click.Path(path_type=Path), help="Test file, likewise.")
@click.option("--text", default="text", show_default=True, help="Column of a table that holds the text.")
@click.option("--label", default="label", show_default=True, help="Column of a table that holds the class.")
@click.option(
    "--output", "-o", type=click.Path(path_type=Path), help="Recipe to write; classify.yaml by default."
)
def command(
    train: Path,
    valid: Path | None,
    test: Path | None,
    text: str,
    label: str,
    output: Path | None,
) -> None:
    """A classifier for texts.

    \b
    weft init classify --train reviews.tsv --label stars
    """  # noqa: D301  click reads the \b
    from weft.commands import outputs
    from weft.errors import ConfigError
    from weft.tasks.labels.recipe import recipe

    output = output or Path("classify.yaml")
    if output.exists():
        raise ConfigError(f"{output}: is there already; remove it or choose another name with --output")
    outputs.check(output)
    text_ = recipe(train, valid, test, text=text, label=label)
    outputs.write(output, text_)
    click.echo(text_)
    check, train_it = ["data", "check", str(train), "--task", "classify"], ["train", str(output)]
    steps = "".join(f"  {shlex.join([program(), *step])}\n" for step in (check, train_it))
    click.echo(f"written to {output}\nnext:\n{steps}", nl=False)
