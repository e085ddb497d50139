"""A task that is its own Ready and Training, for those that are not yet split. Read next: ready.py."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, NamedTuple

from torch import nn

from weft.tasks.each import Failure
from weft.tasks.ready import Ready, Training
from weft.tasks.task import Task


class Answer(NamedTuple):
    """What `weft predict` writes for one input, in the order of the inputs."""

    text: str  # written as it is, with a line end after it
    look: Any = None  # what answer_figure.py draws from; None where nothing can be drawn
    wrong: str = ""  # why an input has no answer, its place first (a line each); the text has empty lines


_Ready: Any = Ready  # so that types of what is not yet split are not compared


class Whole(Task, _Ready, Training):
    """See Ready."""

    linewise: ClassVar[bool] = False

    def file(self, answers: Sequence[str], output: Path) -> bytes:
        """What `weft predict --output` writes of all answers."""
        return "".join(f"{answer}\n" for answer in answers).encode("utf-8", "replace")

    @property
    def task(self) -> Task:
        """This one."""
        return self

    @property
    def training(self) -> Training:
        """This one."""
        return self

    @abstractmethod
    def answers(
        self, model: nn.Module, source: Path | BinaryIO, options: Mapping[str, Any]
    ) -> Iterator[Answer]:
        """What `weft predict` writes."""


def unanswered(where: str, why: Failure, lines: int = 1) -> Answer:
    """As many empty lines as an answer has, and why there is none.

    Args:
        where: the file and the line; empty where the reason names its file.
        why: what was wrong.
        lines: that are written in its place.
    """
    return Answer("\n" * (lines - 1), wrong=f"{where}: {why}" if where else str(why))
