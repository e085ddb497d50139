"""The contract of `weft init <task>`: its options, and the recipe that it writes from them.

A task that supports it has one such class in the file init.py of its folder, and weft/commands/init.py builds
the command; a task of a plugin returns it from `Task.init`. The recipe is a template,
recipes/templates/<task>.yaml, which `filled` fills with numbers and names. Heavy imports belong in `write`,
as listing the commands also loads the class.
Read next: survey.py; tag/init.py, a short one.
"""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any, ClassVar, NamedTuple

from weft.data import recipes
from weft.errors import ConfigError


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


TRAIN = Option("train", "Training file.", Path)
VALID = Option("valid", "Validation file. Default: the one next to the training file, if any.", Path)
TEST = Option("test", "Test file. Default: the one next to the training file, if any.", Path)


FILES = ("train", "file", "valid", "test")
"""Options that files without a name stand for, in this order."""

_WORDS = ("null", "true", "false")  # YAML 1.2 does not read these as text


def filled(name: str, values: Mapping[str, object]) -> str:
    """The recipe that a template becomes.

    A line with a value that is None is left out; so the end `$few` of a line that is only for few texts is
    replaced by "" or leaves the line out, see `only`.

    Args:
        name: of the file in recipes/templates, without its ending.
        values: of its placeholders such as `$train`; a path is written as YAML, all others as they are.

    Raises:
        KeyError: a placeholder has no value.
    """
    lines = []
    texts = {name: quoted(value) if isinstance(value, Path) else value for name, value in values.items()}
    for line in (recipes.folder() / "templates" / f"{name}.yaml").read_text("utf-8").splitlines():
        if all(texts[name] is not None for name in Template(line).get_identifiers()):
            lines.append(Template(line).substitute(texts))
    return "\n".join(lines) + "\n"


def only(condition: object) -> str | None:
    """The value at the end of a line of a template that is left out unless the condition holds."""
    return "" if condition else None


def splits(train: Path, valid: Path | None, test: Path | None) -> dict[str, object]:
    """The values of a template about its files: `$train`, `$valid` or `$held_out`, `$test` or `$untested`."""
    held_out, untested = only(not valid), only(not test)
    return {"train": train, "valid": valid, "held_out": held_out, "test": test, "untested": untested}


def quoted(value: object) -> str:
    """A text as YAML, in quotes unless it is safe without."""
    text = str(value)
    plain = re.fullmatch(r"[A-Za-z_/][\w./-]*", text, re.ASCII) and text.lower() not in _WORDS
    return text if plain else json.dumps(text, ensure_ascii=False)


class NewRecipe(NamedTuple):
    """The result of `weft init`."""

    recipe: str
    steps: Sequence[Sequence[str]] = ()  # weft commands to run before `weft train`, as words


class Init(ABC):
    """The options of `weft init` for one task, and the recipe made from them.

    Args:
        task: the task as recipes name it; "" is the name of the class's folder.

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

    def __init__(self, task: str = "") -> None:
        self.folder = type(self).__module__.split(".")[-2]
        self.task = task or self.folder

    def with_files(self, given: Mapping[str, Any], files: Sequence[Path]) -> dict[str, Any]:
        """The options, with files that were named without an option.

        Raises:
            ConfigError: too many files, or a file that an option names too.
        """
        names = [one.name for one in self.options if one.name in FILES]
        said = dict(given)
        if len(files) > len(names):
            raise ConfigError(
                f"expected at most {len(names)} FILES ({', '.join(names)}), got {len(files)}; leave some out"
            )
        for name, file in zip(names, files, strict=False):
            if said[name] is not None:
                raise ConfigError(f"--{name} {said[name]} and {file}: expected one of them; leave one out")
            said[name] = file
        if said[names[0]] is None:
            raise ConfigError(f"expected a training file, got none; name it, or give it with --{names[0]}")
        return said

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


class TemplateInit(Init):
    """A recipe that is the template recipes/templates/TASK.yaml, filled with numbers and names."""

    def write(self, given: Mapping[str, Any], say: Callable[[str], None]) -> NewRecipe:
        """Fill the template; the training file is checked before `weft train`."""
        return NewRecipe(filled(self.folder, self.values(given, say)), [self.check(given["train"])])

    @abstractmethod
    def values(self, given: Mapping[str, Any], say: Callable[[str], None]) -> Mapping[str, object]:
        """Read the user's files once, and choose the values of the template's placeholders.

        Args:
            given: value of each option by name; None for an option that was not given.
            say: prints what was guessed.

        Raises:
            ConfigError: the options do not fit together.
            DataError: files are missing, damaged or too small.
        """
