"""Options that several commands share, and a command whose help lists its options under headings."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, get_args, get_origin

import click

from weft.errors import ConfigError
from weft.machine import LAUNCHED
from weft.search.offered import Decoding, options

OTHER = "Other options"

OFFERED = options(Decoding)
"""The settings of a search that are options; those that are hidden work too, as they do with --set."""

SEARCH = (*(name for name, one in OFFERED.items() if one.search != "sample"), "ensemble", "changes")
"""Names of the options about how an answer is searched, for `headings`."""

SAMPLING = ("sample", *(name for name, one in OFFERED.items() if one.search == "sample"))
"""Names of the options about random answers, for `headings`."""


class RecipeFile(click.Path):
    """A recipe as a parameter: a file or a name; for a name of an earlier version, say what to type now."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """As for every path; a name that nothing has is reported where the recipe is read."""
        from weft.config.recipe import find_recipe

        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if LAUNCHED not in os.environ:  # the launcher has said so
            with suppress(ConfigError):
                if note := find_recipe(path).note:
                    click.echo(note, err=True)
        return path


def file_option(*names: str, **about: Any) -> Callable[..., Any]:
    """An option that names a file to read."""
    return click.option(*names, **{"metavar": "FILE", "type": click.Path(path_type=Path), **about})


def count_option(*names: str, least: int = 1, **about: Any) -> Callable[..., Any]:
    """An option that is a whole number."""
    return click.option(*names, **{"metavar": "N", "type": click.IntRange(least), **about})


device = click.option(
    "--device", metavar="NAME", default="auto", help="Device to compute on: cpu, cuda or auto."
)
plugin = click.option(
    "--plugin",
    "plugins",
    metavar="PACKAGE",
    multiple=True,
    help="Python package of yours with parts of the recipe.",
)


def plugins_in(arguments: Sequence[str]) -> list[str]:
    """The values of --plugin in arguments that are not parsed yet, or no longer at hand."""
    after = [value for option, value in pairwise(arguments) if option == "--plugin"]
    return after + [word.removeprefix("--plugin=") for word in arguments if word.startswith("--plugin=")]


def plugin_words(plugins: Sequence[str]) -> list[str]:
    """The words that name these packages, for another command."""
    return [word for one in plugins for word in ("--plugin", one)]


setting = click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="KEY=VALUE",
    help="Any setting of decoding; weft show RUN lists them.",
)
processes = count_option("--processes", help="Number of processes in which the model writes.")
ensemble = file_option(
    "--ensemble",
    multiple=True,
    metavar="RUN2",
    help="Another run to average with, or RUN/cycles (repeatable).",
)
sample = click.option("--sample", is_flag=True, help="Draw random answers instead of the best one.")


def _offered(name: str) -> Callable[..., Any]:
    """The option of a setting of the search."""
    one = OFFERED[name]
    kind = get_args(one.kind)[0] if get_origin(one.kind) in (Annotated, tuple, UnionType) else one.kind
    return click.option(
        f"--{name.replace('_', '-')}",
        type=click.Path(path_type=Path) if kind is Path else kind,
        is_flag=kind is bool,
        default=None,
        multiple=isinstance(one.default, tuple),
        metavar=one.metavar,
        hidden=one.option == "hidden",
        help=one.help,
    )


class GroupedCommand(click.Command):
    """A command whose help lists its options under headings."""

    def __init__(self, *args: Any, headings: Mapping[str, Sequence[str]], **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.headings = headings

    def invoke(self, ctx: click.Context) -> Any:
        """As for every command; an error about a setting of the search names the option that was typed."""
        try:
            return super().invoke(ctx)
        except ConfigError as error:
            settings, _, why = str(error).partition(": ")
            names = settings.split(" and ")
            if not all(name in OFFERED and given_one(ctx.params.get(name)) for name in names):
                raise
            typed = " and ".join(f"--{name.replace('_', '-')}" for name in names)
            raise ConfigError(f"{typed}: {why}") from error

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options under their headings."""
        params = {param.name: param for param in self.get_params(ctx) if isinstance(param, click.Option)}
        grouped = {name for names in self.headings.values() for name in names}
        rest = [name for name in params if name not in grouped]
        for heading, names in [*self.headings.items(), (OTHER, rest)]:
            records = [params[name].get_help_record(ctx) for name in names if name in params]
            if shown := [record for record in records if record is not None]:
                with formatter.section(heading):
                    formatter.write_dl(shown)


class ListingCommand(click.Command):
    """A command whose help ends with a list, which `listed` makes only when the help is shown."""

    def __init__(
        self, *args: Any, heading: str, listed: Callable[[], Sequence[tuple[str, str]]], **settings: Any
    ) -> None:
        super().__init__(*args, **settings)
        self.heading, self.listed = heading, listed

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list under its heading."""
        with formatter.section(self.heading):
            formatter.write_dl(self.listed())


def searching(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a search; `nbest` is only of those who want several answers."""
    own = [_offered(name) for name, one in OFFERED.items() if one.search != "sample" and name != "nbest"]
    return _with([*own, ensemble, setting], command)


def sampling(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of random answers, those named by `SAMPLING`."""
    return _with([sample, *map(_offered, SAMPLING[1:])], command)


nbest = _offered("nbest")


def given_one(value: Any) -> bool:
    """Whether the user gave an option: click stores None, False or () for one that was not given."""
    return value is not None and value is not False and value != ()


def as_words(command: click.Command, given: Mapping[str, Any]) -> list[str]:
    """Options as one types them, for another call of a command; those that were not given are left out."""
    words: list[str] = []
    for option in command.params:
        value: Any = given.get(option.name or "")
        if not isinstance(option, click.Option) or not given_one(value):
            continue
        name = option.opts[0]
        values: Any = value if option.multiple else [value]
        words += [name] if option.is_flag else [word for one in values for word in (name, str(one))]
    return words


def _with(options: Sequence[Callable[..., Any]], command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(options):
        command = option(command)
    return command
