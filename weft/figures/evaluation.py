"""The contract of what draws an evaluation. Read next: ../tasks/translate/evaluation_figure.py."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from matplotlib.figure import Figure


class ReportPicture(ABC):
    """Draws the evaluation of one task.

    Attributes:
        shows: what is seen, for the line that says where the picture is.
    """

    shows: ClassVar[str]

    @abstractmethod
    def draw(self, name: str, evaluation: Any) -> Figure:
        """The picture of what `Task.evaluate` gave for the run of this name."""
