"""weft inspect: one page that shows what a model does with an input."""

import ast
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

import weft.inspect.views
from weft.commands.options import ListingCommand, plugin, setting
from weft.commands.outputs import check_outputs, output_option
from weft.errors import ConfigError
from weft.wording import plural

FORMATS = ("svg", "png", "csv", "json")


def _listed() -> list[tuple[str, str]]:
    """The views and what they show, read from their source: to import them would import torch."""
    found = []
    for file in Path(weft.inspect.views.__path__[0]).glob("*.py"):
        for one in ast.parse(file.read_text("utf-8")).body:
            said = {} if not isinstance(one, ast.ClassDef) else dict(_assigned(one))
            if isinstance(one, ast.ClassDef) and "title" in said:
                text = (ast.get_docstring(one) or "").partition("\n")[0].rstrip(".")
                name = str(said["title"]).lower().replace(" ", "-")
                found.append((said.get("order", 0), name, text[:1].lower() + text[1:]))
    return [(name, text) for _, name, text in sorted(found)]


def _assigned(one: ast.ClassDef) -> Iterator[tuple[str, Any]]:
    """The names of a class whose values are written out, also several in one line."""
    for row in one.body:
        if isinstance(row, ast.Assign | ast.AnnAssign) and row.value is not None:
            target = row.target if isinstance(row, ast.AnnAssign) else row.targets[0]
            with suppress(ValueError):  # computed: such a view stands first
                value = ast.literal_eval(row.value)
                names = ast.unparse(target).strip("()").split(", ")
                yield from zip(names, value if isinstance(target, ast.Tuple) else [value], strict=True)


@click.command(
    cls=ListingCommand,
    heading="Views (a page shows those that apply to the run)",
    listed=_listed,
)
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("text", required=False)
@output_option("--output", show_default="RUN/inspect.html", help="Page to write.")
@click.option(
    "--only",
    multiple=True,
    metavar="NAME",
    show_default="every view that applies",
    help="View to show (repeatable); the names are listed below.",
)
@click.option(
    "--view",
    "more",
    multiple=True,
    metavar="PATH",
    help="Also show a view of a plugin, such as mine.views.Letters (repeatable).",
)
@output_option("--views", help="Directory for each view as separate files, besides the page.", folder=True)
@click.option(
    "--format",
    "forms",
    multiple=True,
    type=click.Choice(FORMATS),
    show_default="all four",
    help="File format for --views (repeatable).",
)
@click.option(
    "--evaluate",
    is_flag=True,
    help="Add the view quality-by-length, which scores the test split and takes longer.",
)
@click.option(
    "--series", metavar="NAME", show_default="the first", help="Forecasts only: the series to show."
)
@setting
@click.option("--device", metavar="NAME", default="cpu", help="Device to compute on: cpu, cuda or auto.")
@plugin
def command(**given: Any) -> None:
    """See what the model of RUN does with TEXT: attention, states and search, on one web page.

    The page is a single file that works offline. Without TEXT, it shows an example from the validation data.
    For forecasts, TEXT is a file of series.

    \b
    Examples:
      weft inspect runs/en-es "Click the button."
      weft inspect runs/en-es "Click the button." --output page.html --views pictures --format svg
      weft inspect runs/en-es --only alignment --only search-tree
    """  # noqa: D301  click reads the \b
    from weft.commands import outputs
    from weft.commands.options import open_asked, settings_for
    from weft.commands.outputs import folder_for
    from weft.config.plugins import named_part
    from weft.inspect.inspection import inspection_of, kinds, name_of, page_of, views_of, write_views
    from weft.inspect.views.curves import score
    from weft.inspect.views.view import View

    output, folder, forms, only = given["output"], given["views"], given["forms"], given["only"]
    for name in only:
        if name not in (known := kinds()):
            raise ConfigError(
                f"--only: expected the name of a view, got {name!r}; take one of {', '.join(known)}"
            )
    if forms and folder is None:
        raise ConfigError(f"--format {forms[0]}: applies to --views only; add --views DIR")
    check_outputs()
    opened = open_asked(given)
    settings = settings_for(opened, opened.task.inspection_settings, {"series": given["series"]}, ())
    subject = inspection_of(opened, given["text"], settings)
    more = [named_part("--view", name, View, given["plugins"]) for name in given["more"]]
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
        paths = write_views(views, folder, forms or FORMATS)  # type: ignore[arg-type]
        click.echo(f"{plural(len(paths), 'file')}: {folder}")
