"""weft init: look at a user's files and write a commented recipe for them; one file a task."""

import importlib
import pkgutil

import click

from weft.commands.lazy import Lazy


class Inits(Lazy):
    """The files of this folder are the tasks that it can write recipes for."""

    def list_commands(self, context: click.Context) -> list[str]:
        """Their names."""
        return sorted(entry.name for entry in pkgutil.iter_modules(__path__))

    def load(self, name: str) -> click.Command:
        """The command of one task."""
        found: click.Command = importlib.import_module(f"{__name__}.{name}").command
        return found


@click.group(cls=Inits, short_help="Write a commented recipe for your files.", no_args_is_help=True)
def command() -> None:
    """Look at your files and write a commented recipe for them."""
