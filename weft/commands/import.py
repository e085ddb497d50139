"""weft import: a checkpoint of the transformers library becomes a run."""

import shlex
from pathlib import Path

import click

from weft.commands.program import program


@click.command(short_help="Turn a checkpoint of the transformers library into a run.")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--run", type=click.Path(path_type=Path), required=True, help="The run directory to make.")
@click.option("--source", default="source", show_default=True, help="Language code of what it reads.")
@click.option("--target", default="target", show_default=True, help="Language code of what it writes.")
@click.option(
    "--train", "training", default="train", show_default=True, help="Prefix of files to train it on later."
)
@click.option(
    "--valid", default="valid", show_default=True, help="Prefix of files to validate it with later."
)
def command(directory: Path, run: Path, source: str, target: str, training: str, valid: str) -> None:
    """Make a run of DIRECTORY (config.json, model.safetensors, tokenizer.json) of a Marian or BART model.

    \b
    weft import opus-mt-en-de --run runs/opus --source en --target de
    weft predict runs/opus < text.en
    weft evaluate runs/opus --data test
    """  # noqa: D301  click reads the \b
    from weft.importing.runs import import_run

    click.echo(import_run(directory, run, source=source, target=target, train=training, valid=valid))
    click.echo(f"next: {shlex.join([program(), 'predict', str(run)])} < FILE")
