"""weft init: look at a user's files and write a commented recipe for them; one command for each task.

What a task asks and writes is in the file init.py of its folder, as plain data; here it becomes a command.
"""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import click

import weft.tasks
from weft import rooms
from weft.commands.lazy import Lazy
from weft.errors import ConfigError
from weft.tasks.init import Init, Option


class Inits(Lazy):
    """A command for each task whose folder has a file init.py; a plugin's task is named as in a recipe."""

    def list_commands(self, context: click.Context) -> list[str]:
        """Their names; no task is imported."""
        return rooms.folders(weft.tasks, Init)

    def load(self, name: str) -> click.Command:
        """The command of one task."""
        return command_of(rooms.find(weft.tasks, Init, name)())

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As of every group; a name with dots is a task of a package that --plugin allows."""
        name, *others = arguments
        if "." not in name:
            return super().resolve_command(context, arguments)
        return name, command_of(_plugged(name, _plugins(others))), others


def _plugins(arguments: Sequence[str]) -> list[str]:
    """What follows --plugin among arguments that are not yet parsed."""
    after = [value for option, value in pairwise(arguments) if option == "--plugin"]
    return after + [word.removeprefix("--plugin=") for word in arguments if word.startswith("--plugin=")]


def _plugged(name: str, plugins: Sequence[str]) -> Init:
    from weft.config.plugins import asked
    from weft.tasks.task import Task

    found = rooms.beside(asked("weft init", name, Task, plugins), "init", Init)
    if found is None:
        raise ConfigError(f"weft init {name}: expected a file init.py beside its task, got none; write one")
    init: Init = found()
    return init


def command_of(init: Init) -> click.Command:
    """The click command that a task's declaration describes."""
    about = f"Recipe to write. Default: {init.output or f'{init.task}.yaml'}."
    output = click.Option(["--output", "-o"], type=click.Path(path_type=Path), help=about)
    params = [*map(_parameter, init.options), output]
    more = "".join(f" {word}" for word in init.plugin())
    if more:
        params.append(
            click.Option(["--plugin"], multiple=True, expose_value=False, help="The task's package.")
        )
    typed = "\n".join(f"weft init {init.task} {example}{more}" for example in init.examples)
    text = "\n\n".join(part for part in (init.about, init.details, f"\b\n{typed}") if part)

    def run(output: Path | None, **given: Any) -> None:
        from weft.commands import outputs

        recipe = outputs.fresh(output or Path(init.file_name(given)))
        written = init.write(given, click.echo)
        outputs.begin(recipe, written.recipe, *written.steps, plugin=init.plugin())

    return click.Command(init.task, callback=run, params=params, help=text, short_help=init.about)


def _parameter(option: Option) -> click.Parameter:
    kind: Any = click.Path(path_type=Path) if option.type is Path else option.type
    name = option.name.replace("-", "_")
    if option.positional:
        return click.Argument([name], nargs=-1, type=kind)
    given = {} if option.default is None else {"default": option.default, "show_default": True}
    return click.Option(
        [f"--{option.name}", name],
        type=click.Choice(option.choices) if option.choices else kind,
        is_flag=option.type is bool,
        required=option.required,
        multiple=option.multiple,
        help=option.help,
        **given,
    )


@click.group(cls=Inits, short_help="Write a commented recipe for your files.", no_args_is_help=True)
def command() -> None:
    """Look at your files and write a commented recipe for them."""
