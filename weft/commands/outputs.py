"""Output files of a command, written atomically; its exit code.

Read next: output_check.py, the check before the work; evaluate.py, which uses both.
"""

from collections.abc import Sequence
from pathlib import Path

import click

from weft.commands.output_check import is_regular
from weft.store import files
from weft.wording import plural

UNANSWERED = 3
"""The exit code if some inputs have no answer and all others have one."""


def reported(wrong: Sequence[str]) -> int:
    """Print on standard error which inputs have no answer, and why; returns the command's exit code."""
    for one in "\n".join(wrong).split("\n") if wrong else ():
        click.echo(f"weft: {one}", err=True)
    return UNANSWERED if wrong else 0


def remarked(lines: Sequence[str], named: int = 0) -> None:
    """Print on standard error what answers lack of their inputs, and how many of them are named."""
    last = f"{plural(named, 'answer')} named above; --strict refuses what is named"
    for line in (*lines, last) if named else lines:
        click.echo(f"note: {line}", err=True)


def write(path: Path, text: str) -> None:
    """Write a text as UTF-8, atomically."""
    write_bytes(path, text.encode("utf-8", "replace"))


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file atomically, see `write`; a device or a pipe, such as /dev/stdout, is written to."""
    with files.refusals(path):
        if is_regular(path):
            files.replace(path, content)
        else:  # a rename would put a file in its place
            path.write_bytes(content)


def folder_for(path: Path) -> None:
    """Create a directory if it does not exist."""
    with files.refusals(path, "choose another directory", "created"):
        path.mkdir(parents=True, exist_ok=True)
