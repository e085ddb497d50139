"""weft import: a checkpoint of the transformers library becomes a run."""

from pathlib import Path

import click

from weft.commands.program import typed


@click.command(short_help="Turn a checkpoint of the transformers library into a run.")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--run", type=click.Path(path_type=Path), required=True, help="The run directory to make.")
@click.option("--source", help="Language code of what a translator reads.")
@click.option("--target", help="Language code of what a translator writes.")
@click.option(
    "--train",
    "training",
    default="train",
    show_default=True,
    help="Text to train on later, or its prefix.",
)
@click.option("--valid", default="valid", show_default=True, help="Text to validate it with, or its prefix.")
def command(
    directory: Path, run: Path, source: str | None, target: str | None, training: str, valid: str
) -> None:
    """Make a run of DIRECTORY, which holds config.json, model.safetensors and tokenizer.json.

    In place of tokenizer.json, a Marian model may have source.spm, target.spm and vocab.json. Marian and BART
    models become translators, GPT-2 a language model.

    \b
    weft import opus-mt-en-de --run runs/opus --source en --target de
    weft predict runs/opus < text.en
    weft import gpt2 --run runs/gpt2
    """  # noqa: D301  click reads the \b
    from weft.importing.runs import import_run

    click.echo(import_run(directory, run, source=source, target=target, train=training, valid=valid))
    click.echo(f"next: {typed('predict', run)} < FILE")
