"""weft data: look at data files before anything is trained on them."""

from pathlib import Path
from typing import Any

import click

SHOWN = 50


@click.group(short_help="Check data files: everything that is wrong, at once.", no_args_is_help=True)
def command() -> None:
    """Look at data files."""


@command.command("check", short_help="Report everything that is wrong, with file and line.")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--task", help="The task that the files are for; by their endings, or translate, by default.")
@click.option("--all", "everything", is_flag=True, help=f"Print every finding, not only the first {SHOWN}.")
def check(files: tuple[Path, ...], task: str | None, everything: bool) -> int:
    """Report everything that is wrong with FILES (train.en train.de, .tsv, ...), with file and line.

    Exit code 1 if something would stop or spoil a training, 0 otherwise.
    """
    import weft.tasks
    from weft import rooms
    from weft.data.files import COMPRESSED
    from weft.tasks.task import Task

    kinds: dict[str, Any] = rooms.parts(weft.tasks, Task)
    ending = next((each for each in reversed(files[0].suffixes) if each not in COMPRESSED), "").lower()
    kind = next((kind for kind in kinds.values() if ending in kind.suffixes), kinds["translate"])
    if task is not None:
        kind = rooms.find(weft.tasks, Task, task)
    report = kind.check(files)
    shown = report.findings if everything else report.findings[:SHOWN]
    for finding in shown:
        click.echo(str(finding))
    if len(report.findings) > len(shown):
        click.echo(f"... and {len(report.findings) - len(shown):,} more (--all prints them)")
    click.echo(report.summary)
    return 1 if report.findings else 0
