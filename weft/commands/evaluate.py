"""weft evaluate: how good a run is on held-out data, with signatures, intervals and floors."""

from pathlib import Path

import click


@click.command(short_help="Score a run on held-out data.")
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--data", type=click.Path(path_type=Path), help="Prefix of files, or a .tsv, instead of the recipe's."
)
@click.option(
    "--split", type=click.Choice(["test", "valid"]), default="test", help="Split of the recipe's data."
)
@click.option("--beam", type=int, help="Hypotheses kept; 1 is greedy. The recipe's by default.")
@click.option("--length-penalty", type=float, help="Exponent of the length that a score is divided by.")
@click.option("--lowercase", is_flag=True, help="BLEU and chrF in small letters, as some papers have it.")
@click.option("--output", type=click.Path(path_type=Path), help="Write the outputs here, a line each.")
@click.option("--plot", type=click.Path(path_type=Path), help="Draw BLEU by source length (.png or .svg).")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
@click.option("--device", default="auto", help="cpu, cuda or auto.")
@click.option("--plugin", "plugins", multiple=True, help="A package of yours whose parts the recipe names.")
def command(
    run: Path,
    data: Path | None,
    split: str,
    beam: int | None,
    length_penalty: float | None,
    lowercase: bool,
    output: Path | None,
    plot: Path | None,
    json_path: Path | None,
    device: str,
    plugins: tuple[str, ...],
) -> None:
    """Score RUN on the test split of its data, or on other files.

    Each score comes with how it was computed (its signature) and a 95 % interval. Beside them stand floors:
    what copying the source, or the translation of the nearest training sentence, would score.

    \b
    weft evaluate runs/en-es
    weft evaluate runs/en-es --data more/newstest --beam 1
    """  # noqa: D301  click reads the \b
    from weft.commands import outputs
    from weft.errors import ConfigError
    from weft.run import open_run

    outputs.check(output, json_path)
    if plot and plot.suffix.lower() not in (".png", ".svg"):
        raise ConfigError(f"--plot {plot}: pictures are written as .png or .svg; name such a file")
    opened = open_run(run, device=device, plugins=plugins)
    decoding = opened.task.decoding_with(beam=beam, length_penalty=length_penalty)
    report = opened.task.evaluate(
        opened.model, split=split, data=data, decoding=decoding, lowercase=lowercase
    )
    click.echo(report.text())
    if output:
        outputs.write(output, "".join(f"{line}\n" for line in report.outputs))
        click.echo(f"outputs: {output}")
    if plot:
        from weft.inspect.quality import quality_by_length, save

        save(quality_by_length({run.resolve().name: report.lengths}, title=report.title), plot)
        click.echo(f"BLEU by source length: {plot}")
    if json_path:
        outputs.write(json_path, report.json())
