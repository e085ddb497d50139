"""Where a recipe's files are: beside each other in a folder, and still there from another directory."""

from pathlib import Path

import pytest

from weft.config import dump, read_recipe
from weft.run.training import check_recipe
from weft.tasks.translate.task import TranslateTask

RECIPE = """
task: translate
data: {folder: FOLDER, source: xx, target: yy, train: train, valid: valid}
training: {max_updates: 1}
"""


@pytest.mark.parametrize("folder", ["texts", "."])
def test_the_files_of_a_folder_are_found_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    (tmp_path / folder).mkdir(exist_ok=True)
    for name in ("train", "valid"):
        for side in ("xx", "yy"):
            (tmp_path / folder / f"{name}.{side}").write_text(f"{name} {side}\n")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "first.yaml").write_text(RECIPE.replace("FOLDER", folder))
    (tmp_path / "resolved.yaml").write_text(dump(check_recipe(read_recipe("first.yaml")).plain))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    task = check_recipe(read_recipe(tmp_path / "resolved.yaml")).task
    assert isinstance(task, TranslateTask)
    assert [pair.source for pair in task.data.open("train")] == ["train xx"]


def test_without_a_folder_files_are_found_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("train.xx", "train.yy", "valid.xx", "valid.yy"):
        (tmp_path / name).write_text(f"{name}\n")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "first.yaml").write_text(RECIPE.replace("folder: FOLDER, ", ""))
    plain = check_recipe(read_recipe("first.yaml")).plain
    assert plain["data"]["folder"] == str(tmp_path)
