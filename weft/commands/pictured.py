"""The options of `weft init caption` and `weft init draw`: both read pictures with captions."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

FILE = click.Path(path_type=Path)


def pictured(task: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command these options, in this order.

    Args:
        task: what the recipe is called where no name is given.
    """
    options = (
        click.option(
            "--train", type=FILE, required=True, help=".tsv (IMAGE TAB CAPTION), .jsonl, or COCO's .json."
        ),
        click.option("--images", type=FILE, help="Folder of the pictures; beside the captions."),
        click.option("--valid", type=FILE, help="Validation captions; found if so named."),
        click.option("--test", type=FILE, help="Test captions, likewise."),
        click.option("--output", "-o", type=FILE, help=f"Recipe to write; {task}.yaml by default."),
    )

    def give(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return give
