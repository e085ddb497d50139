"""Errors that a user can correct: where, what was expected, what was found and what to do.

Each is a ValueError, which the command line prints as one line before it exits with code 2.
Read next: tree.py.
"""

import importlib
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from weft.wording import visible

_LONG = re.compile(r"\S{400,}")  # longer than any word, and than any name that a file system takes


class WeftError(ValueError):
    """A mistake that the user can correct; its text is one sentence that says how.

    Text from a damaged file cannot break the line, control the terminal or fill the screen: line ends and
    control characters are shown as escapes, and words of 400 letters or more are cut to 100.
    """

    def __init__(self, text: str) -> None:
        super().__init__(_clean(text))


class ConfigError(WeftError):
    """A recipe, an option or an argument does not fit.

    Example:
        >>> raise ConfigError("temperature: expected a number above 0, got -1")
        Traceback (most recent call last):
        weft.errors.ConfigError: temperature: expected a number above 0, got -1
    """


class MissingSplitError(ConfigError):
    """A recipe names no data for a split; `lack` is without the advice to score the validation part."""

    lack = ""

    @classmethod
    def of(cls, split: str, what: str, given: str) -> "MissingSplitError":
        """That of a split, which could name `what`; --data takes `given`."""
        lack = f"data.{split}: the recipe names no {split} {what}; give some with --data {given}"
        error = cls(lack + (", or score the validation part: --split valid" if split == "test" else ""))
        error.lack = lack
        return error


class ShapeError(WeftError):
    """Tensors whose sizes do not fit together."""


class DataError(WeftError):
    """A data file is missing, damaged or not what it should be.

    Attributes:
        why: what was expected, what was found and what to do.
        path: the file at fault; None where the error concerns no file.
        line: of the file, from 1; None where the error concerns no single line.

    Example:
        >>> error = DataError("expected 2 columns, got 1", path="train.tsv", line=7)
        >>> str(error), str(error.at("all.tsv", 1007))
        ('train.tsv:7: expected 2 columns, got 1', 'all.tsv:1007: expected 2 columns, got 1')
    """

    def __init__(self, why: str, *, path: str | PathLike[str] | None = None, line: int | None = None) -> None:
        self.why = _clean(why)
        self.path = None if path is None else str(path)
        self.line = line
        place = "" if path is None else f"{path}: " if line is None else f"{path}:{line}: "
        super().__init__(place + why)

    def at(self, path: str | PathLike[str], line: int | None = None) -> "DataError":
        """The same reason at another place."""
        return DataError(self.why, path=path, line=line)


class CheckpointError(WeftError):
    """A run directory or a checkpoint is missing, damaged or from another version."""


class ExportError(WeftError):
    """An exported model answers differently from the run, or its own program cannot read it."""


class DataWarning(UserWarning):
    """A file is read, but not all of it or not as it is; the command line prints one of each kind."""


EXTRAS = {
    "serve": "fastapi starlette pydantic uvicorn python_multipart prometheus_client",
    "export": "onnx onnxscript onnxruntime onnx_ir",
    "documents": "sentencex lxml polib markdown_it",
    "tune": "optuna",
    "pictures": "matplotlib PIL",
    "sound": "soundfile",
    "video": "av",
    "pieces": "sentencepiece google",
    "pandas": "pandas",
    "parquet": "pyarrow",
    "tables": "python_calamine",
    "zstd": "zstandard",
    "encodings": "chardet",
    "ray": "ray",
}
"""The modules that come with each extra, or with its packages."""


def what_to_install(error: ModuleNotFoundError) -> str:
    """A sentence for a library of an extra that is not installed; "" for another module."""
    lacking = (error.name or "").partition(".")[0]
    extra = next((name for name, modules in EXTRAS.items() if lacking in modules.split()), "")
    return (
        f"this needs {lacking}; install Weft with its extra: pip install 'weft-seq[{extra}]'" if extra else ""
    )


@contextmanager
def saying_what_to_install() -> Iterator[None]:
    """A library of an extra that is missing inside is a ConfigError."""
    try:
        yield
    except ModuleNotFoundError as error:
        if not (wanted := what_to_install(error)):
            raise
        raise ConfigError(wanted) from error


def library(name: str, extra: str, place: str) -> Any:
    """Import a library of an optional extra; a ConfigError says what to install."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise ConfigError(f"{place}: {package} is not installed; pip install 'weft-seq[{extra}]'") from error


@contextmanager
def within(section: str) -> Iterator[None]:
    """Prefix errors raised in the block with the name of a recipe's section."""
    try:
        yield
    except (ConfigError, ShapeError) as error:
        raise ConfigError(f"{section}: {str(error).removeprefix(f'{section}.')}") from error


class Cautions(NamedTuple):
    """What a call from Python warns of: in its words, and once."""

    words: Callable[[str], str]
    said: set[str]


cautions: ContextVar[Cautions | None] = ContextVar("cautions", default=None)


def caution(text: str) -> None:
    """Give a DataWarning at the line of the program that called Weft; commands print its text."""
    if call := cautions.get():
        text = call.words(text)
        if text in call.said:
            return
        call.said.add(text)
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(("weft.", "contextlib")):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, DataWarning, stacklevel=level)


def _clean(text: str) -> str:
    whole = visible(text.replace("\n", "\\n"))
    return _LONG.sub(lambda word: word[0][:100] + "…", whole)


def given_path(name: str, value: object) -> Path:
    """The path that Python's user gave; a ConfigError if it is something else."""
    if isinstance(value, str | PathLike):
        return Path(value)
    raise ConfigError(f"{name}: expected a path, got {type(value).__name__}")
