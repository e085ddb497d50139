"""weft evaluate: how good a run is on held-out data, with signatures, intervals and baselines."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weft.commands.searching import searching

if TYPE_CHECKING:
    from weft.run import Opened

COMMON = ("run", "data", "split", "output", "plot", "json_path", "changes", "device", "plugins", "metrics")


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
@searching
@click.option(
    "--score",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Translate nothing: the log-probability of each line of FILE, as an answer to the data's sources.",
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME[:KEY=VALUE,...]",
    help="Score with this metric too, such as wer or chrf:word_order=2 (repeatable). A metric of a plugin is "
    "named by its path, such as mine.metrics.Distinct.",
)
@click.option("--lowercase", is_flag=True, help="BLEU and chrF in small letters, as some papers have it.")
@click.option("--output", type=click.Path(path_type=Path), help="Write the outputs here, a line each.")
@click.option(
    "--plot",
    type=click.Path(path_type=Path),
    help="Draw the scores, such as BLEU by source length (.png or .svg).",
)
@click.option("--series", help="Of forecasts: the series that --plot shows a window of.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="KEY=VALUE",
    help="Any setting of the recipe's section decoding, such as beam=3.",
)
@click.option("--device", default="auto", help="cpu, cuda or auto.")
@click.option("--plugin", "plugins", multiple=True, help="A package of yours whose parts the recipe names.")
def command(**given: Any) -> None:
    """Score RUN on the test split of its data, or on other files.

    Each score comes with how it was computed (its signature) and a 95 % interval. Beside it stand
    baselines, which need no trained model: the source copied, the most frequent class, the last value.

    \b
    weft evaluate runs/en-es
    weft evaluate runs/en-es --data more/newstest --beam 1
    """  # noqa: D301  click reads the \b
    from weft.commands import outputs
    from weft.commands.asked import asked, with_members
    from weft.commands.metrics import named
    from weft.config import build
    from weft.errors import ConfigError
    from weft.metrics.baseline import WORSE
    from weft.run import open_run
    from weft.train.settings import Settings

    run, output, plot, json_path = given["run"], given["output"], given["plot"], given["json_path"]
    outputs.check(output, json_path)
    if plot and plot.suffix.lower() not in (".png", ".svg"):
        raise ConfigError(f"--plot {plot}: pictures are written as .png or .svg; name such a file")
    if plot and given["score"]:
        raise ConfigError("--plot: nothing is drawn of given answers; leave out --plot or --score")
    changes = [f"decoding.{change}" for change in given["changes"]]
    opened = open_run(run, device=given["device"], plugins=given["plugins"], changes=changes)
    options = with_members(asked(opened, "evaluate", given, COMMON), given["device"], given["plugins"])
    if plot and not opened.task.evaluation.shows:
        raise ConfigError(f"--plot: the task {opened.name} has no picture of its evaluation; leave it out")
    training = opened.recipe.section("training", optional=True)
    own = build(training, Settings, plugins=given["plugins"]).metrics
    metrics = {one.key: one for one in own} | named(given["metrics"], given["plugins"])
    if given["metrics"] and (given["score"] or not opened.task.evaluation.compares):
        raise ConfigError("--metric: no outputs are compared with references here; leave it out")
    found = opened.ready.evaluate(opened.model, split=given["split"], data=given["data"], options=options)
    found = found if given["score"] else found.with_metrics(metrics)
    text = found.text()
    click.echo(text)
    if WORSE in text:
        click.echo(_hint(opened, given["plugins"]))
    if output:
        outputs.write(output, "".join(f"{line}\n" for line in found.outputs))
        click.echo(f"outputs: {output}")
    if plot:
        from weft.figures.alignment import save

        save(found.figure(run.resolve().name), plot)
        click.echo(f"{found.shows}: {plot}")
    if json_path:
        outputs.write(json_path, found.json())


def _hint(opened: "Opened", plugins: tuple[str, ...]) -> str:
    """What to type where the model is worse than a baseline."""
    from weft.commands.longer import hint, longer
    from weft.run import check
    from weft.train.checkpoints import Checkpoints

    validations = Checkpoints(opened.path, lambda text: None).index().validations
    updates = validations[-1].update if validations else 0
    settings = check(opened.recipe, plugins=plugins).settings
    command = longer(opened.path, settings, updates, plugins) if updates else ""
    return hint("the model is worse than a baseline", updates, command)
