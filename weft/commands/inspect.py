"""weft inspect: one page that shows what a run does with an input."""

from pathlib import Path
from typing import Any

import click

FORMATS = ("svg", "png", "csv", "json")

VIEWS = {
    "forecast": "the past, the forecast and its bands",
    "recording": "sound over time, and where each character listened",
    "picture": "a picture, light where the model looked",
    "alignment": "which input each output looked at",
    "copied-words": "how much of each word came from the source",
    "words-that-weighed": "which words decided the class",
    "probabilities": "how sure each choice was, and the alternatives",
    "search-tree": "every candidate of a beam search",
    "cells-over-time": "states and gates of recurrent layers",
    "gradient-reach": "how far back gradients reach",
    "attention-heads": "self-attention, head by head",
    "positions": "encodings of position",
    "embeddings": "nearest words, by themselves and in context",
    "quality-by-length": "score by source length (needs the test split)",
    "training": "loss, scores and gradients over the training",
}
"""Names for --only, in the order of the page, with what the help says of each."""


class Inspect(click.Command):
    """Its help ends with the names of all views."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list."""
        with formatter.section("Views (a run has those that apply to it)"):
            formatter.write_dl(list(VIEWS.items()))


@click.command(cls=Inspect, short_help="Look inside a run: one page with every view.")
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("text", required=False)
@click.option("--output", type=click.Path(path_type=Path), help="The page; RUN/inspect.html by default.")
@click.option(
    "--only",
    multiple=True,
    metavar="NAME",
    help="Show only this view (repeatable); the names are listed below.",
)
@click.option(
    "--view",
    "more",
    multiple=True,
    metavar="PATH",
    help="Also show a view of a plugin, such as mine.views.Letters (repeatable).",
)
@click.option(
    "--views",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Also write each view as files in this folder, named after the view.",
)
@click.option(
    "--format",
    "forms",
    multiple=True,
    type=click.Choice(FORMATS),
    help="Format of the files of --views (repeatable); all four by default.",
)
@click.option(
    "--evaluate",
    is_flag=True,
    help="Also score the test split by length (translation, speech); it takes longer.",
)
@click.option("--series", help="Of a forecaster: the series to look at; the first by default.")
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="KEY=VALUE",
    help="Any setting of the recipe's section decoding, such as beam=3.",
)
@click.option("--device", default="cpu", show_default=True, help="cpu, cuda or auto.")
@click.option("--plugin", "plugins", multiple=True, help="A package of yours whose parts the recipe names.")
def command(**given: Any) -> None:
    """Write one page that shows what the model of RUN does with TEXT.

    The page has every view that applies to the run, or those that --only names, and needs no network. Without
    TEXT, the page shows an example from the validation data. A forecaster takes a file of series as TEXT.

    \b
    weft inspect runs/en-es "Click the button."
    weft inspect runs/en-es "Click the button." --output page.html --views pictures --format svg
    weft inspect runs/en-es --only alignment --only search-tree
    """  # noqa: D301  click reads the \b
    from weft.commands import outputs
    from weft.commands.views import folder_for
    from weft.config.plugins import asked
    from weft.errors import ConfigError
    from weft.inspect.inspection import inspected_of, name_of, page_of, views_of, write_views
    from weft.inspect.views.quality import score
    from weft.inspect.views.view import View
    from weft.run import open_run

    output, folder, forms, only = given["output"], given["views"], given["forms"], given["only"]
    for name in only:
        if name not in VIEWS:
            raise ConfigError(
                f"--only: expected the name of a view, got {name!r}; take one of {', '.join(VIEWS)}"
            )
    if forms and folder is None:
        raise ConfigError(f"--format {forms[0]}: says what --views writes; give --views DIR too")
    outputs.check(output)
    changes = [f"decoding.{change}" for change in given["changes"]]
    opened = open_run(given["run"], device=given["device"], plugins=given["plugins"], changes=changes)
    subject = inspected_of(opened, given["text"], {"series": given["series"]})
    more = [asked("--view", name, View, given["plugins"]) for name in given["more"]]
    views = views_of(opened, subject, only, more)
    if given["evaluate"] or "quality-by-length" in only:
        views = sorted([*views, score(opened)], key=lambda view: view.order)
    for name in only:
        if name not in map(name_of, views):
            there = ", ".join(map(name_of, views_of(opened, subject)))
            raise ConfigError(
                f"--only {name}: expected a view that applies to {given['run']}, which has {there}"
            )
    path = output or given["run"] / "inspect.html"
    outputs.write(path, page_of(opened, subject, views))
    click.echo(f"{', '.join(view.title for view in views)}: {path}")
    if folder is not None:
        folder_for(folder)
        written = write_views(views, folder, forms or FORMATS)  # type: ignore[arg-type]
        click.echo(f"{len(written)} files: {folder}")
