"""weft import: turn a Hugging Face transformers checkpoint into a run."""

from pathlib import Path

import click

from weft.commands.program import typed


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@click.option(
    "--run", metavar="DIR", type=click.Path(path_type=Path), required=True, help="Run directory to create."
)
@click.option("--source", metavar="LANG", help="Translators only: source language, such as en.")
@click.option("--target", metavar="LANG", help="Translators only: target language, such as de.")
@click.option(
    "--train",
    "training",
    metavar="FILE",
    default="train",
    help="Training text for later fine-tuning: a file or a prefix.",
)
@click.option(
    "--valid",
    metavar="FILE",
    default="valid",
    help="Validation text for later fine-tuning: a file or a prefix.",
)
def command(
    directory: Path, run: Path, source: str | None, target: str | None, training: str, valid: str
) -> None:
    """Turn the transformers checkpoint in DIRECTORY into a run that every weft command can use.

    Marian and BART models become translators; GPT-2 becomes a language model. DIRECTORY must contain
    config.json, model.safetensors or pytorch_model.bin, and tokenizer.json (Marian also: source.spm,
    target.spm and vocab.json). Nothing is downloaded, and nothing is unpickled.

    \b
    Examples:
      weft import opus-mt-en-de --run runs/opus --source en --target de
      weft predict runs/opus < text.en
      weft import gpt2 --run runs/gpt2
    """  # noqa: D301  click reads the \b
    from weft.importing.runs import import_run

    click.echo(import_run(directory, run, source=source, target=target, train=training, valid=valid))
    click.echo(f"next: {typed('predict', run)} < FILE")
