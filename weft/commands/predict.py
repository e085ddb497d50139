"""weft predict: lines in, the same number of answers out, in order."""

import io
import sys
from pathlib import Path

import click


@click.command(short_help="Answer each line of a file or of standard input.")
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("--beam", type=int, help="Hypotheses kept; 1 is greedy. The recipe's by default.")
@click.option("--nbest", type=int, default=1, show_default=True, help="Answers a line, each on its own line.")
@click.option(
    "--scores", is_flag=True, help="Put the normalised log-probability and a tab before each answer."
)
@click.option("--sample", is_flag=True, help="Draw answers instead of searching the best one.")
@click.option("--temperature", type=float, help="Of sampling.")
@click.option("--top-k", type=int, help="Sample among the k likeliest tokens only.")
@click.option(
    "--top-p", type=float, help="Sample among the likeliest tokens that hold this much probability."
)
@click.option("--seed", type=int, help="Of sampling.")
@click.option("--length-penalty", type=float, help="Exponent of the length that a score is divided by.")
@click.option(
    "--alignments", type=click.Path(path_type=Path), help="Write Pharaoh alignments of words (0-0 1-2)."
)
@click.option(
    "--plot",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Draw where each answer looked: DIR/1.png and .svg, ...",
)
@click.option("--plot-limit", type=int, default=20, show_default=True, help="Lines that are drawn at most.")
@click.option("--device", default="auto", help="cpu, cuda or auto.")
@click.option("--plugin", "plugins", multiple=True, help="A package of yours whose parts the recipe names.")
def command(
    run: Path,
    file: Path | None,
    beam: int | None,
    nbest: int,
    scores: bool,
    sample: bool,
    temperature: float | None,
    top_k: int | None,
    top_p: float | None,
    seed: int | None,
    length_penalty: float | None,
    alignments: Path | None,
    plot: Path | None,
    plot_limit: int,
    device: str,
    plugins: tuple[str, ...],
) -> None:
    """Answer each line of FILE, or of standard input, with the model of RUN.

    \b
    weft predict runs/en-es < in.txt > out.txt
    echo "Click the button." | weft predict runs/en-es --nbest 3 --scores
    weft predict runs/en-es in.txt --plot pictures --alignments out.pharaoh
    """  # noqa: D301  click reads the \b
    from weft.data.lines import read_lines
    from weft.errors import ConfigError
    from weft.inspect.looks import Looks
    from weft.run import open_run

    if plot and plot.suffix.lower() in (".png", ".svg", ".pdf", ".jpg", ".jpeg"):
        raise ConfigError(f"--plot {plot}: a directory is needed, one picture a line goes into it; name one")
    opened = open_run(run, device=device, plugins=plugins)
    decoding = opened.task.decoding_with(
        search="sample" if sample else None,
        beam=beam,
        nbest=nbest,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        seed=seed,
        length_penalty=length_penalty,
    )
    translator = opened.task.predictor(opened.model, decoding)
    if file is None and sys.stdin.isatty():
        click.echo("type a line and press Enter; Ctrl-D ends", err=True)
    # As the input is read: UTF-8 and LF, whatever the terminal's or the system's own ways are.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    lines = read_lines(sys.stdin.buffer if file is None else file)
    with Looks(translator, alignments, plot, plot_limit) as looks:
        typed = file is None and sys.stdin.isatty()
        for line, found in translator.pairs(lines, **({"window": 1} if typed else {})):
            for answer in found:
                click.echo(f"{answer.score:.4f}\t{answer.text}" if scores else answer.text)
            looks.see(line, found[0])
    if looks.drawn:
        click.echo(f"{looks.drawn} alignment pictures: {plot}", err=True)
