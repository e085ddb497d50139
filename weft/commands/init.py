"""weft init: read a user's files and write a commented recipe for them; one subcommand per task.

Each task declares its options and its recipe in weft/tasks/<task>/init.py; this file turns that declaration
into a click command.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

import weft.tasks
from weft import rooms
from weft.commands.lazy import Lazy, once
from weft.commands.options import plugins_in
from weft.commands.output_check import OutputPath
from weft.commands.program import typed
from weft.config.shipped import shipped
from weft.errors import ConfigError
from weft.tasks.init import FILES, Init, Option


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
            tasks = {one.parent.name for one in shipped()}
            if name in tasks.difference(self.list_commands(context)):
                context.fail(f"{name}: this task starts from a recipe: {typed('recipes', name)} lists them")
            return super().resolve_command(context, arguments)
        return name, once(command_of(_plugged(name, plugins_in(others)))), others


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
    params = [*map(_parameter, init.options), output]
    own = any(one.positional for one in init.options)
    if not own:
        params.insert(0, click.Argument(["files"], nargs=-1, type=click.Path(path_type=Path)))
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
    named = ", ".join(f"--{one.name}" for one in init.options if one.name in FILES)
    reads = "Reads your files and writes a commented recipe for weft train."
    if not own:
        reads += f" FILES may stand for {named}, in this order."
    parts = (init.about, reads, init.details, f"\b\nExamples:\n{examples}")
    text = "\n\n".join(part for part in parts if part)

    def run(output: Path | None, **given: Any) -> None:
        from weft.commands import outputs

        given = given if own else init.with_files(given, given.pop("files"))
        recipe = outputs.fresh(output or Path(init.file_name(given)))
        written = init.write(given, click.echo)
        outputs.begin(recipe, written.recipe, *written.steps, plugin=init.plugin())

    return click.Command(init.task, callback=run, params=params, help=text, short_help=init.about)


def _parameter(option: Option) -> click.Parameter:
    kind: Any = click.Path(path_type=Path) if option.type is Path else option.type
    name = option.name.replace("-", "_")
    if option.positional:
        return click.Argument([name], nargs=-1, type=kind)
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
      weft init translate english.txt german.txt --hold-out 500
      weft init classify reviews.csv
      weft init tag train.conllu valid.conllu
    """  # noqa: D301  click reads the \b
