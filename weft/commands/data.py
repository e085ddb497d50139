"""weft data: check data files before training on them, and fetch public data sets."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import click

from weft.commands.options import file_option, given_one, plugin
from weft.data.report import SHOWN
from weft.errors import ConfigError, DataError


@click.group(no_args_is_help=True)
def command() -> None:
    """Check data files for mistakes before training, or fetch a public data set."""


@command.command("check", short_help="Report every mistake with its file and line.")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--task",
    metavar="NAME",
    show_default="guessed from file endings and first lines",
    help="Task that the files are for, such as translate.",
)
@click.option(
    "--source",
    metavar="LANGUAGE",
    show_default="guessed",
    help="Tables of sentence pairs: language to translate from, or its column.",
)
@click.option(
    "--target",
    metavar="LANGUAGE",
    show_default="guessed",
    help="Tables of sentence pairs: language to translate into, or its column. Series: columns to forecast, "
    "such as a,b.",
)
@click.option(
    "--text",
    metavar="COLUMN",
    multiple=True,
    show_default="guessed",
    help="Classification tables: column of the text (repeatable: several are joined).",
)
@click.option(
    "--label", metavar="COLUMN", show_default="guessed", help="Classification tables: column of the class."
)
@click.option(
    "--labels",
    type=click.Choice(["marked", "first", "coarse"]),
    show_default="guessed",
    help="Classification without a table: how a line names its class. marked: __label__CLASS; first: its "
    "first word; coarse: its first word up to the colon.",
)
@click.option(
    "--separator",
    metavar="SIGN",
    help='Classification: separator between the labels of a text (several or none), such as "|".',
)
@click.option(
    "--encoding",
    metavar="NAME",
    show_default="utf-8",
    help="Classification: encoding of the files, such as latin-1.",
)
@click.option(
    "--time",
    metavar="COLUMN",
    multiple=True,
    show_default="guessed",
    help="Series: columns of the times, such as date,hour.",
)
@click.option(
    "--id",
    metavar="COLUMN",
    multiple=True,
    show_default="guessed",
    help="Series: columns that name them, a,b.",
)
@click.option("--known", metavar="COLUMN", multiple=True, help="Series: columns known in advance, a,b.")
@click.option("--past", metavar="COLUMN", multiple=True, help="Series: columns known only for the past, a,b.")
@click.option(
    "--static", metavar="COLUMN", multiple=True, help="Series: columns with one value for each, a,b."
)
@click.option(
    "--category", metavar="COLUMN", multiple=True, help="Series: columns of classes, not numbers, a,b."
)
@click.option(
    "--dates", type=click.Choice(["day", "month"]), help="Series: the first part of dates such as 1/2/2024."
)
@click.option("--zone", metavar="NAME", help="Series: time zone of times without offsets from UTC.")
@click.option(
    "--frequency", metavar="ALIAS", show_default="inferred", help="Series: time between rows, such as D."
)
@click.option(
    "--resample",
    type=click.Choice(["mean", "sum", "first", "last", "min", "max"]),
    help="Series: aggregate rows into periods of --frequency.",
)
@click.option(
    "--absent",
    type=click.Choice(["zero", "missing"]),
    show_default="zero for sums",
    help="Series: what periods without a row are with --resample.",
)
@click.option(
    "--images", metavar="FOLDER", show_default="that of the file", help="Captions: folder of the pictures."
)
@click.option("--all", "everything", is_flag=True, help=f"Print all findings, not only the first {SHOWN}.")
@plugin
def check(
    files: tuple[Path, ...],
    task: str | None,
    plugins: tuple[str, ...],
    everything: bool,
    **form: str | tuple[str, ...] | None,
) -> int:
    """Report every mistake in FILES at once, each with its file and line.

    FILES are data files of any task, such as train.en train.de, or a table (.csv, .tsv, .xlsx). A summary is
    printed first, then each finding. The exit code is 1 if training would fail on the files, else 0, even
    with warnings.

    \b
    Examples:
      weft data check train.en train.de valid.en valid.de
      weft data check reviews.csv --text review --label stars
      weft data check memory.xlsx --source English --target German
      weft data check ledger.csv --time date --target amount --frequency D --resample sum
    """  # noqa: D301  click reads the \b
    import weft.tasks
    from weft import rooms
    from weft.config.plugins import named_part
    from weft.tasks.init import VALID_NAMES, sibling
    from weft.tasks.task import Task

    columns = {name: value for name, value in form.items() if given_one(value)}
    kinds: dict[str, Any] = {} if task else rooms.parts(weft.tasks, Task)
    takers = [name for name, kind in kinds.items() if columns.keys() <= set(kind.check_options)]
    takers.sort(key=lambda name: "*" not in kinds[name].suffixes)
    some = {name: kinds[name] for name in takers} if columns and takers else kinds
    named = task or (takers[0] if len(some) == 1 else guessed_task(files, some))
    kind: Any = named_part("--task", named, Task, plugins)
    if unknown := [f"--{name}" for name in columns if name not in kind.check_options]:
        raise ConfigError(
            f"{' and '.join(unknown)}: expected files of a task that has this option, got files for {named}; "
            "leave it out"
        )
    beside = any(sibling(file, VALID_NAMES) for file in files)
    report = kind.check(files, **columns).with_too_few(1 if beside else kind.least)
    click.echo(report.summary)
    unsure = len(files) == 1 and "*" in kind.suffixes  # a single file that is none of another task
    if task is None and (report.num_errors or unsure):
        click.echo(f"checked as files for {named}; if they are for another task, pass --task")
    if found := report.listing(None if everything else SHOWN, "print them with --all"):
        click.echo(f"\n{found}")
    return 1 if report.num_errors else 0


def guessed_task(files: Sequence[Path], kinds: Mapping[str, type]) -> str:
    """The task that the endings and first lines of all files suggest."""
    tasks: dict[str, Path] = {}
    for file in files:
        tasks.setdefault(_task_of(file, kinds), file)
    if len(tasks) > 1:
        (one, first), (other, second), *_ = tasks.items()
        raise ConfigError(
            f"{first} looks like a file for {one}, {second} like one for {other}; check one task at a time, "
            "or pass --task"
        )
    return next(iter(tasks))


def _task_of(file: Path, kinds: Mapping[str, type]) -> str:
    from weft.data.files import COMPRESSED
    from weft.data.spans import holds_spans
    from weft.data.tables import header_of, is_table, kind_of
    from weft.tasks.task import Task

    ending = (
        kind_of(file) or next((one for one in reversed(file.suffixes) if one not in COMPRESSED), "").lower()
    )
    cells = header_of(file) if is_table(file) and not holds_spans(file) else ()  # the check tells
    ending = "/" if file.is_dir() else ending
    tasks = {name: kind for name, kind in kinds.items() if issubclass(kind, Task)}
    by_columns = (
        name for name, kind in tasks.items() if kind.columns and set(cells).issuperset(kind.columns)
    )
    by_content = sorted(  # a task that knows a list of files, before the one of all tables
        (name for name, kind in tasks.items() if _knows(kind, file)),
        key=lambda name: ".csv" in tasks[name].suffixes,
    )
    by_ending = (name for name, kind in tasks.items() if ending in kind.suffixes and _told(file, cells))
    others = (name for name, kind in tasks.items() if "*" in kind.suffixes)
    return next(chain(by_columns, by_content, by_ending, others))


def _told(file: Path, cells: Sequence[str]) -> bool:
    """Always true; a table in which no column has numbers or times is no series, and may be anything."""
    from weft.data.guess import columns_of

    with suppress(DataError):
        columns = columns_of(file) if len(cells) > 1 else []
        if columns and not any(one.numbers or one.times or one.clocks for one in columns):
            raise ConfigError(
                f"{file}: cannot tell what its columns ({', '.join(cells)[:60]}) are for; pass --task "
                "translate for sentence pairs, classify for texts and classes, or forecast for series"
            )
    return True


def _knows(kind: Any, file: Path) -> bool:
    """Whether a task knows the content of a file; not if it cannot be read, which the check reports."""
    with suppress(ConfigError, DataError):
        return bool(kind.knows(file))
    return False


@command.command("get", short_help="Fetch a public data set that included recipes need.")
@click.argument("name", required=False)
@file_option("--folder", metavar="FOLDER", show_default="data/NAME", help="Folder for its files.")
def get(name: str | None, folder: Path | None) -> None:
    """Fetch the public data set NAME, check it and convert it for the recipes.

    Without NAME, the sets are listed with size and licence. Nothing is overwritten: after an interruption,
    the same command fetches the files that are missing.

    \b
    Examples:
      weft data get
      weft data get trec
      weft train recipes/classify/trec-letters.yaml data.folder=data/trec
    """  # noqa: D301  click reads the \b
    from weft.commands.program import typed
    from weft.config.recipe import data_source, shipped
    from weft.data.sets import data_sets, fetch, find_set
    from weft.wording import columns, folded

    if name is None:
        for one in data_sets().values():
            licence = folded(f"{'':23}licence: {one.licence}", columns(), indent=2)
            click.echo(f"{one.name:12} {one.bytes / 1e6:5.1f} MB  {one.about}\n{licence}")
        return
    found = find_set(name)
    click.echo(f"{found.about}, from {found.source}; licence: {found.licence}", err=True)
    place = folder or Path("data") / name
    for file in found.files:
        new = fetch(file, place)
        click.echo(f"{place / file.to}" + ("" if new else " exists and is left unchanged"))
    needs = [path for path in shipped() if f"weft data get {name}," in data_source(path)]
    if needs:
        recipe = needs[0]
        click.echo(f"next: {typed('train', recipe.stem, f'data.folder={place}')}", err=True)
