"""Output files of a command, written atomically; its exit code.

Read next: output_check.py, the check before the work; evaluate.py, which uses both.
"""

from collections.abc import Sequence
from pathlib import Path

import click

from weft.commands.output_check import check_outputs, is_regular
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


def remarked(lines: Sequence[str]) -> None:
    """Print on standard error what answers lack of their inputs."""
    for line in lines:
        click.echo(f"note: {line}", err=True)


def write(path: Path, text: str) -> None:
    """Write a text as UTF-8, atomically.

    Raises:
        DataError: it cannot be written; an earlier file stays as it was.
    """
    write_bytes(path, text.encode("utf-8", "replace"))


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file atomically, see `write`; a device or a pipe, such as /dev/stdout, is written to."""
    try:
        if is_regular(path):
            files.replace(path, content)
        else:  # a rename would put a file in its place
            path.write_bytes(content)
    except OSError as error:
        raise DataError(
            f"cannot be written ({error.strerror or error}); free some space or choose another place",
            path=path,
        ) from error


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


def folder_for(path: Path) -> None:
    """Create a directory if it does not exist.

    Raises:
        DataError: it cannot be created.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(
            f"cannot be created ({error.strerror or error}); choose another directory", path=path
        ) from error
