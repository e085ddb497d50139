"""The shipped recipes: what their headers say, that they build and learn, and that old names still do.

A rehearsal is the loss of one batch of a small model. One for each task, encoder and decoder is enough here;
`make test-all` rehearses every recipe and every variant.
"""

import json
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.commands.shell import refused, weft
from weft.config import read_recipe
from weft.config.recipe import data_source, find_recipe, recommended, shipped, variants
from weft.run.training import CheckedRecipe, check_recipe
from weft.tune.plan import plan

ROOT = Path(__file__).parent.parent
COMMAND = re.compile(r"`weft train ([^`]+)`")
HOUSE_ID = re.compile(r"\b[ACDGM]\d+\b")


class Command(NamedTuple):
    """What follows `weft train`."""

    recipe: str
    overrides: tuple[str, ...] = ()


def commands(page: str) -> list[Command]:
    """The commands `weft train RECIPE OVERRIDES` in a page of the docs."""
    found = []
    for typed in COMMAND.findall((ROOT / page).read_text("utf-8")):
        recipe, *words = shlex.split(typed)
        if recipe not in ("RECIPE", "…"):
            found.append(Command(recipe, tuple(word for word in words if "data.folder=" not in word)))
    return found


SHIPPED = [Command(one.relative_to(ROOT).as_posix()) for one in shipped()]
OLD = [Command(name) for name, old in variants().items() if not old.gone]
SYSTEMS = commands("docs/systems.md")


@cache
def built(one: Command) -> CheckedRecipe:
    return check_recipe(read_recipe(one.recipe, one.overrides))


def faults(recipe: Path) -> Iterator[str]:
    """What a header lacks."""
    header = recipe.read_text("utf-8").partition("\ntask:")[0]
    about, command, measured, *_, machine = header.splitlines()
    folder = read_recipe(recipe).section("data").value.get("folder")
    checked = built(Command(recipe.relative_to(ROOT).as_posix()))
    if not re.match("# [A-Z]", about) or HOUSE_ID.search(header):
        yield "the first line says in plain words what it is"
    if not command.startswith(f"#   weft train {recipe.relative_to(ROOT).as_posix()}"):
        yield "the second line is its command"
    if {"data.folder=PATH" in command, bool(data_source(recipe))} != {folder is not None}:
        yield "its command and a line `# Data:` name the folder of data, if it has one"
    if not re.match(r"# (Measured|Not measured: )", measured) or "trained to its end" in header:
        yield "the third line is its score"
    if recommended(recipe) == ("\n# For study: " in header):
        yield "it is recommended or for study"
    if re.search(r"worse than|below|not solved|no gain", measured) and "for study" not in about:
        yield "what loses to its baseline says so in the line that `weft recipes` prints"
    if recommended(recipe) and not measured.startswith("# Measured"):
        yield "what is recommended was measured"
    if not re.search(r"updates|epochs|CPU minutes", machine):
        yield "the last line says how long it was trained"
    if not re.match(r"# (On an (Intel|AMD)|Processor (and precision )?not recorded)", machine):
        yield "the last line says on which processor, or that this was not recorded"
    elif "not recorded" not in machine and not re.search("float32|bfloat16", machine):
        yield "the last line says in which precision"
    if checked.settings.precision == "float32" and "float32" not in machine:
        yield "its precision is that of its score"
    if checked.settings.max_minutes:
        yield "its end is not counted by the clock"


def test_every_header_says_what_it_is_what_it_scores_and_where_its_data_comes_from() -> None:
    assert {one.stem: found for one in shipped() if (found := list(faults(one)))} == {}


def test_the_networks_that_beginners_try_first_beat_their_baselines() -> None:
    for name in ("help-demo", "help-transformer", "help-mamba", "help-griffin"):
        record = json.loads((ROOT / f"docs/measured/{name}.json").read_text("utf-8"))
        assert ": better than the best baseline" in record["evaluation"]["verdict"], name


def test_the_recipes_are_few_and_every_task_has_one_to_start_with() -> None:
    assert len(shipped()) <= 70
    tasks = {one.parent.name for one in shipped()}
    assert {one.parent.name for one in shipped() if recommended(one)} == tasks


def kinds(one: Command) -> tuple[Any, ...]:
    """The task and the parts that its model names."""
    plain = built(one).plain
    parts = (plain["model"].get(name) for name in ("encoder", "decoder", "forecaster"))
    return plain["task"], *(part.get("use") if isinstance(part, dict) else part for part in parts)


def rehearse(one: Command) -> None:
    loss = built(one).task.rehearse()
    loss.total.backward()
    assert int(loss.count) > 0 and loss.total.isfinite()


def different() -> list[Command]:
    """A command for each task, encoder and decoder."""
    return list({kinds(one): one for one in (*SYSTEMS, *OLD, *SHIPPED)}.values())


def test_each_task_learns_with_each_encoder_and_decoder() -> None:
    for one in different():
        rehearse(one)


def test_the_page_of_variants_has_the_command_for_each_old_name() -> None:
    page = (ROOT / "docs/reference/variants.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `([\w-]+)` .*?`weft train ([^`]+)`", page, re.MULTILINE))
    assert rows == {name.partition("/")[2]: old.words for name, old in variants().items()}


def test_every_system_has_a_command_that_a_recipe_answers() -> None:
    lines = (ROOT / "docs/systems.md").read_text("utf-8").splitlines()
    systems = [line for line in lines if re.match(r"\| [CAM]\d", line)]
    assert len(systems) > 35
    assert [line for line in systems if not re.search("`weft (train|demo|init)", line)] == []
    for one in SYSTEMS:
        assert not find_recipe(one.recipe).note, f"{one.recipe} is an old name"
        built(one)


def test_an_old_name_is_the_same_recipe_and_says_what_to_type_now() -> None:
    now = read_recipe("adding-elman", ["model.encoder.cell=gru", "data.length=9"])
    assert read_recipe("adding-gru", ["data.length=9"]).plain() == now.plain()
    answer = weft("train", "adding-gru", "data.length=nine")
    first, second = answer.err.splitlines()
    assert first == "adding-gru is now: weft train adding-elman model.encoder.cell=gru"
    assert answer.code == 2 and "data.length" in second


def test_a_search_takes_an_old_name_too(tmp_path: Path) -> None:
    found = plan(Path("adding-gru"), ["data.length=9", "data.shortest=5"], tmp_path)
    assert found.given[0] == "model.encoder.cell=gru" and found.recipe.stem == "adding-elman"
    assert found.plain["model"]["encoder"]["cell"]["use"] == "gru"


def test_every_old_name_builds_and_says_why_it_is_gone() -> None:
    assert "mr-filters was worse than naive Bayes and is gone" in find_recipe("mr-filters").note
    for name in variants():
        built(Command(name))
        assert find_recipe(name).path in shipped() and "\n" not in find_recipe(name).note


def test_a_recipe_without_its_data_says_which_folder_and_where_the_set_comes_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = refused(weft("train", "ptb-lstm"))
    assert "pass data.folder=PATH" in said and "github.com/timbmg/RNNLM" in said
    assert "data.folder" not in refused(weft("train", "ptb-lstm", f"data.folder={tmp_path}"))


@pytest.mark.slow
@pytest.mark.parametrize("one", [*SHIPPED, *OLD, *SYSTEMS], ids=lambda one: shlex.join(map(str, one[:1])))
def test_every_recipe_builds_a_model_that_learns(one: Command) -> None:
    rehearse(one)
