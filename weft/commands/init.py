"""weft init: read a user's files and write a commented recipe for them; one subcommand per task.

Each task declares its options and its recipe in weft/tasks/<task>/init.py; this file turns that declaration
into a click command.
"""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

import weft.tasks
from weft import rooms
from weft.commands.options import Lazy, once, plugins_in
from weft.commands.outputs import OutputPath, check_outputs
from weft.commands.program import typed
from weft.errors import ConfigError
from weft.tasks.init import Init, Option

if TYPE_CHECKING:
    from weft.train.reporting import Reporter


class Inits(Lazy):
    """One command for each task whose folder has an init.py."""

    def list_commands(self, context: click.Context) -> list[str]:
        """The names of the tasks, without importing them."""
        return rooms.folders(weft.tasks, Init)

    def load(self, name: str) -> click.Command:
        return command_of(rooms.find(weft.tasks, Init, name)())

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As in every group, but a name with dots is a task of a package from --plugin."""
        name, *others = arguments
        if "." not in name:
            return super().resolve_command(context, arguments)
        return name, command_of(_plugged(name, plugins_in(others))), others


def _plugged(name: str, plugins: Sequence[str]) -> Init:
    from weft.config.plugins import named_part
    from weft.tasks.task import Task

    kind: Any = named_part("weft init", name, Task, plugins)
    init: Init | None = kind.init(name)
    if init is None:
        raise ConfigError(f"weft init {name}: expected a task with a method init, got one without; write one")
    return init


def command_of(init: Init) -> click.Command:
    """Build the click command that a task declares."""
    output = click.Option(
        ["--output", "-o"],
        metavar="FILE",
        type=OutputPath(),
        show_default=init.output or f"{init.task}.yaml",
        help="Recipe file to write.",
    )
    files = click.Argument(["files"], nargs=-1, type=click.Path(path_type=Path))
    params = [files, *map(_parameter, init.options), output]
    package = "".join(f" {word}" for word in init.plugin())
    if package:
        params.append(
            click.Option(
                ["--plugin"],
                metavar="PACKAGE",
                multiple=True,
                expose_value=False,
                help="Package of the task.",
            )
        )
    examples = "\n".join(f"  weft init {init.task} {example}{package}" for example in init.examples)
    named = ", ".join(f"--{name}" for name in init.files)
    reads = "Writes a commented recipe for weft train."
    if named:
        stand = f"FILES may stand for {named}, in this order."
        if init.several:
            stand += (
                " If no name says train, all are training data but those that have valid or test in the name."
            )
        reads = f"Reads your files and w{reads[1:]} {stand}"
    parts = (init.about, reads, init.details, f"\b\nExamples:\n{examples}")
    text = "\n\n".join(part for part in parts if part)

    def run(output: Path | None, **given: Any) -> None:
        from weft.commands import outputs
        from weft.tune.recipes import new_recipe

        given = init.with_files(given, given.pop("files"))
        recipe = output or Path(init.file_name(given))
        if recipe.exists():
            raise ConfigError(f"{recipe}: already exists; remove it or choose another name with --output")
        check_outputs(recipe)
        with TemporaryDirectory() as folder:
            written = new_recipe(init, given, Path(folder), say=click.echo, screen=_screen)
        outputs.write(recipe, written.recipe)
        click.echo(f"{written.recipe}\nrecipe: {recipe}\nnext:")
        for step in (*written.steps, ["train", str(recipe), *init.plugin()]):
            click.echo(f"  {typed(*step)}")

    earlier = {f"--{one.old}": f"--{one.name}" for one in init.options if one.old}
    return once(
        click.Command(init.task, callback=run, params=params, help=text, short_help=init.about), earlier
    )


def _screen() -> "Reporter":
    from weft.train.trackers import usual_screen  # loads torch

    return usual_screen()


def _parameter(option: Option) -> click.Parameter:
    kind: Any = click.Path(path_type=Path) if option.type is Path else option.type
    name = option.name.replace("-", "_")
    given = {} if option.default is None else {"default": option.default}
    return click.Option(
        [f"--{option.name}", name],
        type=click.Choice(option.choices) if option.choices else kind,
        is_flag=option.type is bool,
        required=option.required,
        multiple=option.multiple,
        help=option.help,
        **given,
    )


@click.group(cls=Inits, no_args_is_help=True)
def command() -> None:
    """Write a commented recipe for your own files.

    Choose the task by what you want to train. For its options: weft init translate --help

    \b
    Examples:
      weft init translate english.txt german.txt
      weft init classify reviews.csv
      weft init tag train.conllu valid.conllu
    """  # noqa: D301  click reads the \b
