"""weft evaluate: score a run on held-out data, with signatures, intervals and baselines."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weft.commands.options import SEARCH, GroupedCommand, device, file_option, plugin, searching
from weft.commands.outputs import OutputPath, check_outputs, output_option
from weft.errors import ConfigError
from weft.wording import columns, folded

if TYPE_CHECKING:
    from weft.metrics.metric import Metric
    from weft.run import LoadedRun

COMMON = (
    "run",
    "data",
    "split",
    "output",
    "plot",
    "json_path",
    "changes",
    "device",
    "plugins",
    "metrics",
    "full",
)


HEADINGS = {
    "What to score": ("data", "source", "target", "split", "score", "metrics", "lowercase"),
    "Search": SEARCH,
    "Output": ("full", "output", "json_path", "plot", "series", "calibrate"),
}


@click.command(cls=GroupedCommand, headings=HEADINGS)
@click.argument("run", type=click.Path(path_type=Path))
@file_option(
    "--data",
    show_default="data of the recipe",
    help="Other data to score: a prefix of files, or a table such as .tsv.",
)
@click.option(
    "--source",
    metavar="LANGUAGE",
    show_default="as in the recipe",
    help="Language to translate from, or its column, if --data is a table of sentence pairs.",
)
@click.option(
    "--target",
    metavar="LANGUAGE",
    show_default="as in the recipe",
    help="Language to translate into, or its column, if --data is a table of sentence pairs.",
)
@click.option(
    "--split",
    type=click.Choice(["test", "valid"]),
    default="test",
    help="Split of the recipe's data. Training chose its checkpoint on valid, so scores there are too good.",
)
@searching
@file_option(
    "--score", help="Score given answers instead of generating any: the log-probability of each line of FILE."
)
@click.option("--lowercase", is_flag=True, help="Compute BLEU and chrF on lower-cased text.")
@output_option("--output", help="File for the outputs, one per line.")
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME[:KEY=VALUE,...]",
    help="Another metric to score with, such as wer, f1:average=weighted or wape (repeatable). For a metric "
    "of your own give its path, such as mine.metrics.Distinct.",
)
@click.option("--full", is_flag=True, help="Print the tables too: each class, lengths, confusions.")
@click.option(
    "--plot",
    metavar="FILE",
    type=OutputPath(drawn=True),
    help="Picture of the scores (.png, .svg or .pdf), such as BLEU by source length.",
)
@click.option(
    "--series",
    metavar="NAME",
    show_default="a middle one",
    help="Forecasts only: the series shown by --plot.",
)
@click.option(
    "--calibrate",
    is_flag=True,
    help="Classifiers and taggers only: fit a temperature, so that probabilities match accuracy, and "
    "thresholds to the validation part, and keep them in RUN.",
)
@output_option("--json", "json_path", help="File for all scores as JSON.")
@device
@plugin
def command(**given: Any) -> int:
    """Score RUN on the test split of its data, or on other files.

    Each score comes with its signature (how it was computed) and a 95 % confidence interval. Baselines that
    need no trained model are printed next to it: the source copied, the most frequent class, the last value.
    The last line says whether the model is better than the best baseline: it is if the 95 % interval of the
    difference, taken item by item where the baseline answers each item, is above 0.
    A text that the model cannot read is scored as empty or wrong, with the reason on standard error,
    and the exit code is 3.

    \b
    Examples:
      weft evaluate runs/en-es
      weft evaluate runs/en-es --data more/newstest --beam 1
      weft evaluate runs/en-es --json scores.json --plot scores.png
    """  # noqa: D301  click reads the \b
    from weft.commands import outputs
    from weft.commands.options import open_asked, settings_for

    run, output, plot, json_path = given["run"], given["output"], given["plot"], given["json_path"]
    check_outputs()
    source = click.get_current_context().get_parameter_source("split")
    if given["data"] and source is click.core.ParameterSource.COMMANDLINE:
        raise ConfigError("--split: is of the recipe's own data; leave it out, or --data")
    if given["metrics"] and given["score"]:
        raise ConfigError("--metric: cannot be combined with --score; leave out one of them")
    if plot and plot.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise ConfigError(f"--plot {plot}: expected a file that ends in .png, .svg or .pdf")
    if plot and given["score"]:
        raise ConfigError("--plot: cannot be combined with --score; leave out one of them")
    opened = open_asked(given)
    settings = settings_for(opened, opened.task.evaluation_settings, given, COMMON)
    if plot and not opened.task.evaluation.shows:
        raise ConfigError(f"--plot: an evaluation of the task {opened.name} has no picture; leave it out")
    metrics = _metrics(opened, given)
    found = opened.evaluate(split=given["split"], data=given["data"], settings=settings)
    found = found if given["score"] else found.with_metrics(metrics)
    *lines, verdict = found.text(full=given["full"]).splitlines()
    click.echo(folded("\n".join(lines), columns(), indent=6))
    if worse := [one.score.name for one in found.scores[:2] if one.is_worse()]:  # of the main scores
        hint, *ways = _hint(opened, worse, given["plugins"]).splitlines()
        click.echo("\n".join([folded(hint, columns(), indent=6), *ways]))
    click.echo(folded(verdict, columns(), indent=6))
    if output:
        outputs.write(output, "".join(f"{line}\n" for line in found.outputs))
        click.echo(f"outputs: {output}")
    if plot:
        from weft.figures.picture import save

        save(found.figure(run.resolve().name), plot)
        click.echo(f"{found.shows}: {plot}")
    if json_path:
        outputs.write(json_path, found.json())
    return outputs.reported(found.wrong)


def _metrics(opened: "LoadedRun", given: Mapping[str, Any]) -> "dict[str, Metric]":
    """The metrics of the recipe that read what will be offered, and those of --metric."""
    from weft.config import build
    from weft.metrics.scored import unread
    from weft.train.settings import TrainingSettings

    training, plugins = opened.recipe.section("training", optional=True), given["plugins"]
    own = {one.key: one for one in build(training, TrainingSettings, plugins=plugins).metrics}
    more = {text: _metric(text, plugins) for text in given["metrics"]}
    if not (own or more):
        return {}
    offers = opened.task.evaluation_offers(given["split"], given["data"])
    for text, metric in more.items():
        if not set(metric.reads) & set(offers):
            raise ConfigError(f"--metric {text}: {unread(metric, f'the task {opened.name}', offers)}")
    lacking = [name for name, one in own.items() if not set(one.reads) & set(offers)]
    for name in lacking:  # of training, which may have had other outputs, such as probabilities
        click.echo(f"note: {unread(own.pop(name), f'the task {opened.name}', offers)}", err=True)
    return own | more


def _hint(opened: "LoadedRun", worse: list[str], plugins: tuple[str, ...]) -> str:
    """The advice for a model that these scores show to be worse than a baseline."""
    from weft.commands.longer import advice
    from weft.run.training import check_recipe

    settings = check_recipe(opened.recipe, plugins=plugins).settings
    why = f"by {' and '.join(worse)}, the model is worse than a baseline"
    return advice(why, opened.path, opened.name, settings, plugins)


def _metric(text: str, plugins: Collection[str]) -> "Metric":
    """The metric of --metric NAME:key=value,..."""
    from weft.config import Entry, Table, build, parse
    from weft.metrics.metric import Metric

    name, _, rest = text.partition(":")
    place = f"--metric {text}"
    settings = {"use": Entry("", place, name)}
    for part in filter(None, rest.split(",")):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not key.isidentifier():
            raise ConfigError(f"{place}: expected NAME:key=value, such as chrf:word_order=2, got {part!r}")
        settings[key] = parse(value, "", name=key, place=place)
    metric: Metric = build(Table("", place, settings), Metric, plugins=plugins)  # type: ignore[type-abstract]
    return metric
