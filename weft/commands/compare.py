"""weft compare: one report about several runs, or about the variants of recipes, which it trains first.

Read next: comparison.py, the same from Python.
"""

from pathlib import Path

import click

from weft.commands.options import device, file_option, plugin
from weft.commands.outputs import check_outputs, output_option
from weft.wording import folded

FILES = ("report.md", "report.html", "scores.csv", "tests.csv", "tables.tex")
FIGURES = ("scores.svg", "scores.pdf", "curves.svg", "curves.pdf")


@click.command()
@click.argument("given", nargs=-1, required=True, metavar="RUN... | RECIPE... [SECTION.KEY=VALUE]...")
@click.option(
    "--grid",
    "grids",
    multiple=True,
    metavar="KEY=VALUE,VALUE",
    help="Values to train RECIPE with, one run each. Several --grid give all combinations; KEY+KEY sets two "
    "keys to the same value.",
)
@click.option(
    "--seeds",
    type=click.IntRange(1, 100),
    show_default="one",
    help="Trainings of each variant, with different seeds; missing ones are trained, also for a RUN.",
)
@click.option(
    "--budget",
    "budgets",
    multiple=True,
    metavar="NAME=SIZE",
    help="What each training may use, for RECIPE: updates, tokens or cpu-minutes end it, parameters sets the "
    "widths of the model. For example tokens=2M (repeatable).",
)
@output_option(
    "--folder",
    default=Path("comparison"),
    help="Directory for the report, the measurements and the trained variants.",
    folder=True,
)
@file_option(
    "--test",
    show_default="data of the recipes",
    help="Test data that all are scored on, as --data of evaluate.",
)
@click.option(
    "--text",
    show_default="an example of the first run",
    help="Input text on which gradient reach is compared.",
)
@device
@plugin
def command(
    given: tuple[str, ...],
    grids: tuple[str, ...],
    seeds: int | None,
    budgets: tuple[str, ...],
    folder: Path,
    test: Path | None,
    text: str | None,
    device: str,
    plugins: tuple[str, ...],
) -> int:
    """Find out which run is better: one report about several runs of one task.

    The report (report.html, report.md) has scores on the test split with intervals, baselines and paired
    significance tests, scores by length, what each run used, speed, memory, learning curves and gradient
    reach. For a paper there are scores.csv, tests.csv, tables.tex, and figures of scores and curves as SVG
    and PDF. Runs that differ only in training.seed are summarised by their mean and standard deviation. If
    you stop the command, the same command resumes: finished runs and measurements are kept.

    \b
    Examples:
      weft compare runs/lstm runs/gru --folder lstm-gru
      weft compare recipe.yaml --grid model.encoder.cell=elman,lstm,gru --seeds 5
      weft compare recipe.yaml --grid model.encoder.cell=lstm,gru \\
          --budget updates=1000 --budget parameters=100k
    """  # noqa: D301  click reads the \b
    from weft.commands.comparison import asked, planned, repeated, report_of, train_planned

    check_outputs(*(folder / name for name in (*FILES, *FIGURES)))
    wanted = asked(given, grids, seeds, budgets)
    runs, plan = repeated(wanted) if wanted.runs else ([], planned(wanted, folder, plugins))
    trained, code = train_planned(plan, folder, plugins, test=test is not None)
    if code:
        return code
    found = report_of([*runs, *trained], folder, text, device, plugins, str(wanted.budget), test=test)
    click.echo(found.text)
    click.echo(
        folded(
            f"\nreport: {folder / FILES[1]}\nbeside it: {', '.join((FILES[0], *FILES[2:], *found.drawn))}", 80
        )
    )
    return 0
