"""The recipes that come with Weft, and the one that a name means. Read next: recipe.py."""

import difflib
from pathlib import Path

from weft.errors import ConfigError

_PACKAGE = Path(__file__).parents[1]


def shipped() -> list[Path]:
    """Every recipe that comes with Weft, sorted by task and name."""
    return sorted(_folder().glob("*/*.yaml"))


def find(recipe: str | Path) -> Path:
    """The recipe's file: the path itself where there is one, else the shipped recipe of that name.

    Args:
        recipe: a path, or a shipped recipe as recipes/TASK/NAME.yaml, TASK/NAME or NAME.

    Raises:
        ConfigError: there is neither, or the name means several recipes.

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
        return path  # who reads it says what is wrong with it
    asked = path.parts[1:] if path.parts[:1] == ("recipes",) else path.parts
    named = ("/".join(asked)).removesuffix(".yaml")
    known = {f"{one.parent.name}/{one.stem}": one for one in shipped()}
    meant = {name: one for name, one in known.items() if named in (name, one.stem)}
    if len(meant) == 1:
        return next(iter(meant.values()))
    if meant:
        raise ConfigError(f"{recipe}: the name is ambiguous; choose one of {', '.join(meant)}")
    names = [one.stem for one in known.values()]
    near = difflib.get_close_matches(named.rpartition("/")[2], names, 1)
    hint = f"did you mean {near[0]}?" if near else "`weft recipes` lists those that come with Weft"
    raise ConfigError(f"{recipe}: no such file and no such recipe; {hint}")


def _folder() -> Path:
    """Inside an installed package; in a checkout, beside it."""
    inside = _PACKAGE / "recipes"
    return inside if inside.is_dir() else _PACKAGE.parent / "recipes"
