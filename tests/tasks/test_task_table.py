"""The table of docs/reference/tasks.md, row by row: what the commands do for a small run of each task."""

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from tests.commands.shell import weft
from tests.shared import quick_first, shared_run
from tests.source import ROOT
from weft import rooms, tasks
from weft.inspect.inspection import examples
from weft.run import LoadedRun, open_run
from weft.tasks.init import Init
from weft.tasks.task import Task

PAGE = ROOT / "docs" / "reference" / "tasks.md"
NAMES = sorted(rooms.parts(tasks, Task))


def form(line: str) -> str:
    """Which form a line of `weft predict --scores` has."""
    if re.match(r"-?\d+\.\d{4}\t", line):
        return "SCORE TAB TEXT"
    return "NAME=SCORE" if re.search(r"=\d\.\d{4}", line) else "columns"


def predicted(opened: LoadedRun, *options: object) -> str:
    """The first line of the answer to the task's example; "" if an option is refused."""
    example = opened.task.predict_example(examples(opened.path).texts)
    assert example is not None
    words = () if "--pictures" in example.words else example.words
    answer = weft("predict", opened.path, *words, *options, stdin=f"{example.line}\n".encode())
    assert answer.code in (0, 2) and "Traceback" not in answer.err, answer.err
    assert answer.code == 0 or len(answer.err.splitlines()) == 1, answer.err  # one sentence
    return answer.out.splitlines()[0] if answer.code == 0 else ""


def row(name: str, folder: Path) -> str:
    """A line of the table."""
    opened = open_run(shared_run(name), device="cpu")
    init: Any = rooms.find(tasks, Init, name)
    data = {one.name for one in fields(opened.task.data)}  # type: ignore[arg-type]
    held = [f"`data.{one}`" for one in ("hold_out", "valid_share", "split") if one in data]
    scores = predicted(opened, "--scores")
    drawn = predicted(opened, "--pictures", folder / "drawn", "--max-pictures", 1)
    aligned = predicted(opened, "--alignments", folder / "aligned.txt")
    checks = vars(type(opened.task)).get("check") or name in ("masked", "elmo", "language")
    cells = [
        f"`{name}`",
        ", ".join(init().files) or "nothing",
        "yes" if checks and init().files else "",
        held[0] if held else "generated" if "problem" in data else "",
        opened.pipeline.predictor(opened.model).reads,
        scores and form(scores),
        drawn and "yes",
        aligned and "yes",
        "yes" if opened.pipeline.model_export(opened.model) is not None else "",
    ]
    assert not drawn or any((folder / "drawn").iterdir())
    return f"| {' | '.join(cell or '—' for cell in cells)} |"


@pytest.mark.parametrize("name", quick_first(dict(zip(NAMES, NAMES, strict=True)), 0))
def test_the_table_says_what_the_commands_do(name: str, tmp_path: Path) -> None:
    found = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith(f"| `{name}` ")]
    assert found == [row(name, tmp_path)]
