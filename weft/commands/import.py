"""weft import: turn a checkpoint of transformers or of another translation toolkit into a run."""

from pathlib import Path
from typing import Any

import click

from weft.commands.options import ListingCommand, file_option
from weft.commands.program import piped


def _listed() -> list[tuple[str, str]]:
    from weft.importing.kits import KITS

    return [(kit.name, kit.looks) for kit in KITS]


@click.command(cls=ListingCommand, heading="Checkpoints of translation toolkits", listed=_listed)
@click.argument("checkpoint", type=click.Path(path_type=Path))
@file_option("--run", metavar="DIR", required=True, help="Run directory to create.")
@click.option(
    "--task",
    metavar="TASK",
    show_default="a translator",
    help="Encoder-decoders of transformers only: translate or summarise.",
)
@click.option("--source", metavar="LANG", help="Translators only: source language, such as en.")
@click.option("--target", metavar="LANG", help="Translators only: target language, such as de.")
@click.option(
    "--train",
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
@file_option(
    "--vocabulary",
    multiple=True,
    help="Vocabulary, if it is not next to the checkpoint; give it twice for source and target.",
)
@file_option(
    "--subwords",
    multiple=True,
    help="BPE codes or SentencePiece model, if not next to the checkpoint; twice for source and target.",
)
def command(checkpoint: Path, run: Path, **given: Any) -> None:
    """Turn a CHECKPOINT of another program into a run that every weft command can use.

    From transformers: Marian, BART, mBART, Pegasus, M2M100, NLLB, T5 and mT5 become translators, or
    summarisers with --task summarise; GPT-2, OPT, GPT-NeoX, Llama, Mistral, Qwen2, Qwen3 and Gemma become
    language models; BERT, RoBERTa, XLM-R, DistilBERT and ModernBERT become masked language models, or (except
    ModernBERT) classifiers. Any of these can start a tagger: weft init tag --start RUN.
    CHECKPOINT is a directory with config.json, the weights (model.safetensors or pytorch_model.bin, or
    several files and their index) and tokenizer.json (for Marian instead source.spm, target.spm and
    vocab.json).

    From translation toolkits: the checkpoints listed below become translators. Nothing is downloaded, and
    nothing is unpickled.

    \b
    Examples:
      weft import opus-mt-en-de --run runs/opus --source en --target de
      weft predict runs/opus < text.en
      weft import nllb --run runs/nllb --source eng_Latn --target spa_Latn
      weft import bart-large-cnn --run runs/cnn --task summarise
      weft import gpt2 --run runs/gpt2
      weft import models/iwslt14 --run runs/iwslt14
      weft import model.npz --run runs/marian --source en --target de
    """  # noqa: D301  click reads the \b
    from weft.config import read_recipe
    from weft.importing.runs import import_run
    from weft.run.training import check_recipe

    click.echo(import_run(checkpoint, run, **given))
    example = check_recipe(read_recipe(run / "recipe.yaml")).task.predict_example(())
    assert example is not None, "a run without text"
    click.echo(f"next: {piped(example.line, 'predict', run, *example.words)}")
