"""Files that a command writes where the user says: refused before the work begins, atomically.

Read next: evaluate.py, which uses it.
"""

from collections.abc import Sequence
from pathlib import Path

import click

from weft import files
from weft.commands.program import typed
from weft.errors import ConfigError, DataError


def check(*paths: Path | None) -> None:
    """See that files can be written, before hours are spent on what goes into them; None is none.

    Raises:
        DataError: a path is a directory, or the directory it is to stand in is none.
    """
    for path in paths:
        if path is None:
            continue
        try:
            if path.is_dir():
                raise DataError("is a directory; name a file in it", path=path)
            if not path.absolute().parent.is_dir():
                raise DataError(
                    f"no such directory {path.parent}; create it, or choose another name", path=path
                )
        except OSError as error:
            raise DataError(
                f"cannot be written ({error.strerror}); choose another place", path=path
            ) from error


def write(path: Path, text: str) -> None:
    """Write a text as UTF-8, LF after each line, atomically.

    Raises:
        DataError: it cannot be written; what stood there before still does.
    """
    write_bytes(path, text.encode("utf-8", "replace"))


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file atomically; see `write`."""
    try:
        files.replace(path, content)
    except OSError as error:
        raise DataError(
            f"cannot be written ({error.strerror or error}); free some space or choose another place",
            path=path,
        ) from error


def fresh(recipe: Path) -> Path:
    """The place of a recipe that `weft init` will write.

    Raises:
        ConfigError: a file is there already, or the place cannot be written.
    """
    if recipe.exists():
        raise ConfigError(f"{recipe}: is there already; remove it or choose another name with --output")
    check(recipe)
    return recipe


def begin(recipe: Path, text: str, *steps: Sequence[str], plugin: Sequence[str] = ()) -> None:
    """Write a recipe, show it, and say what to type next.

    Args:
        recipe: its place, from `fresh`.
        text: of the recipe.
        steps: commands of weft to type before `weft train`, as words.
        plugin: options that name the package of a plugin's task.
    """
    write(recipe, text)
    click.echo(text)
    shown = "".join(f"  {typed(*step)}\n" for step in (*steps, ["train", str(recipe), *plugin]))
    click.echo(f"written to {recipe}\nnext:\n{shown}", nl=False)
