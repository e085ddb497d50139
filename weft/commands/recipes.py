"""weft recipes: list or print the recipes that come with Weft."""

from collections.abc import Collection
from pathlib import Path

import click

from weft.commands.program import typed
from weft.errors import ConfigError
from weft.wording import columns, folded


@click.command()
@click.argument("words", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="List all recipes, not only those to start with.")
def command(words: tuple[str, ...], everything: bool) -> None:
    """List the recipes that come with Weft, or print one.

    With the name of a recipe, print that recipe. With the name of a task, list its recipes; other WORDS list
    those whose name or first line contains all of them. Without any, list those that we recommend to start
    with, marked by a star; the others are for study.

    \b
    Examples:
      weft recipes
      weft recipes translate
      weft recipes translate lstm
      weft recipes help-demo > mine.yaml
      weft train mine.yaml
    """  # noqa: D301  click reads the \b
    from weft.config.recipe import find_recipe, recommended, shipped

    tasks = {one.parent.name for one in shipped()}
    recipes = [one for one in shipped() if all(_matches(one, word, tasks) for word in words)]
    if len(words) == 1 and (not recipes or any(words[0] == one.stem for one in recipes)):
        found = find_recipe(words[0])
        if found.note:
            click.echo(found.note, err=True)
        click.echo(found.path.read_text("utf-8"), nl=False)
        return
    if not recipes:
        raise ConfigError(f"{' '.join(words)}: no recipe has all these words; leave one out, or try --all")
    best = [one for one in recipes if recommended(one)]
    listed = recipes if words or everything else best
    width = max(len(one.stem) for one in listed)
    for task in dict.fromkeys(one.parent.name for one in recipes):
        some = [one for one in listed if one.parent.name == task]
        others = sum(one.parent.name == task for one in recipes) - len(some)
        click.echo(task + (f" (and {others} more)" if others else ""))
        for one in sorted(some, key=lambda one: one not in best):
            lines = folded(_about(one), max(30, columns() - width - 4), indent=0).split("\n")
            click.echo(f"{'*' if one in best else ' '} {one.stem:<{width}}  {lines[0]}")
            for line in lines[1:]:
                click.echo(f"{'':<{width + 4}}{line}")
    first = min(listed, key=lambda one: (one not in best, _needs_data(one)))
    click.echo(
        "\n* Recommended to start with, the others for study; each header says why.\n"
        f"To train one: {typed('train', first.stem)}\n"
        f"To copy one:  {typed('recipes', first.stem)} > my.yaml"
        + ("" if listed == recipes else f"\nTo see more:  {typed('recipes', first.parent.name)}, or --all")
    )


def _matches(recipe: Path, word: str, tasks: Collection[str]) -> bool:
    """Whether a recipe belongs to the task of this name, or has the word in its name or summary."""
    if word in tasks:
        return recipe.parent.name == word
    return word.lower() in f"{recipe.stem} {_about(recipe)}".lower()


def _about(recipe: Path) -> str:
    """The first line of its header, and whether it needs a folder of data."""
    about = recipe.read_text("utf-8").partition("\n")[0].removeprefix("# ")
    return about + (" (needs data.folder=PATH)" if _needs_data(recipe) else "")


def _needs_data(recipe: Path) -> bool:
    """Whether its command names a folder of data."""
    return "data.folder=PATH" in recipe.read_text("utf-8").splitlines()[1]
