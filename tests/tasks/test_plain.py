"""The task of the guide, all that a new task needs: trained, asked, scored; its mistakes have a place."""

from pathlib import Path

import pytest

import weft as library
from tests.commands.shell import refused, unanswered, weft
from tests.plugins import PAIRS, package

RECIPE = """task: mine.pairs.task.PairTask
data: {train: train.tsv, valid: valid.tsv}
training: {optimiser: {use: adam, lr: 0.01}, max_updates: 2, metric: accuracy, monitors: false}
"""
PLUGIN = "--plugin", "mine"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with the task, its data and a recipe."""
    package(tmp_path, "mine", {"pairs/task.py": PAIRS}, monkeypatch)
    for name in ("train", "valid"):
        (tmp_path / f"{name}.tsv").write_text("a cat\tcat a\tsame\na cat\ta dog\tdifferent\n" * 20)
    (tmp_path / "x.yaml").write_text(RECIPE)
    return tmp_path


def test_a_task_on_pairs_is_one_short_file(home: Path) -> None:
    assert len((home / "mine" / "pairs" / "task.py").read_text().splitlines()) < 130
    weft("train", "x.yaml", "--run", "run", *PLUGIN, code=0)
    asked = weft("predict", "run", *PLUGIN, stdin=b"a cat\ta dog\na cat\n\n")
    assert set(asked.lines[:1]) <= {"same", "different"} and asked.lines[1:] == ["", ""]
    first, second = unanswered(asked)
    assert "standard input:2: expected QUESTION TAB QUESTION, got 'a cat'" in first and ":3: " in second
    model = library.load("run", plugins=["mine"])
    assert model.predict(["a cat\ta dog"])[0] == asked.lines[0]
    scores = weft("evaluate", "run", "--split", "valid", *PLUGIN, code=0).out
    shown = refused(weft("inspect", "run", "a cat", *PLUGIN))
    assert "expected no input, as PairTask shows only its training, got one; leave it out" in shown
    missing = refused(weft("evaluate", "run", *PLUGIN))
    assert "data.test: the recipe names no test examples; give some with --data FILE, or score" in missing
    assert "valid.tsv, 40 examples" in scores and "most frequent answer 0.5000" in scores


def test_mistakes_in_its_data_have_their_place(home: Path) -> None:
    (home / "train.tsv").write_text("a\tb\tsame\na b\n")
    assert "train.tsv:2: expected an answer" in refused(weft("train", "x.yaml", "--run", "run", *PLUGIN))
    (home / "valid.tsv").unlink()
    assert "valid.tsv: no such file" in refused(weft("train", "x.yaml", "--run", "run", *PLUGIN))
