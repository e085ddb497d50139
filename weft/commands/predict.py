"""weft predict: inputs in, the same number of answers out, in order."""

import io
import os
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from weft.commands import options
from weft.commands.outputs import check_outputs, output_option
from weft.errors import ConfigError
from weft.wording import plural

if TYPE_CHECKING:
    from weft.commands.answer_pictures import AnswerPictures
    from weft.run import LoadedRun
    from weft.tasks.predictor import Predictor
    from weft.tasks.task import PredictionSettings

HEADINGS = {
    "Search": ("scores", *options.SEARCH[:-1], *options.SAMPLING, "changes"),
    "Output": ("output", "plot", "plot_limit", "alignments", "coco", "processes", "ray"),
    "Some tasks only": ("split_sentences", "document", "read_as", "source", "target", "series", "future"),
}


LAID_OUT = (".srt", ".vtt", ".html", ".htm", ".xhtml", ".po", ".pot", ".xliff", ".xlf", ".tmx")
"""Endings of text files that have more than lines to translate."""


@click.command(cls=options.GroupedCommand, headings=HEADINGS)
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("--scores", is_flag=True, help="Print the score, too; before a text and a tab.")
@options.nbest
@options.sampling
@options.searching
@output_option("--alignments", help="File for word alignments in Pharaoh format (0-0 1-2).")
@output_option("--pictures", "plot", help="Directory for one picture per answer.", folder=True)
@click.option(
    "--max-pictures",
    "plot_limit",
    type=int,
    metavar="N",
    default=20,
    hidden=True,
    help="Maximum number of pictures that --pictures draws.",
)
@click.option(
    "--coco", is_flag=True, hidden=True, help="Captions: write COCO results, [{image_id, caption}, ...]."
)
@click.option(
    "--split-sentences", is_flag=True, hidden=True, help="Split lines into sentences, and translate each."
)
@options.file_option("--document", help="Translate a document, such as .html or .docx.")
@click.option(
    "--read-as",
    metavar="KIND",
    type=click.Choice(["sentences", "words", "columns"]),
    help="What lines are: sentences, words or columns.",
)
@click.option("--source", metavar="LANGUAGE", help="Language of the input, of a multilingual model.")
@click.option("--target", metavar="LANGUAGE", help="Language of the output, of a multilingual model.")
@click.option("--series", metavar="NAME", multiple=True, help="Name of a series to forecast (repeatable).")
@options.file_option("--future", help="Table of the covariates that are known in advance.")
@output_option("--output", "-o", help="File for the answers; the same command resumes.")
@options.count_option("--processes", help="Number of processes. Needs FILE, --output.")
@click.option(
    "--ray",
    metavar="ADDRESS",
    hidden=True,
    help="Run as a Ray Data job with --processes workers: the address of a cluster, auto or local. Needs "
    "FILE, --output, and pip install 'weft-seq[ray]'.",
)
@options.device
@options.plugin
def command(**given: Any) -> int:
    """Answer every line of FILE, or of standard input, with the model of RUN.

    A table is read by its columns. A line without an answer becomes an empty line, with the reason on
    standard error and the exit code 3.

    \b
    Examples:
      weft predict runs/en-es < in.txt > out.txt
      weft predict runs/en-es in.txt --nbest 3 --scores --alignments out.pharaoh
    """  # noqa: D301  click reads the \b
    from weft.commands import documents, outputs

    if given["file"] == Path("-"):
        given["file"] = None
    file, plot = given["file"], given["plot"]
    if plot and plot.suffix.lower() in (".png", ".svg", ".pdf", ".jpg", ".jpeg"):
        raise ConfigError(f"--pictures {plot}: expected a directory for one picture per line")
    check_outputs()
    if given["document"]:
        documents.check_options(given)
    elif given["output"] or given["processes"] or given["ray"]:
        _check_bulk(given)
    if (given["processes"] or 1) > 1 and "WORLD_SIZE" not in os.environ and not given["ray"]:
        return _side_by_side(given)
    opened = options.open_asked(given)
    settings = options.settings_for(opened, opened.task.prediction_settings, given, options.PREDICTING)
    if given["document"]:
        return outputs.reported(documents.translate(opened, given, settings))
    if (
        file is not None
        and file.suffix.lower() in LAID_OUT
        and getattr(opened.pipeline, "directions", tuple)()
    ):
        click.echo(
            f"note: {file} is read as lines; to translate its text alone, give it with --document", err=True
        )
    if given["output"]:
        return _filed(opened, given, settings)
    if file is None and sys.stdin.isatty():
        click.echo("type a line and press Enter; Ctrl-D ends", err=True)
    # As the input is read: UTF-8 and LF, whatever the terminal's or the system's own ways are.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    source = sys.stdin.buffer if file is None else file
    return _written(opened.pipeline.predictor(opened.model, settings), source, given)


def answer_file(run: Path, file: Path, output: Path, more: Mapping[str, Any]) -> int:
    """Answer a file for another command, where an input without an answer is no fault; the exit code."""
    from weft.commands.outputs import UNANSWERED

    context = click.get_current_context()  # its `invoke` adds the defaults of the other options
    code = context.invoke(command, run=run, file=file, output=output, **more)
    return 0 if code == UNANSWERED else int(code or 0)


def _filed(opened: "LoadedRun", given: Mapping[str, Any], settings: "PredictionSettings") -> int:
    """Write the answers to --output."""
    from weft.commands import bulk
    from weft.data.tables import is_table

    file = given["file"]
    predictor = opened.pipeline.predictor(opened.model, settings)
    linewise = file is not None and predictor.linewise and not is_table(file)
    if given["plot"] or given["alignments"] or not (linewise or _several(given)):
        return _kept(predictor, sys.stdin.buffer if file is None else file, given)
    if not linewise:
        raise ConfigError(
            f"--processes: expected a task that answers line by line, got {opened.name} with {file.name}; "
            "omit --processes and --ray"
        )
    if given["ray"]:
        from weft.commands import ray_job

        ray_job.predict(opened, given)
    else:
        bulk.predict(opened, settings, given)
    return _joined(file, given["output"]) if "WORLD_SIZE" not in os.environ else 0


def _written(predictor: "Predictor[Any]", source: "Path | BinaryIO", given: Mapping[str, Any]) -> int:
    """Answer every input, as soon as it is read where it is typed."""
    from weft.commands import outputs
    from weft.tasks.predictor import Remarks, answered

    typed = not isinstance(source, Path) and source.isatty()
    window = 1 if typed else 0 if isinstance(source, Path) else predictor.piped
    remarks = Remarks()
    answers = answered(predictor, predictor.each_input(source), window, remarks)
    code = 0
    with _pictures(predictor, given) as pictures:
        for answer, text in predictor.formatted(answers):
            if text is not None:
                click.echo(text)
            if answer.wrong:
                code = outputs.reported([answer.wrong])
            if pictures is not None:
                pictures.see(answer)
    outputs.remarked(remarks.lines(), remarks.named)
    _drawn(pictures, given)
    return code


def _drawn(pictures: "AnswerPictures | None", given: Mapping[str, Any]) -> None:
    if pictures is not None and pictures.drawn:
        click.echo(f"{plural(pictures.drawn, 'picture')}: {given['plot']}", err=True)


def _pictures(
    predictor: "Predictor[Any]", given: Mapping[str, Any]
) -> "AbstractContextManager[AnswerPictures | None]":
    if not (given["plot"] or given["alignments"]):
        return nullcontext()
    from weft.commands.answer_pictures import AnswerPictures  # imports matplotlib

    return AnswerPictures(predictor, given["plot"], given["alignments"], given["plot_limit"])


def _kept(predictor: "Predictor[Any]", source: "Path | BinaryIO", given: Mapping[str, Any]) -> int:
    """Write all answers to a file at once, and their pictures if there shall be any."""
    from weft.commands import outputs
    from weft.tasks.predictor import Remarks, answered

    output, answers = given["output"], []
    predictor.file([], output)  # a format that it cannot write is refused before the work
    remarks = Remarks()
    with _pictures(predictor, given) as pictures:
        for each in predictor.formatted(answered(predictor, predictor.each_input(source), remarks=remarks)):
            answers.append(each)
            if pictures is not None:
                pictures.see(each[0])
    outputs.write_bytes(output, predictor.file(answers, output))
    click.echo(f"written to {output}", err=True)
    outputs.remarked(remarks.lines(), remarks.named)
    _drawn(pictures, given)
    return outputs.reported([answer.wrong for answer, _ in answers if answer.wrong])


def _joined(file: Path, output: Path) -> int:
    """Put the chunks together; the exit code."""
    from weft.commands import bulk, outputs

    joined = bulk.join(file, output)
    click.echo(f"{plural(joined.lines, 'line')}: {output}", err=True)
    outputs.remarked(joined.remarks, joined.named)
    return outputs.reported(joined.wrong)


def _several(given: Mapping[str, Any]) -> bool:
    """Whether several processes share the work, or this is one of them."""
    return bool(given["processes"] or given["ray"] or "WORLD_SIZE" in os.environ)


def _check_bulk(given: Mapping[str, Any]) -> None:

    if _several(given) and (given["file"] is None or given["output"] is None):
        raise ConfigError("--processes and --ray need a FILE and an --output; standard input is read once")
    if _several(given) and (given["plot"] or given["alignments"]):
        raise ConfigError("--pictures and --alignments: one process draws; leave out --processes and --ray")


def _side_by_side(given: Mapping[str, Any]) -> int:
    """The same command in several processes, then their answers put together."""
    from weft.commands.launch import launch

    words = ["predict", str(given["run"]), str(given["file"])]
    words += options.as_words(command, {key: value for key, value in given.items() if key != "processes"})
    code = launch(words, given["processes"], together=False)
    return code or _joined(given["file"], given["output"])
