"""The command line as a user has it, without a new process for each call: bytes in, bytes out, a code."""

import io
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NamedTuple

import click
import pytest

from weft import cli


class Answer(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """Of stdout, cut at LF only."""
        return self.out.removesuffix("\n").split("\n") if self.out else []

    @property
    def unfolded(self) -> str:
        """Stdout with the lines of `weft evaluate` as they were before they were folded."""
        return re.sub(r"\n {5,}", " ", re.sub(r"\|\n {5,}", "|", self.out))


def weft(*arguments: object, stdin: bytes = b"", code: int | None = None) -> Answer:
    """`weft ARGUMENTS < stdin`, neither side a terminal; it must exit with `code` where that is given."""
    out, err = io.BytesIO(), io.BytesIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        patch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding="utf-8", write_through=True))
        patch.setattr(sys, "stderr", io.TextIOWrapper(err, encoding="utf-8", write_through=True))
        with pytest.raises(SystemExit) as leave:
            cli.main([str(argument) for argument in arguments])
        left = int(leave.value.code or 0)
        answer = Answer(left, out.getvalue().decode(), err.getvalue().decode())
    assert code is None or answer.code == code, answer.err
    return answer


def evaluated(run: object, *options: object) -> tuple[Answer, Any]:
    """`weft evaluate`, and what its `--json` writes."""
    with tempfile.TemporaryDirectory() as folder:
        answer = weft("evaluate", run, *options, "--json", f"{folder}/all.json")
        assert answer.code in (0, 3), answer.err
        return answer, json.loads(Path(folder, "all.json").read_text("utf-8"))


def trained_in(recipe: Path, *changes: str) -> Answer:
    """`weft train` of a recipe whose data is beside it, where its run will be too."""
    where = "--run", recipe.parent / "run", f"data.folder={recipe.parent}"
    return weft("train", recipe, *where, *changes)


def refused(answer: Answer) -> str:
    """The one sentence of a user's mistake; progress may stand before it."""
    assert answer.code == 2, answer
    *before, said = answer.err.removesuffix("\n").split("\n")
    assert said.startswith("weft: "), answer.err
    assert not any(line.startswith("weft: ") or "Traceback" in line for line in before), answer.err
    assert answer.out == ""
    return said


def unanswered(answer: Answer) -> list[str]:
    """The sentences about inputs that could not be answered, all others having been."""
    assert answer.code == 3 and "Traceback" not in answer.err, answer
    return [line for line in answer.err.splitlines() if line.startswith("weft: ")]


def content(folder: Path) -> dict[str, bytes | None]:
    """Everything below a folder: files with their bytes, folders with None, the lock left out."""
    found: dict[str, bytes | None] = {}
    for path in sorted(folder.rglob("*")):
        if path.name != ".lock":
            found[str(path.relative_to(folder))] = path.read_bytes() if path.is_file() else None
    return found


def untouched(folder: Path, act: Callable[[], Answer]) -> str:
    """The sentence that an act is refused with, nothing below the folder being changed by it."""
    before = content(folder)
    said = refused(act())
    assert content(folder) == before
    return said


def commands(command: click.Command, *names: str) -> Iterator[tuple[list[str], click.Command]]:
    """Every command with the words that call it."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from commands(inner, *names, name)
    else:
        yield list(names), command


def stops(place: str, calls: int) -> Callable[..., Any]:
    """The function of that name, which is stopped as by Ctrl-C after so many calls."""
    real, left = resolve_name(place), [calls]

    def stopping(*given: Any, **named: Any) -> Any:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return real(*given, **named)

    return stopping
