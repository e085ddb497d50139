"""The contract of `weft init <task>`: its options, and the recipe that it writes from them.

A task that supports it has one such class in the file init.py of its folder; weft/commands/init.py finds it
and builds the command. Heavy imports belong in `write`, as listing the commands also loads the class.
Read next: tag/init.py, a short one.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from weft import rooms


class Option(NamedTuple):
    """An option of the command line, as plain data."""

    name: str  # as typed, without the dashes: hold-out; its key in `given` is hold_out
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


class NewRecipe(NamedTuple):
    """The result of `weft init`."""

    recipe: str
    steps: Sequence[Sequence[str]] = ()  # weft commands to run before `weft train`, as words


class Init(ABC):
    """The options of `weft init` for one task, and the recipe made from them.

    Attributes:
        about: a phrase for the list of commands: "A tagger for words in sentences."
        details: further sentences for the command's help.
        examples: example arguments, without `weft init <task>`.
        options: options of the command, besides --output.
        output: default name of the recipe; if empty, <task>.yaml.
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
        """The task as recipes name it: the name of its folder or, in a plugin, the path of its class."""
        if type(self).__module__.startswith("weft.tasks."):
            return self.folder
        from weft.tasks.task import Task

        kind = rooms.beside(type(self), "task", Task)
        return f"{kind.__module__}.{kind.__qualname__}" if kind else self.folder

    def file_name(self, given: Mapping[str, Any]) -> str:
        """The default name of the recipe.

        Raises:
            ConfigError: the options do not fit together.
        """
        return self.output or f"{self.folder}.yaml"

    @abstractmethod
    def write(self, given: Mapping[str, Any], say: Callable[[str], None]) -> NewRecipe:
        """Read the user's files and write a commented recipe for them.

        Args:
            given: value of each option by name; None for an option that was not given.
            say: prints what was guessed.

        Raises:
            ConfigError: the options do not fit together.
            DataError: files are missing, damaged or too small.
        """

    def check(self, *words: object) -> tuple[str, ...]:
        """The command that checks these files, with these options, as files of this task."""
        return ("data", "check", *map(str, words), "--task", self.task, *self.plugin())

    def plugin(self) -> tuple[str, ...]:
        """The arguments that name a plugin's package; empty for a task of Weft."""
        package = type(self).__module__.partition(".")[0]
        return () if package == "weft" else ("--plugin", package)
