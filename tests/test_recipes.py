"""Every shipped recipe can be read and built, and its header states command, machine and precision."""

from pathlib import Path

import pytest

from weft.config import read_recipe
from weft.run.training import check_recipe

ROOT = Path(__file__).parent.parent
RECIPES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "recipes").rglob("*.yaml"))


def test_there_are_recipes_for_each_set() -> None:
    sets = {Path(recipe).name.split("-")[0] for recipe in RECIPES}
    assert {"help", "multi30k", "wmt15", "iwslt", "ptb", "shakespeare"} <= sets


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_builds_a_model_that_learns(recipe: str) -> None:
    loss = check_recipe(read_recipe(ROOT / recipe)).task.rehearse()
    loss.total.backward()
    assert int(loss.count) > 0 and loss.total.isfinite()


@pytest.mark.parametrize("recipe", RECIPES)
def test_its_header_says_the_command_and_what_to_expect(recipe: str) -> None:
    about, command, expected = (ROOT / recipe).read_text("utf-8").splitlines()[:3]
    assert about.startswith("# ") and command.startswith(f"#   weft train {recipe}")
    assert expected.startswith("# ") and not expected.startswith("# NOTE")
    needs_folder = read_recipe(ROOT / recipe).section("data").value.get("folder") is not None
    assert ("data.folder=PATH" in command) == needs_folder


@pytest.mark.parametrize("recipe", RECIPES)
def test_its_header_says_the_processor_the_precision_and_the_updates_of_its_figures(recipe: str) -> None:
    machine = (ROOT / recipe).read_text("utf-8").split("\ntask:")[0].splitlines()[-1]
    precision = check_recipe(read_recipe(ROOT / recipe)).settings.precision
    if machine.startswith(("# On an Intel", "# On an AMD")):
        assert any(unit in machine for unit in ("updates", "epochs", "CPU minutes"))
        assert "float32" in machine or (precision != "float32" and "bfloat16" in machine)
    else:
        assert "not recorded" in machine
        assert (precision == "float32") == ("sets float32" in machine)


@pytest.mark.parametrize("recipe", RECIPES)
def test_no_budget_is_counted_by_the_clock(recipe: str) -> None:
    assert not check_recipe(read_recipe(ROOT / recipe)).settings.max_minutes
