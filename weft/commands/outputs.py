"""Output files of a command: checked before the work starts, written atomically; its exit code.

Read next: evaluate.py, which uses it.
"""

import stat
from collections.abc import Sequence
from pathlib import Path

import click

from weft.commands.program import typed
from weft.errors import ConfigError, DataError
from weft.store import files

UNANSWERED = 3
"""The exit code if some inputs have no answer and all others have one."""


def reported(wrong: Sequence[str]) -> int:
    """Print on standard error which inputs have no answer, and why; returns the command's exit code."""
    for one in "\n".join(wrong).split("\n") if wrong else ():
        click.echo(f"weft: {one}", err=True)
    return UNANSWERED if wrong else 0


def check_outputs(*paths: Path | None, reads: Sequence[Path | None] = ()) -> None:
    """Check that files can be written, before hours of work; a path of None is skipped.

    Args:
        paths: files to write.
        reads: files that the command reads, so it must not replace them.

    Raises:
        DataError: a path is a directory, or its parent is not one; it is read, or it is written twice.
    """
    used = {path.resolve() for path in reads if path is not None}
    for path in paths:
        if path is None:
            continue
        try:
            if path.resolve() in used and _regular(path):
                raise DataError("this command reads or writes it already; choose another name", path=path)
            used.add(path.resolve())
            if files.is_dir(path):
                raise DataError("expected a file, got a directory; name a file in it", path=path)
            if not files.is_dir(path.absolute().parent):
                raise DataError(
                    f"no such directory {path.parent}; create it, or choose another name", path=path
                )
        except OSError as error:
            raise DataError(
                f"cannot be written ({error.strerror}); choose another place", path=path
            ) from error


def write(path: Path, text: str) -> None:
    """Write a text as UTF-8, atomically.

    Raises:
        DataError: it cannot be written; an earlier file stays as it was.
    """
    write_bytes(path, text.encode("utf-8", "replace"))


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file atomically, see `write`; a device or a pipe, such as /dev/stdout, is written to."""
    try:
        if _regular(path):
            files.replace(path, content)
        else:  # a rename would put a file in its place
            path.write_bytes(content)
    except OSError as error:
        raise DataError(
            f"cannot be written ({error.strerror or error}); free some space or choose another place",
            path=path,
        ) from error


def _regular(path: Path) -> bool:
    """Whether a path is a file or nothing yet, not a device or a pipe."""
    found = files.status(path)
    return found is None or stat.S_ISREG(found.st_mode)


def fresh(recipe: Path) -> Path:
    """Check that `weft init` can write this recipe, and return its path.

    Raises:
        ConfigError: the file exists.
        DataError: it cannot be written.
    """
    if recipe.exists():
        raise ConfigError(f"{recipe}: already exists; remove it or choose another name with --output")
    check_outputs(recipe)
    return recipe


def begin(recipe: Path, text: str, *steps: Sequence[str], plugin: Sequence[str] = ()) -> None:
    """Write a recipe, print it, and print the next commands.

    Args:
        recipe: path, from `fresh`.
        text: the recipe.
        steps: commands to suggest before `weft train`, as words after `weft`.
        plugin: options with the package of a plugin's task.
    """
    write(recipe, text)
    click.echo(text)
    shown = "".join(f"  {typed(*step)}\n" for step in (*steps, ["train", str(recipe), *plugin]))
    click.echo(f"recipe: {recipe}\nnext:\n{shown}", nl=False)
