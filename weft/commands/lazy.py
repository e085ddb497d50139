"""A group that imports a command only when it is called, and suggests a name for an unknown one."""

import difflib
from abc import abstractmethod

import click


class Lazy(click.Group):
    """Base of the groups `weft` and `weft init`."""

    @abstractmethod
    def list_commands(self, context: click.Context) -> list[str]:
        """The names of all commands."""

    @abstractmethod
    def load(self, name: str) -> click.Command:
        """Import a command by a name from `list_commands`."""

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """The command of that name, or None."""
        return self.load(name) if name in self.list_commands(context) else None

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As in click, but an unknown name gets a suggestion."""
        name, names = arguments[0], self.list_commands(context)
        if name not in names and not name.startswith("-"):
            near = difflib.get_close_matches(name, names, 1)
            hint = f"did you mean {near[0]!r}?" if near else "choose one of " + ", ".join(names)
            context.fail(f"unknown command {name!r}; {hint}")
        return super().resolve_command(context, arguments)
