"""The recipes included in Weft, and how to find one by name. Read next: recipe.py."""

import difflib
from pathlib import Path

from weft.errors import ConfigError

_PACKAGE = Path(__file__).parents[1]


def shipped() -> list[Path]:
    """All recipes included in Weft, sorted by task and name."""
    return sorted(_folder().glob("*/*.yaml"))


def recommended(recipe: Path) -> bool:
    """Whether the header of a recipe recommends it to start with, in a line `# Recommended: WHY`.

    Example:
        >>> [one.stem for one in shipped() if one.parent.name == "masked" and recommended(one)]
        ['help-bert']
    """
    header = recipe.read_text("utf-8").partition("\ntask:")[0]
    return "\n# Recommended: " in header


def find(recipe: str | Path) -> Path:
    """The file of a recipe: the path itself if it exists, otherwise the included recipe of that name.

    Args:
        recipe: a path, or an included recipe as recipes/TASK/NAME.yaml, TASK/NAME or NAME.

    Raises:
        ConfigError: there is no such recipe, or the name is ambiguous.

    Example:
        >>> [find(name).name for name in ("help-gpt", "language/help-gpt", "recipes/language/help-gpt.yaml")]
        ['help-gpt.yaml', 'help-gpt.yaml', 'help-gpt.yaml']
    """
    path = Path(recipe)
    try:
        path.stat()
        return path
    except FileNotFoundError:
        if path.is_absolute():
            return path
    except (OSError, ValueError):
        return path  # reading it will raise a clear error
    parts = path.parts[1:] if path.parts[:1] == ("recipes",) else path.parts
    named = ("/".join(parts)).removesuffix(".yaml")
    known = {f"{one.parent.name}/{one.stem}": one for one in shipped()}
    matches = {name: one for name, one in known.items() if named in (name, one.stem)}
    if len(matches) == 1:
        return next(iter(matches.values()))
    if matches:
        raise ConfigError(f"{recipe}: the name is ambiguous; choose one of {', '.join(matches)}")
    names = [one.stem for one in known.values()]
    near = difflib.get_close_matches(named.rpartition("/")[2], names, 1)
    hint = f"did you mean {near[0]}?" if near else "`weft recipes` lists those that come with Weft"
    raise ConfigError(f"{recipe}: no such file and no such recipe; {hint}")


def _folder() -> Path:
    """The recipes' folder: in the package if installed, next to it in a checkout."""
    inside = _PACKAGE / "recipes"
    return inside if inside.is_dir() else _PACKAGE.parent / "recipes"
