"""A group that imports a command only when it is called, and suggests a name for an unknown one."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import click

from weft.wording import close_name

EARLIER = {
    "backtranslate": {"--output": "--folder"},
    "compare": {"--output": "--folder"},
    "folds": {"--output": "--folder"},
    "predict": {"--plot": "--pictures", "--plot-limit": "--max-pictures"},
}
"""Options of commands by their earlier names, which are still read."""


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
        return once(self.load(name), EARLIER.get(name, {})) if name in self.list_commands(context) else None

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As in click, but an unknown name gets a suggestion."""
        name, names = arguments[0], self.list_commands(context)
        if name not in names and not name.startswith("-"):
            near = close_name(name, names)
            hint = f"did you mean {near!r}?" if near else "choose one of " + ", ".join(names)
            context.fail(f"unknown command {name!r}; {hint}")
        return super().resolve_command(context, arguments)


def once(command: click.Command, earlier: Mapping[str, str]) -> click.Command:
    """The command, which refuses an option of one value that is given twice; click takes the last one.

    Args:
        command: of click; it is changed.
        earlier: its options of today by names that they had, which are read as well.
    """
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        once(inner, {})
    if "make_parser" not in vars(command):
        vars(command)["make_parser"] = _checking(command.make_parser, earlier)
    return command


def _wanted(context: click.Context, mistake: click.NoSuchOption | click.BadOptionUsage) -> str:
    """What to write instead of an option that the command has not, or that lacks its value."""
    known = {name: one for one in context.command.params for name in one.opts}
    if option := known.get(mistake.option_name):
        return f", {option.make_metavar(context)}"
    changes = mistake.option_name == "--set" and "overrides" in known
    return "; write SECTION.KEY=VALUE without it" if changes else ""


def _checking(
    make: Callable[[click.Context], Any], earlier: Mapping[str, str]
) -> Callable[[click.Context], Any]:
    def today(word: str) -> str:
        name, sign, value = word.partition("=")
        if name not in earlier:
            return word
        click.echo(f"{name} is now {earlier[name]}", err=True)
        return earlier[name] + sign + value

    def make_parser(context: click.Context) -> Any:
        parser = make(context)
        parse = parser.parse_args

        def parse_args(args: list[str]) -> Any:
            try:
                found = parse([today(word) for word in args])
            except (click.NoSuchOption, click.BadOptionUsage) as mistake:
                name = mistake.option_name
                if begun := [new for old, new in earlier.items() if old.startswith(name)]:
                    context.fail(f"No such option {name!r}. Did you mean {begun[0]!r}?")
                context.fail(f"{mistake.format_message().rstrip('.')}{_wanted(context, mistake)}")
            given = found[2]  # every parameter, as often as it was given
            for one in given:
                single = isinstance(one, click.Option) and not (one.multiple or one.count or one.is_flag)
                if single and (times := given.count(one)) > 1:
                    context.fail(f"{one.opts[0]}: expected one value, got {times}; leave the others out")
            return found

        parser.parse_args = parse_args
        return parser

    return make_parser
