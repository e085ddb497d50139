"""No file outside weft/tasks/<task>/ names that task, in a string or an import; exceptions are listed.

Read next: test_house.py, more rules for the source.
"""

import ast
from pathlib import Path

import pytest

from tests.source import ROOT, broken, name_of, nodes, text_of

TASKS = {path.parent.name for path in (ROOT / "weft" / "tasks").glob("*/task.py")}
NAMES_A_TASK = {
    # Words of a file's format, a table's header, a legend, an option, a view or the server's JSON that also
    # name a task.
    "weft/commands/inspect.py",
    "weft/data/images.py",
    "weft/data/guess.py",
    "weft/documents/html.py",
    "weft/documents/memories.py",
    "weft/figures/series.py",
    "weft/importing/kits/eole.py",
    "weft/importing/kits/joeynmt.py",
    "weft/inspect/views/curves.py",
    "weft/serve/translation.py",
    "weft/serve/watching.py",
    "weft/tasks/pictures/recipe.py",
    "weft/tasks/pictures/data.py",
    # The demo is a translator, estimators and imported checkpoints are for one task, an n-gram model is of a
    # language model's text.
    "weft/commands/demo.py",
    "weft/sklearn.py",
    "weft/commands/ngram.py",
    "weft/importing/plans.py",
}
"""Files that may name a task outside its folder; take one away when it no longer does, add none."""


def named_tasks(source: str, own: str = "") -> list[str]:
    """Where a file names a task other than its own, as a string or in an import."""
    wrong = []
    for node in nodes(source):
        if isinstance(node, ast.Constant) and node.value in TASKS - {own}:
            wrong.append(f"line {node.lineno}: {node.value!r}")
        for name in _imported(node):
            if name.startswith("weft.tasks.") and name.split(".")[2] in TASKS - {own}:
                wrong.append(f"line {getattr(node, 'lineno', 0)}: {name}")
    return wrong


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [name.name for name in node.names]
    if isinstance(node, ast.ImportFrom) and node.module:
        return [f"{node.module}.{name.name}" for name in node.names]
    return []


def task_of(path: Path) -> str:
    """The task whose folder holds a file; "" outside of them."""
    parts = path.relative_to(ROOT).parts
    return parts[2] if parts[:2] == ("weft", "tasks") and parts[2] in TASKS else ""


def elsewhere(path: Path) -> list[str]:
    return [] if name_of(path) in NAMES_A_TASK else named_tasks(text_of(path), task_of(path))


def test_a_task_is_named_in_its_own_folder_only() -> None:
    assert broken(elsewhere) == []


@pytest.mark.parametrize(
    ("source", "own", "count"),
    [
        ('if opened.name == "forecast": pass', "", 1),
        ('if opened.name in ("forecast", "memory"): pass', "memory", 1),
        ("from weft.tasks.translate.model import PairModel", "classify", 1),
        ("import weft.tasks.tag.task", "", 1),
        ("from weft.tasks.init import planned", "", 0),
        ('"""The forecast."""\nkind = "forecasts"', "", 0),
    ],
)
def test_a_task_named_elsewhere_is_seen(source: str, own: str, count: int) -> None:
    assert len(named_tasks(source, own)) == count
