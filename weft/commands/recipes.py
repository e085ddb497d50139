"""weft recipes: list or print the recipes that come with Weft."""

from pathlib import Path

import click

from weft.commands.program import typed
from weft.wording import columns, folded


@click.command()
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """List the recipes that come with Weft, or print one.

    With the NAME of a recipe, print that recipe. With the NAME of a task, list its recipes. A star marks
    those that we recommend to start with; the others are for study.

    \b
    Examples:
      weft recipes
      weft recipes translate
      weft recipes help-demo > mine.yaml
      weft train mine.yaml
    """  # noqa: D301  click reads the \b
    from weft.config.shipped import find_recipe, recommended, shipped

    recipes = [one for one in shipped() if name in (None, one.parent.name)]
    if name is not None and not recipes:
        found = find_recipe(name)
        if found.note:
            click.echo(found.note, err=True)
        click.echo(found.path.read_text("utf-8"), nl=False)
        return
    width = max(len(one.stem) for one in recipes)
    for task in dict.fromkeys(one.parent.name for one in recipes):
        click.echo(f"{task}")
        some = [one for one in recipes if one.parent.name == task]
        for one in sorted(some, key=lambda one: not recommended(one)):
            lines = folded(_about(one), max(30, columns() - width - 4), indent=0).split("\n")
            click.echo(f"{'*' if recommended(one) else ' '} {one.stem:<{width}}  {lines[0]}")
            for line in lines[1:]:
                click.echo(f"{'':<{width + 4}}{line}")
    first = min(recipes, key=lambda one: (not recommended(one), _needs_data(one)))
    click.echo(
        "\n* Recommended to start with, the others for study; each header says why.\n"
        f"To train one: {typed('train', first.stem)}\n"
        f"To copy one:  {typed('recipes', first.stem)} > my.yaml"
    )


def _about(recipe: Path) -> str:
    """The first line of its header, and whether it needs a folder of data."""
    about = recipe.read_text("utf-8").partition("\n")[0].removeprefix("# ")
    return about + (" (needs data.folder=PATH)" if _needs_data(recipe) else "")


def _needs_data(recipe: Path) -> bool:
    """Whether its command names a folder of data."""
    return "data.folder=PATH" in recipe.read_text("utf-8").splitlines()[1]
