"""The contract of `weft init <task>`: the options it has, and the recipe it writes from them.

A task that has it keeps it in the file init.py of its folder, one class; weft/commands/init.py finds it there
and builds the command. Heavy imports belong into `write`: the class is also loaded for a list of commands.
Read next: tag/init.py, a short one.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from weft import rooms


class Option(NamedTuple):
    """An option of the command line, as plain data."""

    name: str  # as it is typed, without the dashes: hold-out; `given` has it as hold_out
    help: str
    type: type = str  # str, int or Path; bool is a flag
    required: bool = False
    multiple: bool = False  # repeatable; the value is a tuple
    default: Any = None
    choices: Sequence[str] = ()
    positional: bool = False  # any number of words without a name; the value is a tuple


TRAIN = Option("train", "Training file.", Path, required=True)
VALID = Option("valid", "Validation file. Default: the one next to the training file, if any.", Path)
TEST = Option("test", "Test file. Default: the one next to the training file, if any.", Path)


class Written(NamedTuple):
    """What a user's files became."""

    recipe: str
    steps: Sequence[Sequence[str]] = ()  # commands of weft to type before `weft train`, as words


class Init(ABC):
    """What `weft init` asks for one task, and what it makes of the answers.

    Attributes:
        about: one phrase, for the list of commands: "A tagger for words in sentences."
        details: further sentences of the command's help.
        examples: arguments that show how it is used, each without `weft init <task>`.
        options: those that the command has, besides --output.
        output: name of the recipe where the user gives none; <task>.yaml if empty.
    """

    about: ClassVar[str]
    details: ClassVar[str] = ""
    examples: ClassVar[Sequence[str]] = ()
    options: ClassVar[Sequence[Option]]
    output: ClassVar[str] = ""

    @property
    def folder(self) -> str:
        """The name of the task's folder."""
        return type(self).__module__.split(".")[-2]

    @property
    def task(self) -> str:
        """The task, as recipes call it: the name of its folder; in a plugin, the path of its class."""
        if type(self).__module__.startswith("weft.tasks."):
            return self.folder
        from weft.tasks.task import Task

        kind = rooms.beside(type(self), "task", Task)
        return f"{kind.__module__}.{kind.__qualname__}" if kind else self.folder

    def file_name(self, given: Mapping[str, Any]) -> str:
        """The name of the recipe where the user gives none.

        Raises:
            ConfigError: the options do not fit together.
        """
        return self.output or f"{self.folder}.yaml"

    @abstractmethod
    def write(self, given: Mapping[str, Any], say: Callable[[str], None]) -> Written:
        """Read the user's files and write a commented recipe for them.

        Args:
            given: value of every option by its name; None for one that was not given.
            say: tells the user what was guessed.

        Raises:
            ConfigError: the options do not fit together.
            DataError: files are missing, damaged or too small.
        """

    def check(self, *words: object) -> tuple[str, ...]:
        """The next step: check these files, with these options, as files of this task."""
        return ("data", "check", *map(str, words), "--task", self.task, *self.plugin())

    def plugin(self) -> tuple[str, ...]:
        """What names the package of a plugin's task on the command line; nothing for a task of Weft."""
        package = type(self).__module__.partition(".")[0]
        return () if package == "weft" else ("--plugin", package)
