"""weft demo: train, score, use and inspect a small translator in minutes, without a download.

Read next: recipes/translate/help-demo.yaml; train.py and evaluate.py, the same steps for any recipe.
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weft.commands.options import file_option
from weft.commands.program import typed
from weft.errors import ConfigError
from weft.store import files

if TYPE_CHECKING:
    from weft.run import LoadedRun
    from weft.tasks.seq2seq.translator import Translator

RECIPE = "translate/help-demo"
ENGLISH = (
    "Click the Insert tab and choose a chart.",
    "You cannot delete the selected cells.",
    "The password must contain at least eight characters.",
    "This function never changes the original document.",
)
EXAMPLE = "Select the cells that you want to copy to another sheet."


@click.command()
@click.option("--source", metavar="LANG", default="en", help="Source language: en, de, es, fr, pl or ru.")
@click.option("--target", metavar="LANG", default="es", help="Target language, from the same list.")
@file_option("--run", metavar="DIR", show_default="runs/demo-SOURCE-TARGET", help="Run directory.")
@click.option(
    "--minutes",
    metavar="X",
    type=float,
    show_default="no limit",
    help="Maximum training time in minutes; less training gives a weaker translator.",
)
def command(source: str, target: str, run: Path | None, minutes: float | None) -> int:
    """Train a small translator in minutes, score it, try it and see its attention.

    The training data, help texts in six languages, comes with Weft: nothing is downloaded. If you stop the
    demo, the same command resumes.

    \b
    Examples:
      weft demo
      weft demo --source de --target fr
    """  # noqa: D301  click reads the \b
    from weft.config import read_recipe
    from weft.run import open_run
    from weft.run.train import train_run
    from weft.tasks.seq2seq.sections import TranslationEvaluationSettings
    from weft.tasks.seq2seq.translator import Translator

    if minutes is not None and not minutes > 0:
        raise ConfigError(f"--minutes: expected a number above 0, got {minutes:g}")
    started = time.perf_counter()
    run = run or Path("runs") / f"demo-{source}-{target}"
    changes = [f"data.source={source}", f"data.target={target}"]
    changes += [f"training.max_minutes={minutes}"] if minutes is not None else []
    about = (
        f"Training a translator from {source} to {target} on the help texts of LibreOffice, "
        + (f"in at most {minutes:g} minutes" if minutes else "in about 5 minutes on two free cores")
        + f".\nAll files go to {run}. Ctrl-C stops; the same command resumes."
    )
    _, outcome = train_run(run, read_recipe(RECIPE, changes), begun=lambda _: click.echo(about))
    if outcome.exit_code:
        again = ["demo", "--source", source, "--target", target, "--run", run]
        again += [] if minutes is None else ["--minutes", f"{minutes:g}"]
        click.echo(f"resume with: {typed(*again)}", err=True)
        return outcome.exit_code
    opened = open_run(run)
    click.echo("\nScores on help pages that were not used in training:\n")
    for beam in (1, 5):
        settings = TranslationEvaluationSettings(search={"beam": beam})
        click.echo(opened.pipeline.evaluate(opened.model, settings=settings).text() + "\n")
    translator = opened.pipeline.predictor(opened.model)
    assert isinstance(translator, Translator)
    sentences = ENGLISH if source == "en" else _from_test(opened)
    click.echo("Translations:\n")
    for sentence, found in zip(sentences, translator.predict(sentences), strict=True):
        click.echo(f"  {source}  {sentence}\n  {target}  {found}\n")
    example = EXAMPLE if source == "en" else sentences[0]
    picture = _picture(translator, example, run)
    click.echo(f"Attention of one translation, as a picture: {picture} (and .svg)")
    click.echo(f"Total time: {(time.perf_counter() - started) / 60:.1f} minutes.\n")
    if sys.stdin.isatty() and sys.stdout.isatty():
        _ask(translator)
    click.echo(_next(run, target, example))
    return 0


def _next(run: Path, target: str, example: str) -> str:
    """Commands to try after the demo."""
    other = "fr" if target != "fr" else "de"
    return (
        "Try next:\n"
        f"  echo 'Open the file.' | {typed('predict', run, '--nbest', 3, '--scores')}\n"
        f"  {typed('inspect', run, example)}\n"
        f"  {typed('serve', run)}    # a web page to try it\n"
        f"  {typed('demo', '--source', target, '--target', other)}    # 29 other directions\n"
        f"  {typed('init', 'translate', '--help')}    # a recipe for your own files"
    )


def _from_test(opened: "LoadedRun") -> Sequence[str]:
    """Four short sentences, evenly spaced in the test split."""
    from weft.tasks.seq2seq.base import PairTask

    assert isinstance(opened.task, PairTask)
    short = [pair.source for pair in opened.task.data.open("test") if 5 <= len(pair.source.split()) <= 10]
    return [short[place * len(short) // 4] for place in range(4)]


def _picture(translator: "Translator", sentence: str, run: Path) -> Path:
    """Draw the attention of one translation, as PNG and SVG."""
    (answer,) = translator.answers([sentence])
    for ending, content in answer.pictures().items():
        files.replace(run / f"alignment{ending}", content)
    return run / "alignment.png"


def _ask(translator: "Translator") -> None:
    """Translate what is typed, until an empty line."""
    click.echo("Type a sentence to translate it; an empty line quits.")
    while True:
        try:
            line = input("> ").strip()
        except EOFError:
            line = ""
        if not line:
            click.echo("")
            return
        click.echo(f"  {translator.predict(line)}")
