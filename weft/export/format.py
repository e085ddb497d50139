"""The contract of an export format. Read next: export_run.py, which calls it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from weft.run import LoadedRun


class Format(ABC):
    """A program's form of a model; `write` is called with an empty directory.

    Attributes:
        about: what it is for, one line of `weft export --help`.
        packages: modules that must be importable, for the message that says what to install.
        ending: of the file that is written unless the user names an output; "" for a directory.
    """

    about: ClassVar[str]
    packages: ClassVar[Sequence[str]] = ()
    ending: ClassVar[str] = ""

    @abstractmethod
    def check(self, opened: LoadedRun, int8: bool | None) -> None:
        """Check, before anything is written, that the format can express the run.

        The arguments are those of `write`.

        Raises:
            ConfigError: one sentence that names the part that it cannot express, and what to do.
        """

    @abstractmethod
    def write(self, opened: LoadedRun, folder: Path, int8: bool | None) -> Sequence[str]:
        """Write the files and compare the result with Weft's own answers.

        Args:
            opened: a checked run on the CPU, in evaluation mode.
            folder: an empty directory; it becomes the output directory if nothing is raised.
            int8: whether to store the weights as 8-bit integers; None for the format's usual way.

        Returns:
            The lines of the report: sizes, and the largest difference from Weft.

        Raises:
            ExportError: the result differs from Weft's answers.
        """

    def result(self, folder: Path) -> Path:
        """What becomes the output: the directory itself, or the one file in it."""
        return folder

    def hints(self, output: Path) -> Sequence[str]:
        """The last lines of the report: what to do with the output."""
        return [f"next: {output / 'README.md'} shows how to use it"]
