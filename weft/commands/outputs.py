"""Output files of a command: none replaces an input or a part of a run, each is written atomically.

That is checked before the work starts. Read next: evaluate.py, which uses both.
"""

import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

import click

from weft.data.tables import WORKBOOKS
from weft.errors import DataError, WeftError
from weft.store import files
from weft.wording import plural

PARTS = (
    *("recipe.yaml", "run.json", "*.safetensors", "checkpoints.json", "metrics.jsonl", "readme.md"),
    *("tokenizer*.json", "calibration.json", "shortlist*.json", "teacher.json", ".lock", "*.npy"),
    *("pictures.json", "speech.json", "series.json", "sizes.json", "data.json", "trackers.json"),
    *("checkpoints", "cycles", "tensorboard", "wandb", "mlflow", "contextual"),
)
"""Names of what a run consists of, as patterns; a folder stands for everything in it."""

MEDIA = (
    *(".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff"),
    *(".wav", ".flac", ".ogg", ".opus", ".mp3", ".m4a"),
)
"""Endings of files that models of pictures and recordings read."""


class OutputPath(click.Path):
    """The type of a parameter that names a file or a directory to write; every other path is read."""

    def __init__(self, *, folder: bool = False, drawn: bool = False) -> None:
        super().__init__(path_type=Path)
        self.folder, self.drawn = folder, drawn

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The path; no file is called -, which elsewhere is standard output."""
        if value == "-":
            self.fail("expected the name of a file, got -; standard output is /dev/stdout", param, ctx)
        return super().convert(value, param, ctx)


def output_option(*names: str, folder: bool = False, **about: Any) -> Callable[..., Any]:
    """An option that names a file to write, or a folder of such files."""
    return click.option(
        *names, **{"metavar": "DIR" if folder else "FILE", "type": OutputPath(folder=folder), **about}
    )


class _Paths(NamedTuple):
    written: list[tuple[Path, OutputPath]]
    read: list[Path]


def check_outputs(*more: Path) -> None:
    """Check that the outputs of the running command can be written, and that nothing is lost.

    The outputs are its parameters of the type `OutputPath`. Its other paths are its inputs, with the files
    that recipes among them name.
    """
    paths = _parameters()
    named = [path for path, _ in paths.written]
    written = [*paths.written, *((path, OutputPath()) for path in more if path not in named)]
    for number, (path, kind) in enumerate(written):
        with files.refusals(path, "choose another place"):
            if kind.folder:
                _check_folder(path, paths.read)
            elif is_regular(path):
                if any(_same(path, other) for other, _ in written[:number]):
                    raise DataError("is written twice; choose another name for one of them", path=path)
                _check_kept(path, kind, paths.read)
                if path in named:
                    _check_place(path)


def is_regular(path: Path) -> bool:
    """Whether a path is a file, a directory or nothing yet, and not a device or a pipe."""
    found = files.status(path)
    return found is None or stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)


def _parameters() -> _Paths:
    """What the running command writes and reads."""
    found = _Paths([], [])
    context = click.get_current_context(silent=True)
    for param in context.command.params if context is not None else ():
        assert context is not None
        value = context.params.get(param.name or "")
        for one in value if isinstance(value, tuple | list) else [value]:
            if isinstance(param.type, OutputPath) and isinstance(one, Path):
                if str(one) != "-":
                    found.written.append((one, param.type))
            else:
                found.read.extend(_paths(param, one))
    return found


def _paths(param: click.Parameter, value: Any) -> Iterator[Path]:
    """The paths in the value of a parameter; a text may name a file, also after the sign in RUN=FILE."""
    if isinstance(value, Path):
        yield value
    elif isinstance(value, str) and (isinstance(param, click.Argument) or "FILE" in (param.metavar or "")):
        with suppress(OSError, ValueError):  # the text cannot be a file name
            yield from (path for path in map(Path, (value, value.partition("=")[2])) if path.is_file())


def _check_place(path: Path) -> None:
    if files.is_dir(path):
        raise DataError("expected a file, got a directory; name a file in it", path=path)
    ending = path.suffix.lower()
    if ending in (*WORKBOOKS, ".tsf"):
        raise DataError(f"answers are written as text, not as {ending}; name it .csv or .txt", path=path)
    if not files.is_dir(path.absolute().parent):
        raise DataError(f"no such directory {path.parent}; create it, or choose another name", path=path)


def _check_folder(folder: Path, read: Sequence[Path]) -> None:
    """Check that pictures written into a directory cannot replace pictures that are read."""
    for one in read:
        if not _is_run(one) and (
            _same(folder, one) or (one.suffix.lower() in MEDIA and _same(folder, one.parent))
        ):
            raise DataError(f"has files that are read ({one}); choose another directory", path=folder)


def _check_kept(path: Path, kind: OutputPath, read: Sequence[Path]) -> None:
    """Check that writing a file replaces no input and no part of a run."""
    for one in read:
        if _same(path, one):
            raise DataError("this command reads it; choose another name", path=path)
        if any(_same(path, named) for named in _named_by(one)):
            raise DataError(f"is named by the recipe of {one}; choose another name", path=path)
    where = path.resolve()
    for run in where.parents:
        name = where.relative_to(run).parts[0].casefold()
        if any(fnmatch(name, part) for part in PARTS) and _is_run(run):
            raise DataError(f"is a part of the run {run}; choose another name", path=path)
    if path.suffix.lower() in MEDIA and path.exists():
        given = [one for one in read if not _is_run(one)]
        inside = any(_same(folder, one) for folder in path.absolute().parents for one in given)
        if inside or not kind.drawn:
            raise DataError("is a picture or recording that exists; choose another name", path=path)


def _same(path: Path, other: Path) -> bool:
    """Whether two names are one file, also through links and on systems that ignore case."""
    try:
        return path.resolve() == other.resolve() or path.samefile(other)
    except (OSError, RuntimeError):  # one does not exist, or a link leads to itself
        return False


def _is_run(path: Path) -> bool:
    with suppress(OSError):
        return (path / "recipe.yaml").is_file() and (path / "run.json").is_file()
    return False


def _named_by(path: Path) -> Iterator[Path]:
    """The files that a recipe, or the recipe of a run, names."""
    file = path / "recipe.yaml" if _is_run(path) else path
    if file.suffix.lower() not in (".yaml", ".yml") or not file.is_file():
        return
    from weft.config import read_recipe

    words: set[str] = set()
    with suppress(WeftError, OSError):
        words = {part for text in _texts(read_recipe(file).plain()) for part in (text, *text.split(","))}
    folders = [Path(), *(Path(word) for word in words if Path(word).is_dir())]
    sides = ["", *(f".{word}" for word in words if word.isalpha())]  # such as train and .en
    named = (folder / f"{word}{side}" for folder in folders for word in words for side in sides)
    yield from (path for path in named if path.is_file())


def _texts(value: Any) -> Iterator[str]:
    """All texts in a recipe that could name a file."""
    if isinstance(value, str) and 0 < len(value) < 200 and "\0" not in value:
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)


UNANSWERED = 3  # the exit code if some inputs have no answer and all others have one


def reported(wrong: Sequence[str]) -> int:
    """Print on standard error which inputs have no answer, and why; returns the command's exit code."""
    for one in "\n".join(wrong).split("\n") if wrong else ():
        click.echo(f"weft: {one}", err=True)
    return UNANSWERED if wrong else 0


def remarked(lines: Sequence[str], named: int = 0) -> None:
    """Print on standard error what answers lack of their inputs, and how many of them are named."""
    last = f"{plural(named, 'answer')} named above; --strict refuses what is named"
    for line in (*lines, last) if named else lines:
        click.echo(f"note: {line}", err=True)


def write(path: Path, text: str) -> None:
    """Write a text as UTF-8, atomically."""
    write_bytes(path, text.encode("utf-8", "replace"))


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file atomically, see `write`; a device or a pipe, such as /dev/stdout, is written to."""
    with files.refusals(path):
        if is_regular(path):
            files.replace(path, content)
        else:  # a rename would put a file in its place
            path.write_bytes(content)


def folder_for(path: Path) -> None:
    """Create a directory if it does not exist."""
    with files.refusals(path, "choose another directory", "created"):
        path.mkdir(parents=True, exist_ok=True)
