"""Options that several commands share, and a command whose help lists its options under headings."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import click

from weft.machine import LAUNCHED

OTHER = "Other options"

SEARCH = ("beam", "length_penalty", "coverage", "diverse", "ensemble", "changes")
"""Names of the options about how an answer is searched, for `headings`."""

CONSTRAINTS = ("prefix", "require", "glossary", "no_repeat_ngram", "min_length")
"""Names of the options about what an answer must contain, for `headings`."""

SAMPLING = ("sample", "temperature", "top_k", "top_p", "seed")
"""Names of the options about random answers, for `headings`."""


class RecipeFile(click.Path):
    """A recipe as a parameter: a file or a name; for a name of an earlier version, say what to type now."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """As for every path; a name that nothing has is reported where the recipe is read."""
        from weft.config.shipped import find_recipe
        from weft.errors import ConfigError

        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if LAUNCHED not in os.environ:  # the launcher has said so
            with suppress(ConfigError):
                if note := find_recipe(path).note:
                    click.echo(note, err=True)
        return path


device = click.option(
    "--device", metavar="NAME", default="auto", help="Device to compute on: cpu, cuda or auto."
)
plugin = click.option(
    "--plugin",
    "plugins",
    metavar="PACKAGE",
    multiple=True,
    help="Python package of your own whose parts the recipe uses (repeatable).",
)


def plugins_in(arguments: Sequence[str]) -> list[str]:
    """The values of --plugin in arguments that are not parsed yet, or no longer at hand."""
    after = [value for option, value in pairwise(arguments) if option == "--plugin"]
    return after + [word.removeprefix("--plugin=") for word in arguments if word.startswith("--plugin=")]


setting = click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="KEY=VALUE",
    help="Setting of the recipe's section decoding, such as batch_rows=16 (repeatable).",
)
processes = click.option(
    "--processes", metavar="N", type=click.IntRange(1), help="Number of processes in which the model writes."
)
_SEARCHING = (
    click.option(
        "--beam",
        type=int,
        metavar="N",
        show_default="recipe",
        help="Beam width: hypotheses kept at each step; 1 is greedy search.",
    ),
    click.option(
        "--length-penalty",
        type=float,
        metavar="X",
        show_default="recipe",
        help="Exponent of the length that scores are divided by; 0 favours short answers.",
    ),
    click.option(
        "--coverage",
        type=float,
        metavar="X",
        show_default="recipe",
        help="Weight of the penalty for source words that get little attention; 0 turns it off.",
    ),
    click.option(
        "--diverse",
        type=int,
        metavar="GROUPS",
        show_default="recipe",
        help="Groups of diverse beam search; more groups give more varied answers. Must divide the beam.",
    ),
    click.option(
        "--ensemble",
        multiple=True,
        metavar="RUN2",
        type=click.Path(path_type=Path),
        help="Another run to average with (repeatable), or RUN/cycles of a snapshot ensemble. It needs the "
        "same vocabulary, classes, or series and horizon.",
    ),
    setting,
    click.option("--prefix", metavar="TEXT", help="Text that every answer starts with."),
    click.option(
        "--require", multiple=True, metavar="WORDS", help="Words that every answer contains (repeatable)."
    ),
    click.option(
        "--glossary",
        metavar="FILE",
        type=click.Path(path_type=Path),
        show_default="recipe",
        help="Table TERM TAB TRANSLATION: an answer contains the translations of the terms in its source "
        "(with --set terms=annotate, they are only suggested to the model).",
    ),
    click.option(
        "--no-repeat-ngram",
        type=int,
        metavar="N",
        show_default="recipe",
        help="Forbid repeating any N consecutive tokens; 0 allows repeats.",
    ),
    click.option(
        "--min-length",
        type=int,
        metavar="N",
        show_default="recipe",
        help="Minimum number of tokens per answer.",
    ),
)
_SAMPLING = (
    click.option("--sample", is_flag=True, help="Draw random answers instead of searching for the best one."),
    click.option(
        "--temperature",
        type=float,
        metavar="X",
        show_default="recipe",
        help="Sampling temperature, above 0; lower is more predictable.",
    ),
    click.option(
        "--top-k",
        type=int,
        metavar="K",
        show_default="recipe",
        help="Sample from the K most probable tokens; 0 allows all.",
    ),
    click.option(
        "--top-p",
        type=float,
        metavar="P",
        show_default="recipe",
        help="Sample from the most probable tokens that together have probability P; 1 allows all.",
    ),
    click.option("--seed", type=int, metavar="N", show_default="recipe", help="Random seed of the sampling."),
)


class GroupedCommand(click.Command):
    """A command whose help lists its options under headings.

    Args:
        headings: names of parameters under each heading, in the order of the help; the rest follows under
            `OTHER`.
    """

    def __init__(self, *args: Any, headings: Mapping[str, Sequence[str]], **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.headings = headings

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options under their headings."""
        params = {param.name: param for param in self.get_params(ctx) if isinstance(param, click.Option)}
        grouped = {name for names in self.headings.values() for name in names}
        rest = [name for name in params if name not in grouped]
        for heading, names in [*self.headings.items(), (OTHER, rest)]:
            records = [params[name].get_help_record(ctx) for name in names]
            with formatter.section(heading):
                formatter.write_dl([record for record in records if record is not None])


class ListingCommand(click.Command):
    """A command whose help ends with a list.

    Args:
        heading: above the list.
        listed: makes its rows of two columns, only when the help is shown.
    """

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
    """Add the options of a search, those named by `SEARCH` and `CONSTRAINTS`."""
    return _with(_SEARCHING, command)


def sampling(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of random answers, those named by `SAMPLING`."""
    return _with(_SAMPLING, command)


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
