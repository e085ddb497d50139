"""weft predict: inputs in, the same number of answers out, in order."""

import io
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from weft.commands.searching import searching

if TYPE_CHECKING:
    from weft.figures.answers import Pictures
    from weft.tasks.predictor import Predictor

UNANSWERED = 3
"""The exit code where some inputs have no answer and all others have one."""

COMMON = ("run", "file", "plot_limit", "changes", "device", "plugins", "output", "processes", "ray")


@click.command(short_help="Answer each line of a file or of standard input.")
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("--beam", type=int, help="Hypotheses kept; 1 is greedy. The recipe's by default.")
@click.option("--nbest", type=int, help="Answers a line, each on its own line; 1 by default.")
@click.option(
    "--scores",
    is_flag=True,
    help="With scores: of translations, a normalised log-probability and a tab before each.",
)
@click.option("--sample", is_flag=True, help="Draw answers instead of searching the best one.")
@click.option("--temperature", type=float, help="Of sampling.")
@click.option("--top-k", type=int, help="Sample among the k likeliest tokens only.")
@click.option(
    "--top-p", type=float, help="Sample among the likeliest tokens that hold this much probability."
)
@click.option("--seed", type=int, help="Of sampling.")
@click.option("--length-penalty", type=float, help="Exponent of the length that a score is divided by.")
@searching
@click.option(
    "--alignments", type=click.Path(path_type=Path), help="Write Pharaoh alignments of words (0-0 1-2)."
)
@click.option(
    "--plot",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Draw each answer, such as where it looked: DIR/1.png and .svg, ...; forecasts: DIR/SERIES.png.",
)
@click.option("--plot-limit", type=int, default=20, show_default=True, help="Lines that are drawn at most.")
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="KEY=VALUE",
    help="Any setting of the recipe's section decoding, such as beam=3.",
)
@click.option("--coco", is_flag=True, help="Of captions: write COCO's results, [{image_id, caption}, ...].")
@click.option("--source", help="Of a model of many languages: the one that is read, if its prompt names it.")
@click.option("--target", help="Of a model of many languages: the one to write.")
@click.option(
    "--series", multiple=True, help="Of forecasts: a series by its name (repeatable); all by default."
)
@click.option(
    "--future",
    type=click.Path(path_type=Path),
    help="Of forecasts: a table with the covariates that are known ahead, for the times to forecast.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="Write the answers to this file, atomically. Where lines are answered one by one, the same "
    "command resumes after an interruption. Forecasts are written as Parquet if PATH ends in .parquet.",
)
@click.option(
    "--processes",
    type=click.IntRange(1),
    help="Answer with so many processes on this machine; with --output.",
)
@click.option(
    "--ray",
    metavar="ADDRESS",
    help="Answer as a Ray Data job on that cluster, auto for the one at hand, local for one of its own; with "
    "--output and as many workers as --processes says (extra ray).",
)
@click.option("--device", default="auto", help="cpu, cuda or auto.")
@click.option("--plugin", "plugins", multiple=True, help="A package of yours whose parts the recipe names.")
def command(**given: Any) -> int:
    """Answer each line of FILE, or of standard input, with the model of RUN.

    Which of the options there are depends on the task of the run; the others are refused.

    A line that cannot be answered gets an empty line, the reason goes to standard error, and the exit code is
    3; all other lines are answered.

    \b
    weft predict runs/en-es < in.txt > out.txt
    echo "Click the button." | weft predict runs/en-es --nbest 3 --scores
    weft predict runs/en-es in.txt --plot pictures --alignments out.pharaoh
    weft predict runs/en-es large.txt.gz --output out.txt --processes 2
    weft predict runs/en-es large.txt.gz --output out.txt --processes 64 --ray auto
    """  # noqa: D301  click reads the \b
    from weft.commands.asked import asked, with_members
    from weft.errors import ConfigError
    from weft.run import open_run

    file, plot = given["file"], given["plot"]
    if plot and plot.suffix.lower() in (".png", ".svg", ".pdf", ".jpg", ".jpeg"):
        raise ConfigError(f"--plot {plot}: expected a directory for one picture per line")
    if given["output"] or given["processes"] or given["ray"]:
        _check_bulk(given)
    if (given["processes"] or 1) > 1 and "WORLD_SIZE" not in os.environ and not given["ray"]:
        return _side_by_side(given)
    changes = [f"decoding.{change}" for change in given["changes"]]
    opened = open_run(given["run"], device=given["device"], plugins=given["plugins"], changes=changes)
    options = with_members(asked(opened, "predict", given, COMMON), given["device"], given["plugins"])
    if given["output"]:
        from weft.commands import bulk

        if not _several(given) and not bulk.linewise(opened, file):
            source = sys.stdin.buffer if file is None else file
            return _kept(opened.ready.predictor(opened.model, options), source, given["output"])
        if given["ray"]:
            from weft.commands import ray_job

            ray_job.predict(opened, file, given["output"], given)
        else:
            bulk.predict(opened, file, given["output"], options, given)
        return _joined(file, given["output"]) if "WORLD_SIZE" not in os.environ else 0
    if file is None and sys.stdin.isatty():
        click.echo("type a line and press Enter; Ctrl-D ends", err=True)
    # As the input is read: UTF-8 and LF, whatever the terminal's or the system's own ways are.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    source = sys.stdin.buffer if file is None else file
    return _written(opened.ready.predictor(opened.model, options), source, given)


def _written(predictor: "Predictor[Any]", source: "Path | BinaryIO", given: Mapping[str, Any]) -> int:
    """Answer every input, as soon as it is read where it is typed."""
    from weft.tasks.predictor import answered

    typed = not isinstance(source, Path) and source.isatty()
    window = 1 if typed else 0 if isinstance(source, Path) else predictor.piped
    answers = answered(predictor, predictor.inputs(source), window)
    code = 0
    drawing = given["plot"] or given["alignments"]
    with _pictures(predictor, given) if drawing else nullcontext() as pictures:
        for answer, text in predictor.written(answers):
            if text is not None:
                click.echo(text)
            if answer.wrong:
                code = _code([answer.wrong])
            if pictures is not None:
                pictures.see(answer)
    if pictures is not None and pictures.drawn:
        click.echo(f"{pictures.drawn} pictures: {given['plot']}", err=True)
    return code


def _pictures(predictor: "Predictor[Any]", given: Mapping[str, Any]) -> "Pictures":
    from weft.figures.answers import Pictures  # imports matplotlib

    return Pictures(predictor, given["plot"], given["alignments"], given["plot_limit"])


def _code(wrong: Sequence[str]) -> int:
    """Say which inputs have no answer, and why; the exit code that tells of them."""
    for one in "\n".join(wrong).split("\n") if wrong else ():
        click.echo(f"weft: {one}", err=True)
    return UNANSWERED if wrong else 0


def _kept(predictor: "Predictor[Any]", source: "Path | BinaryIO", output: Path) -> int:
    """Write all answers to a file at once."""
    from weft.commands import outputs
    from weft.tasks.predictor import answered

    predictor.file([], output)  # a format that it cannot write is refused before the work
    answers = list(predictor.written(answered(predictor, predictor.inputs(source))))
    outputs.write_bytes(output, predictor.file([text for _, text in answers if text is not None], output))
    click.echo(f"written to {output}", err=True)
    return _code([answer.wrong for answer, _ in answers if answer.wrong])


def _joined(file: Path, output: Path) -> int:
    """Put the chunks together; the exit code."""
    from weft.commands import bulk

    joined = bulk.join(file, output)
    click.echo(f"{joined.lines:,} lines: {output}", err=True)
    return _code(joined.wrong)


def _several(given: Mapping[str, Any]) -> bool:
    """Whether several processes share the work, or this is one of them."""
    return bool(given["processes"] or given["ray"] or "WORLD_SIZE" in os.environ)


def _check_bulk(given: Mapping[str, Any]) -> None:
    from weft.commands import outputs
    from weft.errors import ConfigError

    if _several(given) and (given["file"] is None or given["output"] is None):
        raise ConfigError("--processes and --ray need a FILE and an --output; standard input is read once")
    if given["plot"] or given["alignments"]:
        raise ConfigError("--output: pictures and alignments are not made beside it; leave them out")
    outputs.check(given["output"])


def _side_by_side(given: Mapping[str, Any]) -> int:
    """The same command in several processes, then their answers put together."""
    from weft.commands.launch import launch

    words = ["predict", str(given["run"]), str(given["file"])]
    for option in command.params:
        value = given[option.name or ""]
        if not isinstance(option, click.Option) or option.name == "processes" or value in (None, False, ()):
            continue
        name = option.opts[0]
        values = value if option.multiple else [value]
        words += [name] if option.is_flag else [word for one in values for word in (name, str(one))]
    code = launch(words, given["processes"], together=False)
    return code or _joined(given["file"], given["output"])
