"""weft data: look at data files before anything is trained on them."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

SHOWN = 50


@click.group(short_help="Check data files: everything that is wrong, at once.", no_args_is_help=True)
def command() -> None:
    """Look at data files."""


@command.command("check", short_help="Report everything that is wrong, with file and line.")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--task", help="Task that the files are for. Default: told by their endings and first lines.")
@click.option("--text", help="Column of a table of labelled texts that holds the text. Default: guessed.")
@click.option("--label", help="Column of a table of labelled texts that holds the class. Default: guessed.")
@click.option(
    "--labels",
    type=click.Choice(["marked", "first", "coarse"]),
    help="How a line names its class: __label__CLASS (marked), its first word (first), or its first word "
    "up to the colon (coarse).",
)
@click.option("--encoding", help="Encoding of the files, such as latin-1.")
@click.option("--plugin", "plugins", multiple=True, help="A package of yours whose task --task names.")
@click.option("--all", "everything", is_flag=True, help=f"Print every finding, not only the first {SHOWN}.")
def check(
    files: tuple[Path, ...],
    task: str | None,
    plugins: tuple[str, ...],
    everything: bool,
    **form: str | None,
) -> int:
    """Report everything that is wrong with FILES (train.en train.de, .tsv, ...), with file and line.

    \b
    weft data check train.en train.de valid.en valid.de
    weft data check reviews.csv --text review --label stars

    The summary comes first, then each finding. Exit code 1 if a training would refuse the files; 0 if it
    takes them, with warnings or without.
    """  # noqa: D301  click reads the \b
    import weft.tasks
    from weft import rooms
    from weft.config.plugins import asked
    from weft.errors import ConfigError
    from weft.tasks.task import Task

    columns = {name: value for name, value in form.items() if value is not None}
    kinds: dict[str, Any] = {} if task else rooms.parts(weft.tasks, Task)
    takers = [name for name, kind in kinds.items() if columns.keys() <= set(kind.options.get("check", ()))]
    named = task or (takers[0] if columns and takers else _told(files, kinds))
    kind: Any = asked("--task", named, Task, plugins)
    if unknown := [f"--{name}" for name in columns if name not in kind.options.get("check", ())]:
        raise ConfigError(
            f"{' and '.join(unknown)}: expected files of a task that has this option, got files for {named}; "
            "leave it out"
        )
    report = kind.check(files, **columns)
    click.echo(report.summary)
    if task is None and report.num_errors:
        click.echo(f"checked as files for {named}; if they are for another task, name it with --task")
    findings = report.ordered()
    shown = findings if everything else findings[:SHOWN]
    for place, finding in enumerate(shown):
        click.echo(f"\n{finding}" if place == 0 else str(finding))
    if len(findings) > len(shown):
        click.echo(f"... and {len(findings) - len(shown):,} more (--all prints them)")
    return 1 if report.num_errors else 0


def _told(files: Sequence[Path], kinds: Mapping[str, type]) -> str:
    """The one task that endings and first lines of all files speak of."""
    from weft.errors import ConfigError

    tasks: dict[str, Path] = {}
    for file in files:
        tasks.setdefault(_task_of(file, kinds), file)
    if len(tasks) > 1:
        (one, first), (other, second), *_ = tasks.items()
        raise ConfigError(
            f"{first} looks like a file for {one}, {second} like one for {other}; check them one task at a "
            "time, or name it with --task"
        )
    return next(iter(tasks))


def _task_of(file: Path, kinds: Mapping[str, type]) -> str:
    from weft.data.files import COMPRESSED
    from weft.data.lines import read_lines
    from weft.errors import DataError
    from weft.tasks.task import Task

    ending = next((each for each in reversed(file.suffixes) if each not in COMPRESSED), "").lower()
    cells: set[str] = set()
    if ending in (".csv", ".tsv"):
        with suppress(DataError):  # the check names it
            cells = {cell.strip(' "') for cell in re.split("[,;\t]", next(read_lines(file), ""))}
    tasks = {name: kind for name, kind in kinds.items() if issubclass(kind, Task)}
    by_columns = (name for name, kind in tasks.items() if kind.columns and cells.issuperset(kind.columns))
    if cells and not any(kind.columns and cells.issuperset(kind.columns) for kind in tasks.values()):
        for name, kind in tasks.items():
            if kind.knows(file):
                return name
    by_ending = [name for name, kind in tasks.items() if ending in kind.suffixes]
    others = [name for name, kind in tasks.items() if "*" in kind.suffixes]
    return next(by_columns, [*by_ending, *others][0])
