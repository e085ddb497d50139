"""weft export: write word vectors in the formats of other programs."""

from pathlib import Path

import click

from weft.commands.options import device


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--vectors",
    metavar="FILE",
    type=click.Path(path_type=Path),
    required=True,
    help="File to write; its ending sets the format: .txt or .vec (word2vec text), .bin (word2vec binary), "
    ".glove (GloVe text).",
)
@device
def command(run: Path, vectors: Path, device: str) -> None:
    """Write the word vectors of RUN to a file that other programs can read.

    \b
    Examples:
      weft export runs/words --vectors words.txt
      weft export runs/words --vectors words.bin
    """  # noqa: D301  click reads the \b
    from weft.commands import outputs
    from weft.errors import ConfigError
    from weft.run import open_run
    from weft.tasks.abilities import HasVectors

    if vectors.suffix not in (".txt", ".vec", ".bin", ".glove"):
        raise ConfigError(f"--vectors {vectors}: expected a file that ends in .txt, .vec, .bin or .glove")
    outputs.check(vectors)
    opened = open_run(run, device=device)
    found = opened.ready.predictor(opened.model)
    if not isinstance(found, HasVectors):
        raise ConfigError(
            f"{run}: expected a run with word vectors, got one of the task {opened.name}; train one with "
            "weft init embeddings"
        )
    found.save(vectors)
    click.echo(f"{len(found.words):,} word vectors with {found.matrix.shape[1]} dimensions: {vectors}")
