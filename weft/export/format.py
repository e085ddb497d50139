"""The contract of an export format, and what formats share: `export_run`. Read next: formats/."""

import importlib.util
import os
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import ClassVar

from weft import rooms
from weft.errors import ConfigError
from weft.export import formats
from weft.run import LoadedRun, open_run
from weft.store.files import flush_directory
from weft.store.run_directory import check_idle


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

        A ConfigError names the part that it cannot express, and says what to do.
        """

    @abstractmethod
    def write(self, opened: LoadedRun, folder: Path, int8: bool | None) -> Sequence[str]:
        """Write the files of a checked run and compare the result with Weft's own answers.

        The folder is empty and becomes the output if nothing is raised. `int8` stores weights as 8-bit
        integers, None in the format's usual way. The report has sizes and the largest difference from Weft.
        """

    def result(self, folder: Path) -> Path:
        """What becomes the output: the directory itself, or the one file in it."""
        return folder

    def hints(self, output: Path) -> Sequence[str]:
        """The last lines of the report: what to do with the output."""
        return [f"next: {output / 'README.md'} shows how to use it"]


def export_run(
    run: Path, to: str, output: Path | None, int8: bool | None, *, plugins: Collection[str] = ()
) -> Sequence[str]:
    """Export a run to a new directory or, for formats that are one file, a new file."""
    if to == "html":
        raise ConfigError("unknown format 'html'; did you mean 'web', a page for browsers?")
    form: Format = rooms.find(formats, Format, to)()
    if output is None:
        name = run.resolve().name
        output = Path(f"{name}{form.ending}" if form.ending else f"{name}-{to}")
    if output.exists() or output.is_symlink():
        raise ConfigError(f"--output {output}: already exists; remove it or choose another --output")
    check_idle(run)
    opened = open_run(run, device="cpu", plugins=plugins)
    form.check(opened, int8)
    _check_packages(to, form)
    parent = output.absolute().parent
    parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=parent, prefix=".exporting-"))
    try:
        folder = temporary / output.name
        folder.mkdir()
        lines = form.write(opened, folder, int8)
        os.rename(form.result(folder), output)
    except OSError as error:  # a library may not say which file it could not write
        why = error.strerror or error
        raise ConfigError(
            f"--output {output}: cannot be written ({why}); free some space or choose another --output"
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    flush_directory(parent)
    return [*lines, f"written: {output}", *form.hints(output)]


def _check_packages(to: str, form: Format) -> None:
    """Check that the program's libraries are installed: after the run, which may not need them."""
    missing = [name for name in form.packages if importlib.util.find_spec(name) is None]
    if missing:
        names = " and ".join([*filter(None, [", ".join(missing[:-1])]), missing[-1]])
        raise ConfigError(
            f"--to {to}: {names} {'is' if len(missing) == 1 else 'are'} not installed; "
            f"pip install {' '.join(missing)}"
        )
