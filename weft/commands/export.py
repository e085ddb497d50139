"""weft export: what a run has learnt, in the files of other programs."""

from pathlib import Path

import click


@click.command(short_help="Write a run's word vectors for other programs.")
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--vectors",
    type=click.Path(path_type=Path),
    required=True,
    help="File to write: .txt (word2vec text), .bin (word2vec binary) or .glove (GloVe text).",
)
@click.option("--device", default="auto", help="cpu, cuda or auto.")
def command(run: Path, vectors: Path, device: str) -> None:
    """Write what RUN has learnt to files that other programs read: its word vectors.

    \b
    weft export runs/words --vectors words.txt
    weft export runs/words --vectors words.bin
    """  # noqa: D301  click reads the \b
    from weft.commands import outputs
    from weft.errors import ConfigError
    from weft.run import open_run
    from weft.tasks.abilities import HasVectors

    if vectors.suffix not in (".txt", ".vec", ".bin", ".glove"):
        raise ConfigError(f"--vectors {vectors}: name a file that ends in .txt, .vec, .bin or .glove")
    outputs.check(vectors)
    opened = open_run(run, device=device)
    found = opened.ready.predictor(opened.model)
    if not isinstance(found, HasVectors):
        raise ConfigError(
            f"{run}: expected a run with word vectors, got one of the task {opened.name}; train one with "
            "weft init embeddings"
        )
    found.save(vectors)
    click.echo(f"{len(found.words):,} vectors of {found.matrix.shape[1]} numbers: {vectors}")
