"""weft demo: a translator trained, scored, used and looked into, in minutes and without a download.

Read next: demo.yaml, the recipe; train.py and evaluate.py, which do the same for any recipe.
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weft import files
from weft.commands.program import typed

if TYPE_CHECKING:
    from weft.run import Opened
    from weft.tasks.shared.writing.translator import Translator

RECIPE = Path(__file__).with_name("demo.yaml")
ENGLISH = (
    "Click the Insert tab and choose a chart.",
    "You cannot delete the selected cells.",
    "The password must contain at least eight characters.",
    "This function never changes the original document.",
)
LOOKED_AT = "Select the cells that you want to copy to another sheet."


@click.command(short_help="Train a small translator in minutes.")
@click.option("--source", default="en", show_default=True, help="One of en de es fr pl ru.")
@click.option("--target", default="es", show_default=True, help="Another one of them.")
@click.option(
    "--run", type=click.Path(path_type=Path), help="Run directory; runs/demo-SOURCE-TARGET by default."
)
@click.option("--minutes", type=float, help="Stop training after so many minutes, with a weaker translator.")
def command(source: str, target: str, run: Path | None, minutes: float | None) -> int:
    """Train a translator on the help texts that come with Weft, score it, use it, see where it looks.

    It needs no terminal and no network. Called again, it goes on where it stopped.
    """
    from weft.card import write_card
    from weft.config import read_recipe
    from weft.errors import ConfigError
    from weft.run import begin, open_run
    from weft.train.loop import train

    if minutes is not None and not minutes > 0:
        raise ConfigError(f"--minutes: expected a number above 0, got {minutes:g}")
    started = time.perf_counter()
    run = run or Path("runs") / f"demo-{source}-{target}"
    changes = [f"data.source={source}", f"data.target={target}"]
    changes += [f"training.max_minutes={minutes}"] if minutes is not None else []
    begun = begin(run, read_recipe(RECIPE, changes))
    click.echo(
        f"Weft learns to translate {source} to {target} from the help texts of LibreOffice, "
        + (f"in at most {minutes:g} minutes" if minutes else "in about 5 minutes on two free cores")
        + f".\nEverything it makes goes to {run}; Ctrl-C stops, the same command resumes."
    )
    outcome = train(begun.task, run, begun.settings)
    if outcome.exit_code:
        again = ["demo", "--source", source, "--target", target, "--run", run]
        again += [] if minutes is None else ["--minutes", f"{minutes:g}"]
        click.echo(f"resume with: {typed(*again)}", err=True)
        return outcome.exit_code
    write_card(run, begun, outcome)

    opened = open_run(run)
    click.echo("\nHow good is it? Sentences from help pages that training never saw:\n")
    for beam in (1, 5):
        click.echo(opened.ready.evaluate(opened.model, options={"beam": beam}).text() + "\n")
    translator = opened.ready.predictor(opened.model)
    sentences = ENGLISH if source == "en" else _from_test(opened)
    click.echo("What does it say?\n")
    for sentence, found in translator.pairs(sentences):
        click.echo(f"  {source}  {sentence}\n  {target}  {found[0].text}\n")
    picture = _picture(translator, LOOKED_AT if source == "en" else sentences[0], run)
    click.echo(f"Where did it look while it wrote? {picture} (and .svg)")
    click.echo(f"From start to picture: {(time.perf_counter() - started) / 60:.1f} minutes.\n")
    if sys.stdin.isatty() and sys.stdout.isatty():
        _ask(translator)
    other = "fr" if target != "fr" else "de"
    click.echo(
        "Try next:\n"
        f"  echo 'Open the file.' | {typed('predict', run, '--nbest', 3, '--scores')}\n"
        f"  {typed('inspect', run, LOOKED_AT if source == 'en' else sentences[0])}\n"
        f"  {typed('serve', run)}    # a page to try it\n"
        f"  {typed('demo', '--source', target, '--target', other)}    # one of 29 other directions\n"
        f"  {typed('init', 'translate', '--train', 'PREFIX', '--source', 'en', '--target', 'de')}"
        "    # a recipe for your own files"
    )
    return 0


def _from_test(opened: "Opened") -> Sequence[str]:
    """Four short sentences of the test split, spread over it."""
    short = [pair.source for pair in opened.task.data.open("test") if 5 <= len(pair.source.split()) <= 10]
    return [short[place * len(short) // 4] for place in range(4)]


def _picture(translator: "Translator", sentence: str, run: Path) -> Path:
    """Where the translator looked, as PNG and SVG."""
    (answer,) = translator.answers([sentence])
    for ending, content in answer.pictures().items():
        files.replace(run / f"alignment{ending}", content)
    return run / "alignment.png"


def _ask(translator: "Translator") -> None:
    """Translate what is typed until an empty line comes."""
    click.echo("Type a sentence; an empty line ends.")
    while True:
        try:
            line = input("> ").strip()
        except EOFError:
            line = ""
        if not line:
            click.echo("")
            return
        click.echo(f"  {translator.predict(line)}")
