"""A run directory from Python: which files are written when, and that a check creates none."""

import json
from pathlib import Path

import pytest
import torch

import weft as package
from tests.commands import corpus
from tests.shared import copied, shared_run
from weft import __version__
from weft.config import read_recipe
from weft.errors import CheckpointError, ConfigError
from weft.run import load, open_run
from weft.run.training import begin_run, check_recipe
from weft.store.run_directory import FORMAT
from weft.tasks import Translator, WordTagger
from weft.train.loop import train


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    return corpus.make(tmp_path / "toy")


def trained(recipe: Path, run: Path, *changes: str) -> Path:
    checked = begin_run(run, read_recipe(recipe, ["training.max_updates=2", *changes]))
    assert train(checked.task, run, checked.settings).reason == "max_updates"
    return run


def test_checking_a_recipe_touches_nothing(recipe: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    checked = check_recipe(read_recipe(recipe))
    assert checked.settings.max_updates == 400
    assert checked.plain["data"]["max_length"] == 128  # a default, written explicitly
    assert sorted(tmp_path.rglob("*")) == before


def test_the_recipe_of_a_run_is_complete_and_gives_the_same_run(recipe: Path, tmp_path: Path) -> None:
    checked = begin_run(tmp_path / "run", read_recipe(recipe))
    written = read_recipe(tmp_path / "run" / "recipe.yaml")
    assert written.plain() == checked.plain
    assert check_recipe(written).plain == checked.plain
    assert begin_run(tmp_path / "run", written).plain == checked.plain


def test_a_run_says_what_it_was_begun_with(recipe: Path, tmp_path: Path) -> None:
    begin_run(tmp_path / "run", read_recipe(recipe))
    about = json.loads((tmp_path / "run" / "run.json").read_bytes())
    assert (about["format"], about["weft"], about["torch"]) == (FORMAT, __version__, torch.__version__)


def test_an_opened_model_is_ready_for_use() -> None:
    opened = open_run(shared_run("translate"))
    assert not opened.model.training
    assert not any(parameter.requires_grad for parameter in opened.model.parameters())
    assert load(shared_run("translate")).predict("") == ""
    assert package.load is load


def test_a_run_is_opened_as_the_class_that_is_named() -> None:
    run = shared_run("translate")
    translator = load(run, Translator)
    assert len(next(translator.translate(["alpha"]))) == 1
    with pytest.raises(
        ConfigError, match="expected a run that gives a WordTagger, got one of the task translate"
    ):
        load(run, WordTagger)
    with pytest.raises(ConfigError, match="Translator; give that class, or none"):
        load(run, WordTagger)


def test_an_opened_model_needs_no_training_files(recipe: Path, tmp_path: Path) -> None:
    run = trained(recipe, tmp_path / "run")
    answer = load(run).predict("alpha beta")
    for path in (tmp_path / "toy").iterdir():
        path.unlink()
    moved = run.rename(tmp_path / "moved")
    assert load(moved).predict("alpha beta") == answer


def test_a_run_trained_elsewhere_opens_without_its_device(tmp_path: Path) -> None:
    run = copied(shared_run("translate"), tmp_path)
    path = run / "recipe.yaml"
    path.write_text(path.read_text().replace("device: cpu", "device: cuda:7"))
    assert load(run, device="cpu").predict("alpha") is not None


def test_what_a_run_keeps_may_change_until_a_checkpoint_stands(recipe: Path, tmp_path: Path) -> None:
    changes = {
        "data.source=xy": "xx, the recipe says xy",
        "model.smoothing=0.1": r"model\.smoothing: 0\.0, the recipe says 0\.1",
        "model.decoder.dropout=0.1": r"model\.decoder\.dropout: 0\.0, the recipe says 0\.1",
        "training.seed=7": r"training\.seed: 1, the recipe says 7",
    }
    for side in ("train", "valid", "test"):
        (recipe.parent / f"{side}.xy").write_bytes((recipe.parent / f"{side}.xx").read_bytes())
    run = tmp_path / "run"
    for change in ([], *([one] for one in changes)):
        begin_run(run, read_recipe(recipe, change))
    trained(recipe, run)
    before = (run / "recipe.yaml").read_bytes()
    for change, sentence in changes.items():
        with pytest.raises(ConfigError, match=f"this run was started with .*{sentence}; .* another --run"):
            begin_run(run, read_recipe(recipe, [change]))
    assert (run / "recipe.yaml").read_bytes() == before


def test_a_setting_that_came_later_has_its_default_in_an_older_run(recipe: Path, tmp_path: Path) -> None:
    run = trained(recipe, tmp_path / "run")
    path = run / "recipe.yaml"
    kept = [line for line in path.read_text().splitlines() if "validate_rows:" not in line]
    path.write_text("\n".join(kept) + "\n")
    begin_run(run, read_recipe(recipe))
    assert "validate_rows:" not in "".join(kept) and "validate_rows: 0" in path.read_text()


def test_a_file_where_the_run_should_be(recipe: Path, tmp_path: Path) -> None:
    (tmp_path / "run").write_text("mine")
    with pytest.raises(
        CheckpointError, match=r"run: cannot be written.* choose another directory with --run"
    ):
        begin_run(tmp_path / "run", read_recipe(recipe))
    assert (tmp_path / "run").read_text() == "mine"


def test_hidden_files_do_not_make_a_directory_anothers(recipe: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".DS_Store").write_text("")
    begin_run(tmp_path / "run", read_recipe(recipe))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("")
    why = "other: is not empty and not a run directory; choose another one with --run"
    with pytest.raises(ConfigError, match=why):
        begin_run(tmp_path / "other", read_recipe(recipe))
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["notes.txt"]
