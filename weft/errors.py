"""What Weft raises when a user can mend the matter: where, what came, what was needed, what to do.

Every one is a ValueError, and the command line turns it into one line and exit code 2.
Read next: tree.py.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from weft.visible import visible

_LONG = re.compile(r"\S{400,}")  # no word, and no name that a file system takes


class WeftError(ValueError):
    """A mistake that the user can mend; its text is one sentence that says how.

    What a damaged file put into it neither breaks the line nor steers the terminal nor fills the screen: line
    ends and control characters are shown as escapes, and of a word of 400 letters and more the first 100 are.
    """

    def __init__(self, text: str) -> None:
        whole = visible(text.replace("\n", "\\n"))
        super().__init__(_LONG.sub(lambda word: word[0][:100] + "…", whole))


class ConfigError(WeftError):
    """A recipe, an option or an argument does not fit."""


class ShapeError(WeftError):
    """Tensors whose sizes do not fit together."""


class DataError(WeftError):
    """A data file is missing, damaged or not what it should be; named as file:line."""


class CheckpointError(WeftError):
    """A run directory or a checkpoint is missing, damaged or from another version."""


@contextmanager
def within(section: str) -> Iterator[None]:
    """What does not fit together inside the block is told as a matter of a recipe's section.

    Args:
        section: its name, such as "model".

    Raises:
        ConfigError: for a ConfigError or ShapeError of the block, its sentence after the section's name.

    Example:
        >>> with within("model"):
        ...     raise ShapeError("3 heads do not divide the width 8; take a divisor of 8")
        Traceback (most recent call last):
        weft.errors.ConfigError: model: 3 heads do not divide the width 8; take a divisor of 8
    """
    try:
        yield
    except (ConfigError, ShapeError) as error:
        raise ConfigError(f"{section}: {str(error).removeprefix(f'{section}.')}") from error
