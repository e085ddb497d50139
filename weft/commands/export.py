"""weft export: write a trained run in the form of another program."""

from pathlib import Path

import click

from weft.commands.options import ListingCommand, device, plugin
from weft.commands.outputs import check_outputs, output_option
from weft.errors import ConfigError
from weft.wording import plural


def _listed() -> list[tuple[str, str]]:
    from weft import rooms
    from weft.export import formats
    from weft.export.format import Format

    found: dict[str, type[Format]] = rooms.parts(formats, Format)
    return [(name, form.about) for name, form in found.items()]


@click.command(cls=ListingCommand, heading="Formats", listed=_listed)
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--to", metavar="FORMAT", help="Program to write for; the list is below.")
@output_option(
    "--output",
    "-o",
    metavar="PATH",
    help="Directory to create (argos: a file; web: a file if it ends in .html); it must not exist. "
    "Default: the run's name and the format, such as en-es.html or en-es-onnx, in the current directory.",
)
@click.option(
    "--int8/--float32",
    default=None,
    help="Store weights as 8-bit integers (smaller) or in full. Default: in full; web: 8-bit integers.",
)
@output_option(
    "--vectors",
    help="Instead of --to: write the word vectors. The file's ending sets the format: .txt or .vec (word2vec "
    "text), .bin (word2vec binary), .glove (GloVe text).",
)
@device
@plugin
def command(
    run: Path,
    to: str | None,
    output: Path | None,
    int8: bool | None,
    vectors: Path | None,
    device: str,
    plugins: tuple[str, ...],
) -> None:
    """Write the model of RUN for another program, and compare the two.

    \b
    Examples:
      weft export runs/demo-en-es --to web
      weft export runs/demo-en-es --to onnx --output demo-onnx
      weft export runs/demo-en-es --to onnx --int8 --output demo-int8
      weft export runs/words --vectors words.txt
    """  # noqa: D301  click reads the \b
    from weft.export.format import export_run

    if vectors is not None:
        if to or output or int8 is not None:
            raise ConfigError("--vectors: writes one file of word vectors; leave out the other options")
        _vectors(run, vectors, device)
        return
    if to is None:
        raise ConfigError("expected --to FORMAT or --vectors FILE; weft export --help lists the formats")
    for line in export_run(run, to, output, int8, plugins=plugins):
        click.echo(line)


def _vectors(run: Path, vectors: Path, device: str) -> None:
    """Write word vectors."""
    from weft.run import open_run
    from weft.tasks.abilities import HasVectors

    if vectors.suffix not in (".txt", ".vec", ".bin", ".glove"):
        raise ConfigError(f"--vectors {vectors}: expected a file that ends in .txt, .vec, .bin or .glove")
    check_outputs()
    opened = open_run(run, device=device)
    found = opened.pipeline.predictor(opened.model)
    if not isinstance(found, HasVectors):
        raise ConfigError(
            f"{run}: expected a run with word vectors, got one of the task {opened.name}; train one with "
            "weft init embeddings"
        )
    found.save(vectors)
    counts = plural(len(found.words), "word vector"), plural(found.matrix.shape[1], "dimension")
    click.echo(f"{' with '.join(counts)}: {vectors}")
    click.echo(
        f"to train a tagger or classifier with them, add model.embedding.vectors={vectors} to its command"
    )
