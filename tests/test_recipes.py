"""Every recipe that ships can be read, built and typed as its header says."""

from pathlib import Path

import pytest

from weft.config import read_recipe
from weft.run import check

ROOT = Path(__file__).parent.parent
RECIPES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "recipes").rglob("*.yaml"))


def test_there_are_recipes_for_each_set() -> None:
    sets = {Path(recipe).name.split("-")[0] for recipe in RECIPES}
    assert {"help", "multi30k", "wmt15", "iwslt", "ptb", "shakespeare"} <= sets


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_builds_a_model_that_learns(recipe: str) -> None:
    loss = check(read_recipe(ROOT / recipe)).task.rehearse()
    loss.total.backward()
    assert int(loss.count) > 0 and loss.total.isfinite()


@pytest.mark.parametrize("recipe", RECIPES)
def test_its_header_says_the_command_and_what_to_expect(recipe: str) -> None:
    about, command, expected = (ROOT / recipe).read_text("utf-8").splitlines()[:3]
    assert about.startswith("# ") and command.startswith(f"#   weft train {recipe}")
    assert expected.startswith("# ") and not expected.startswith("# NOTE")
    needs_folder = read_recipe(ROOT / recipe).section("data").value.get("folder") is not None
    assert ("data.folder=PATH" in command) == needs_folder
