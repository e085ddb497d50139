"""Shipped recipes are found by name, from any directory; a user's file with that name has priority."""

import re
from pathlib import Path

import pytest

from tests.commands.shell import weft
from weft import config
from weft.config.recipe import find_recipe, recommended, shipped
from weft.errors import ConfigError
from weft.store import files

RECIPES = Path(__file__).parents[2] / "recipes"


@pytest.mark.parametrize(
    "name",
    ["help-gru-attention", "translate/help-gru-attention", "recipes/translate/help-gru-attention.yaml"],
)
def test_a_name_means_a_shipped_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_recipe(name).path == RECIPES / "translate" / "help-gru-attention.yaml"
    assert config.read_recipe(name, ["training.seed=7"]).section("training").value["seed"].value == 7


def test_a_file_goes_before_a_shipped_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "help-gpt").write_text("task: language\n")
    assert find_recipe("help-gpt").path == Path("help-gpt")


def test_a_name_in_two_tasks_is_asked_for_in_full() -> None:
    with pytest.raises(ConfigError, match="caption/emoji, draw/emoji"):
        find_recipe("emoji")
    assert find_recipe("draw/emoji").path == RECIPES / "draw" / "emoji.yaml"


def test_the_recipes_of_an_installed_package_are_inside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "recipes" / "tag").mkdir(parents=True)
    (tmp_path / "recipes" / "tag" / "mine.yaml").write_text("task: tag\n")
    monkeypatch.setattr(files, "_PACKAGE", tmp_path)
    assert find_recipe("mine").path == tmp_path / "recipes" / "tag" / "mine.yaml"


@pytest.mark.parametrize(
    ("name", "hint"),
    [("help-gtp", "did you mean help-gpt"), ("elsewhere/help-gpt.yaml", "help-gpt"), ("q", "weft recipes")],
)
def test_what_is_neither_file_nor_recipe_is_refused(name: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=hint):
        find_recipe(name)


def test_the_command_lists_them_and_prints_one() -> None:
    everything, some, one = weft("recipes", "--all"), weft("recipes", "tag"), weft("recipes", "help-gpt")
    assert all(f" {path.stem} " in everything.out for path in shipped())
    assert "ewt-bilstm " in some.out and "help-gpt" not in some.out and "\nelmo" not in some.out
    assert one.out == (RECIPES / "language" / "help-gpt.yaml").read_text("utf-8")


def test_the_command_lists_those_to_start_with_and_finds_others_by_words() -> None:
    short = weft("recipes").out
    assert all((f"* {path.stem} " in short) == recommended(path) for path in shipped())
    assert "(and " in short and "\n  help-gpt" not in short
    found = weft("recipes", "translate", "GRU").out
    assert "help-gru-attention " in found and "help-demo" not in found and "shapes-gru" not in found
    assert "no recipe has all these words" in weft("recipes", "tag", "zebra").err


def test_the_results_are_of_recommended_recipes() -> None:
    results = (RECIPES.parent / "docs" / "results.md").read_text("utf-8")
    rows = [line.split("|")[2] for line in results.splitlines() if line.startswith("|")]
    rows = [row for row in rows if "for study" not in row]
    scored = {name for row in rows for name in re.findall(r"`([\w-]+)`", row)}
    assert len(scored) >= 15 and all(recommended(find_recipe(name).path) for name in scored)


def test_the_recommended_recipes_are_marked_and_the_first_hint_names_one() -> None:
    listed = weft("recipes", "translate").out.splitlines()
    assert listed[1].startswith("* help-demo ") and "  help-rnn-plain " in "\n".join(listed)
    assert "train help-demo" in listed[-2]


def test_the_list_fits_eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    listed = weft("recipes", "--all").out.splitlines()
    assert max(map(len, listed)) <= 80
    stems = {path.stem for path in shipped()}
    assert stems <= {line[2:].split(" ")[0] for line in listed}  # every name starts a line
