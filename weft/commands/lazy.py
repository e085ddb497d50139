"""A group of commands that are imported when they are called, with the nearest name for a wrong one."""

import difflib
from abc import abstractmethod

import click


class Lazy(click.Group):
    """What cli.py and init have in common."""

    @abstractmethod
    def list_commands(self, context: click.Context) -> list[str]:
        """The names there are."""

    @abstractmethod
    def load(self, name: str) -> click.Command:
        """The command of this name, which there is."""

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """The command of that name, imported now."""
        return self.load(name) if name in self.list_commands(context) else None

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click's, with the nearest name for one that does not exist."""
        name, names = arguments[0], self.list_commands(context)
        if name not in names and not name.startswith("-"):
            near = difflib.get_close_matches(name, names, 1)
            hint = f"did you mean {near[0]!r}?" if near else "there is " + ", ".join(names)
            context.fail(f"unknown command {name!r}; {hint}")
        return super().resolve_command(context, arguments)
