"""The contract of what draws answers: one file of this folder for each task that has a picture.

Read next: ../tasks/translate/answer_figure.py.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from weft.errors import DataError


class Look(ABC):
    """Draws what an answer's `look` holds, for the first `limit` answers.

    Args:
        predictor: the trained model at work, as the task gives it.
        alignments: a file to write alignments to; None for none.
        plot: directory of the pictures, numbered as the answers are; None for none.
        limit: pictures at most.

    Attributes:
        drawn: pictures made.

    Raises:
        ConfigError: on entering, something is asked for that this model cannot show.
        DataError: a place cannot be written.
    """

    def __init__(
        self, predictor: Any, alignments: Path | None = None, plot: Path | None = None, limit: int = 20
    ) -> None:
        self.predictor = predictor
        self.alignments = alignments
        self.plot = plot
        self.limit = limit
        self.drawn = 0

    def __enter__(self) -> "Look":
        if self.plot is not None:
            with refusing(self.plot):
                self.plot.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close what is open; nothing is, here."""
        return

    @abstractmethod
    def see(self, look: Any) -> None:
        """Draw one answer, as far as anything was asked for."""


@contextmanager
def refusing(path: Path) -> Iterator[None]:
    """Trouble with a place becomes one sentence that names it."""
    try:
        yield
    except OSError as error:
        raise DataError(
            f"cannot be written ({error.strerror or os.strerror(error.errno or 0)}); "
            "free some space or choose another place",
            path=path,
        ) from error
