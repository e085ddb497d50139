"""weft init: look at a user's files and write a commented recipe for them; one command for each task.

What a task asks and writes stands in weft/tasks/<task>/init.py, as plain data; here it becomes a command.
"""

from pathlib import Path
from typing import Any

import click

import weft.tasks
from weft import rooms
from weft.commands.lazy import Lazy
from weft.tasks.init import Init, Option


class Inits(Lazy):
    """A command for each task whose folder has a file init.py."""

    def list_commands(self, context: click.Context) -> list[str]:
        """Their names; no task is imported."""
        return rooms.folders(weft.tasks, Init)

    def load(self, name: str) -> click.Command:
        """The command of one task."""
        return command_of(rooms.find(weft.tasks, Init, name)())


def command_of(init: Init) -> click.Command:
    """The click command that a task's declaration describes."""
    about = f"Recipe to write. Default: {init.output or f'{init.task}.yaml'}."
    output = click.Option(["--output", "-o"], type=click.Path(path_type=Path), help=about)
    params = [*map(_parameter, init.options), output]
    typed = "\n".join(f"weft init {init.task} {example}" for example in init.examples)
    text = "\n\n".join(part for part in (init.about, init.details, f"\b\n{typed}") if part)

    def run(output: Path | None, **given: Any) -> None:
        from weft.commands import outputs

        recipe = outputs.fresh(output or Path(init.file_name(given)))
        written = init.write(given, click.echo)
        outputs.begin(recipe, written.recipe, *written.steps)

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
