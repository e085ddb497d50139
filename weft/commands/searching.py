"""The options of a search that `weft predict` and `weft evaluate` have in common."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

OPTIONS = (
    click.option(
        "--diverse", type=int, metavar="GROUPS", help="Groups of the beam that keep away from each other."
    ),
    click.option("--prefix", metavar="TEXT", help="What every answer begins with."),
    click.option(
        "--require",
        multiple=True,
        metavar="WORDS",
        help="What every answer holds; may be repeated.",
    ),
    click.option("--no-repeat-ngram", type=int, metavar="N", help="No N tokens in a row come twice."),
    click.option("--min-length", type=int, metavar="N", help="At least N tokens."),
    click.option("--coverage", type=float, help="Weight of the penalty for source words never looked at."),
    click.option(
        "--ensemble",
        multiple=True,
        metavar="RUN2",
        type=click.Path(path_type=Path),
        help="A run that joins in, with the same vocabulary (classes; series and horizon); may be repeated.",
    ),
)


def searching(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command these options, in this order."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command
