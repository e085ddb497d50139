"""weft inspect: one page that shows what a run does with an input."""

from pathlib import Path
from typing import Any

import click

FORMATS = ("svg", "png", "csv", "json")


@click.command(short_help="Look inside a run: one page with every view.")
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("text", required=False)
@click.option("--output", type=click.Path(path_type=Path), help="The page; RUN/inspect.html by default.")
@click.option(
    "--views", metavar="DIR", type=click.Path(path_type=Path), help="Write every view as files there, too."
)
@click.option(
    "--format",
    "forms",
    multiple=True,
    type=click.Choice(FORMATS),
    help="Of the files of --views; may be given several times. All four by default.",
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

    Alignment, search tree, gates, gradients, attention heads, probabilities, embeddings, training curves:
    every view that the model has something for. The page needs no network. Without TEXT, an example that the
    run was validated on is taken; a forecaster takes a file of series.

    \b
    weft inspect runs/en-es "Click the button."
    weft inspect runs/en-es "Click the button." --output page.html --views pictures --format svg
    """  # noqa: D301  click reads the \b
    from weft.commands import outputs
    from weft.commands.views import folder_for
    from weft.errors import ConfigError
    from weft.inspect.inspection import inspected_of, page_of, views_of, write_views
    from weft.inspect.views.quality import score
    from weft.run import open_run

    output, folder, forms = given["output"], given["views"], given["forms"]
    if forms and folder is None:
        raise ConfigError(f"--format {forms[0]}: says what --views writes; give --views DIR too")
    outputs.check(output)
    changes = [f"decoding.{change}" for change in given["changes"]]
    opened = open_run(given["run"], device=given["device"], plugins=given["plugins"], changes=changes)
    subject = inspected_of(opened, given["text"], {"series": given["series"]})
    views = views_of(opened, subject)
    if given["evaluate"]:
        views = sorted([*views, score(opened)], key=lambda view: view.order)
    path = output or given["run"] / "inspect.html"
    outputs.write(path, page_of(opened, subject, views))
    click.echo(f"{', '.join(view.title for view in views)}: {path}")
    if folder is not None:
        folder_for(folder)
        written = write_views(views, folder, forms or FORMATS)  # type: ignore[arg-type]
        click.echo(f"{len(written)} files: {folder}")
