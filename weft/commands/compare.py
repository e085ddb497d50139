"""weft compare: one report about several runs, or about the variants of recipes, which it trains first.

Read next: variants.py, the training; ../inspect/comparing/report.py, the report.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weft.commands.options import device, plugin
from weft.commands.output_check import OutputPath, check_outputs
from weft.wording import folded

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from weft.commands.variants import NamedRun
    from weft.inspect.comparing.measured import RunFacts
    from weft.run import LoadedRun

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
@click.option(
    "--folder",
    metavar="DIR",
    type=OutputPath(folder=True),
    default=Path("comparison"),
    help="Directory for the report, the measurements and the trained variants.",
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
    from weft.commands import outputs
    from weft.commands.outputs import folder_for
    from weft.commands.variants import asked, train_missing
    from weft.inspect.comparing.report import markdown, page
    from weft.inspect.comparing.tables import figures, latex, scores_csv, significance_csv, summary

    check_outputs(*(folder / name for name in (*FILES, *FIGURES)))
    wanted = asked(given, grids, seeds, budgets)
    runs, code = train_missing(wanted, folder, plugins)
    if code:
        return code
    folder_for(folder / "measured")
    found = _measured(runs, folder / "measured", text, device, plugins)
    names = ", ".join(dict.fromkeys(one.variant or one.name for one in found))
    title = f"weft compare: {names}" if len(names) <= 76 else f"weft compare: {len(runs)} runs"
    budget = str(wanted.budget)
    outputs.write(folder / "report.md", markdown(found, title, budget))
    outputs.write(folder / "report.html", page(found, title, budget))
    outputs.write(folder / "scores.csv", scores_csv(found))
    outputs.write(folder / "tests.csv", significance_csv(found))
    outputs.write(folder / "tables.tex", latex(found, title.removeprefix("weft compare: "), budget))
    drawn = _draw(figures(found, title.removeprefix("weft compare: ")), folder)
    click.echo(summary(found, title, budget))
    click.echo(
        folded(f"\nreport: {folder / FILES[1]}\nbeside it: {', '.join((FILES[0], *FILES[2:], *drawn))}", 80)
    )
    return 0


def _draw(found: "dict[str, Figure]", folder: Path) -> list[str]:
    """Write each figure as SVG and PDF; the names of the files."""
    from weft.figures.picture import save

    names = []
    for name, figure in found.items():
        for suffix in ("svg", "pdf"):
            save(figure, folder / f"{name}.{suffix}")
            names.append(f"{name}.{suffix}")
    return names


def _measured(
    runs: "Sequence[NamedRun]", folder: Path, text: str | None, device: str, plugins: Sequence[str]
) -> "list[RunFacts]":
    from weft.errors import ConfigError
    from weft.inspect.comparing.measured import measure_run
    from weft.inspect.comparing.tables import folder_name
    from weft.inspect.inspection import examples
    from weft.run import open_run

    opened = [open_run(path, device=device, plugins=plugins) for _, path, _ in runs]
    for one in opened:
        if one.name != opened[0].name:
            raise ConfigError(
                f"{one.path}: expected a run of the task {opened[0].name}, as {opened[0].path} is, got "
                f"one of {one.name}; compare runs of one task"
            )
    if text is None and opened[0].task.samples_readable:
        text = next(reversed(examples(opened[0].path).texts), None)
    found = []
    groups: dict[str, str] = {}  # recipe without its seed -> name of its first run
    for (name, _, group), one in zip(runs, opened, strict=True):
        click.echo(f"measuring {name}", err=True)
        facts = measure_run(one, name, folder / f"{folder_name(name) or 'run'}.json", text)
        found.append(facts._replace(variant=group or groups.setdefault(_without_seed(one), name)))
    return found


def _without_seed(opened: "LoadedRun") -> str:
    """The recipe without its seed, which identifies a variant."""
    plain = opened.recipe.plain()
    training = {key: value for key, value in plain.get("training", {}).items() if key != "seed"}
    return repr({**plain, "training": training})
