"""The recipes included in Weft, and how to find one by its name of today or of yesterday.

Read next: recipe.py.
"""

import re
import shlex
from functools import cache
from pathlib import Path
from typing import NamedTuple

from weft.config.text import parse
from weft.errors import ConfigError
from weft.store import files
from weft.wording import close_name

_GONE = {"unmeasured": "was never measured to its end", "worse": "was worse than naive Bayes"}


class ShippedRecipe(NamedTuple):
    """A recipe that a name stands for.

    Attributes:
        overrides: what an old name adds to it, as section.key=value.
        note: what to type instead of an old name, in one line; "" for a name of today.
    """

    path: Path
    overrides: tuple[str, ...] = ()
    note: str = ""


class OldName(NamedTuple):
    """An old name of a recipe.

    Attributes:
        recipe: name of the recipe that stands for it now.
        overrides: section.key=value.
        gone: why it is another model now; "" if it is the same one.
    """

    recipe: str
    overrides: tuple[str, ...]
    gone: str = ""

    @property
    def words(self) -> str:
        """What to type after `weft train`."""
        return shlex.join([self.recipe, *self.overrides])


def shipped() -> list[Path]:
    """All recipes included in Weft, sorted by task and name."""
    return sorted(one for one in files.recipes_folder().glob("*/*.yaml") if one.parent.name != "templates")


def variants() -> dict[str, OldName]:
    """Old names of recipes, as TASK/NAME."""
    return _variants(files.recipes_folder())


def recommended(recipe: Path) -> bool:
    """Whether the header of a recipe recommends it to start with, in a line `# Recommended: WHY`."""
    header = recipe.read_text("utf-8").partition("\ntask:")[0]
    return "\n# Recommended: " in header


def data_source(recipe: Path) -> str:
    """What the folder of data of an included recipe holds and where it comes from, from its header."""
    header = recipe.read_text("utf-8").partition("\ntask:")[0]
    found = re.search(r"^# Data: (.+)$", header, re.MULTILINE)
    return found[1].removesuffix(".") if found else ""


def find_recipe(recipe: str | Path) -> ShippedRecipe:
    """The recipe at a path if there is one, otherwise the included recipe of that name."""
    path = Path(recipe)
    try:
        path.stat()
        return ShippedRecipe(path)
    except FileNotFoundError:
        if path.is_absolute():
            return ShippedRecipe(path)
    except (OSError, ValueError):
        return ShippedRecipe(path)  # reading it will raise a clear error
    parts = path.parts[1:] if path.parts[:1] == ("recipes",) else path.parts
    named = ("/".join(parts)).removesuffix(".yaml")
    known = {f"{one.parent.name}/{one.stem}": one for one in shipped()}
    matches = {name: one for name, one in known.items() if named in (name, one.stem)}
    if len(matches) == 1:
        return ShippedRecipe(next(iter(matches.values())))
    if matches:
        raise ConfigError(f"{recipe}: the name is ambiguous; choose one of {', '.join(matches)}")
    for name, old in variants().items():
        if named in (name, name.partition("/")[2]):
            return _renamed(name, old)
    names = [one.stem for one in known.values()]
    near = close_name(named.rpartition("/")[2], names)
    hint = f"did you mean {near}?" if near else "`weft recipes --all` lists those that come with Weft"
    raise ConfigError(f"{recipe}: no such file and no such recipe; {hint}")


def _renamed(name: str, old: OldName) -> ShippedRecipe:
    task, _, stem = name.partition("/")
    is_now = f"{old.gone} and is gone; use instead" if old.gone else "is now"
    note = f"{stem} {is_now}: weft train {old.words}"
    return ShippedRecipe(files.recipes_folder() / task / f"{old.recipe}.yaml", old.overrides, note)


@cache
def _variants(home: Path) -> dict[str, OldName]:
    file = home / "variants.yaml"
    found = {}
    for part, names in parse(file.read_text("utf-8"), str(file)).plain().items() if file.exists() else ():
        for name, (recipe, *overrides) in names.items():
            found[name] = OldName(recipe, tuple(overrides), _GONE.get(part, ""))
    return found
