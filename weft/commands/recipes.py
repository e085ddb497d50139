"""weft recipes: list or print the recipes that come with Weft."""

from pathlib import Path

import click

from weft.commands.program import typed


@click.command()
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """List the recipes that come with Weft, or print one.

    With the NAME of a recipe, print that recipe. With the NAME of a task, list its recipes.

    \b
    Examples:
      weft recipes
      weft recipes translate
      weft recipes help-lstm-attention > mine.yaml
      weft train help-lstm-attention
    """  # noqa: D301  click reads the \b
    from weft.config.shipped import find, shipped

    recipes = [one for one in shipped() if name in (None, one.parent.name)]
    if name is not None and not recipes:
        click.echo(find(name).read_text("utf-8"), nl=False)
        return
    width = max(len(one.stem) for one in recipes)
    for task in dict.fromkeys(one.parent.name for one in recipes):
        click.echo(f"{task}")
        for one in (one for one in recipes if one.parent.name == task):
            click.echo(f"  {one.stem:<{width}}  {_about(one)}")
    click.echo(
        f"\nTo train one: {typed('train', recipes[0].stem)}\n"
        f"To copy one:  {typed('recipes', recipes[0].stem)} > my.yaml"
    )


def _about(recipe: Path) -> str:
    """The first line of its header, and whether it needs a folder of data."""
    about, command, *_ = recipe.read_text("utf-8").splitlines()
    needs = " (needs data.folder=PATH)" if "data.folder=PATH" in command else ""
    return about.removeprefix("# ") + needs
