"""Every task begins alike: `weft init` writes a recipe that trains, and what commands print can be typed."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.commands.shell import Answer, refused, weft
from tests.slow import leading, slow
from tests.tasks.every import KINDS
from weft import rooms, tasks
from weft.commands import program
from weft.config import read_recipe
from weft.run.training import check_recipe
from weft.store import files
from weft.tasks.task import Task

GIVEN = {
    "translate": ("toy/train", "--source", "xx", "--target", "yy"),
    "summarise": ("toy/train.tsv",),
    "multilingual": ("toy/train",),
    "language": ("toy/train.txt",),
    "classify": ("toy/train.txt",),
    "tag": ("toy/train.conllu",),
    "forecast": ("toy/x.csv", "--horizon", "5"),
    "embeddings": ("toy/train.txt", "--test", "toy/pairs.tsv"),
    "caption": ("toy/train.tsv", "--images", "toy/pictures"),
    "draw": ("toy/train.tsv", "--images", "toy/pictures"),
    "elmo": ("toy/train.txt",),
    "images": ("toy/train",),
    "masked": ("toy/train.txt",),
    "memory": ("--length", "11"),
    "speech": ("toy/train.tsv",),
}
"""What `weft init` is given for the toy of each task."""

SHORT = "training.max_updates=2", "training.validate_every=2", "training.tensorboard=false"
PAIRS = (
    "model.encoder.sizes=[8,8]",
    "model.decoder.sizes=[8]",
    "model.embedding.size=8",
    "decoding.max_extra=4",
)
SMALL = {
    "translate": PAIRS,
    "multilingual": PAIRS,
    "summarise": ("model.encoder.sizes=[8]", "model.decoder.decoder.sizes=[8]", *PAIRS[2:]),
    "speech": ("model.encoder.sizes=[8,8,8]", "model.decoder.sizes=[8]", PAIRS[3]),
}
"""Sizes to train with where those of the recipe, which is rehearsed as it is, would take seconds."""


def typed(answer: Answer) -> list[tuple[bytes, list[str]]]:
    """The commands below "next:", as a shell reads them: standard input, and the words after `weft`."""
    start = shlex.join(program.program()) + " "
    found = []
    for line in answer.out.partition("next:\n")[2].splitlines():
        before, _, command = line.strip().rpartition(" | ")
        if command.startswith(start):
            given = subprocess.run(["sh", "-c", before], capture_output=True, check=True).stdout
            found.append((given, shlex.split(command.removeprefix(start), comments=True)))
    return found


FAST = ("translate", "language", "tag", "forecast", "embeddings", "images", "masked")


def test_every_task_has_an_init_and_a_template() -> None:
    assert set(GIVEN) == set(rooms.parts(tasks, Task))
    assert {one.stem for one in (files.recipes_folder() / "templates").iterdir()} == set(GIVEN)


@pytest.mark.parametrize("name", [*FAST, *slow(one for one in GIVEN if one not in FAST)])
def test_its_recipe_trains_and_all_commands_that_are_printed_can_be_typed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    KINDS[name].make(Path("toy"))
    answer = weft("init", name, *GIVEN[name], "--output", "my.yaml", code=0)
    *checks, (_, train) = typed(answer)
    assert train == ["train", "my.yaml"] and bool(checks) == (name != "memory")
    for _, words in checks:
        weft(*words, code=0)
    assert check_recipe(read_recipe("my.yaml")).task.rehearse().total.isfinite()
    trained = weft(*train, "--run", "run", *SHORT, *SMALL.get(name, ()), code=0)
    steps = typed(trained)
    data = read_recipe("my.yaml").section("data").plain()
    scored = (
        "test" in data or "trained again" not in trained.out
    )  # a refit model is scored on a test part alone
    assert [words[0] for _, words in steps] == [*["evaluate"] * scored, "predict", "inspect", "show"]
    for given, words in steps:
        found = weft(*words, stdin=given)
        assert (found.code == 0 and found.out) or "--output" in words, (words, found)


SAID = {
    "classify": (
        ("--train", "train.txt", "--test", "test.csv"),
        (
            "2 classes, 201 training texts",
            "good 101, bad 100",
            "hold_out: 5 ",
            "split_seed: 1",
            "the penalty\n",
        ),
    ),
    "tag": (
        ("--train", "train.conllu", "--model", "network"),
        ("3 tags (upos), 200 training sentences", "test: test.conllu"),
    ),
    "language": (("--train", "train.txt", "--model", "lstm"), ("211 lines", "valid: valid.txt")),
}
"""What the recipe of a toy says, with these options."""


@pytest.mark.parametrize("name", SAID)
def test_a_recipe_says_what_its_data_are_like(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    KINDS[name].make(tmp_path)
    monkeypatch.chdir(tmp_path)
    given, said = SAID[name]
    answer = weft("init", name, *given, "--output", "own.yaml", code=0)
    assert f"weft data check {given[1]}" in answer.out and f"--task {name}\n" in answer.out
    text = Path("own.yaml").read_text()
    assert [words for words in said if words not in text] == []
    assert check_recipe(read_recipe("own.yaml")).task.rehearse().total.isfinite()
    assert "already exists" in refused(weft("init", name, *given, "--output", "own.yaml"))


@pytest.mark.parametrize(
    "name", leading(["translate", "summarise", "multilingual", "caption", "draw", "speech"], 1)
)
def test_without_validation_files_some_examples_are_held_out(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    KINDS[name].make(Path("toy"))
    for path in Path("toy").glob("valid*.*"):
        if path.suffix != ".wav":
            path.unlink()
    weft("init", name, *GIVEN[name], "--output", "my.yaml", code=0)
    data = read_recipe("my.yaml").section("data").plain()
    assert data["hold_out"] == 20 and "valid" not in data
    weft("train", "my.yaml", "--run", "run", *SHORT, *SMALL.get(name, ()), code=0)
    assert weft("evaluate", "run", "--split", "valid").code == 0
    said = refused(weft("train", "my.yaml", "--run", "other", *SHORT, "data.hold_out=1"))
    assert "hold_out=1: expected 0 for none or at least 2, got 1" in said


def test_an_old_name_of_an_option_is_read_and_the_new_one_is_said(tmp_path: Path) -> None:
    KINDS["forecast"].make(tmp_path / "toy")
    given = ("init", "forecast", "--file", tmp_path / "toy" / "x.csv", "--horizon", 5)
    answer = weft(*given, "--output", tmp_path / "my.yaml")
    assert answer.code == 0 and answer.err == "--file is now --train\n"
    assert read_recipe(tmp_path / "my.yaml").section("data").plain()["file"] == str(
        tmp_path / "toy" / "x.csv"
    )
    assert "--file" not in weft("init", "forecast", "--help").out


def test_files_for_a_generated_problem_are_refused(tmp_path: Path) -> None:
    assert "text.txt: expected no FILES" in refused(weft("init", "memory", "text.txt"))
    said = refused(weft("init", "memory", "--problem", "cups", "--symbols", 9, "-o", tmp_path / "x.yaml"))
    assert said == "weft: symbols: expected 2 to 8 cups, got 9 (cups)"


@pytest.mark.parametrize("problem", ["adding", "copying", "selective", "induction", "recall", "cups"])
def test_every_generated_problem_has_a_recipe(problem: str, tmp_path: Path) -> None:
    weft("init", "memory", "--problem", problem, "--output", tmp_path / "my.yaml", code=0)
    checked = check_recipe(read_recipe(tmp_path / "my.yaml"))
    assert checked.task.rehearse().total.isfinite()
    example = checked.task.predict_example(())
    assert example is not None
    checked.task.open(tmp_path).predictor(checked.task.small_model()).predict(example.line)


def test_languages_of_a_text_are_its_endings_or_columns(tmp_path: Path) -> None:
    for language in ("aa", "bb", "cc"):
        (tmp_path / f"text.{language}").write_text(f"one {language}\n" * 60)
    table = "English\tGerman\tid\n" + "cell\tZelle\t7\n" * 60
    (tmp_path / "table.tsv").write_text(table)
    recipe = tmp_path / "my.yaml"
    for given, pairs in (
        (["text"], ["aa-bb", "aa-cc", "bb-aa", "bb-cc", "cc-aa", "cc-bb"]),
        (["text", "--pairs", "bb-aa"], ["bb-aa"]),
        (["table.tsv"], ["English-German", "German-English"]),
    ):
        weft("init", "multilingual", tmp_path / given[0], *given[1:], "--output", recipe, code=0)
        data = read_recipe(recipe).section("data").plain()
        assert data["pairs"] == pairs and data["hold_out"] == 20
        recipe.unlink()
    said = refused(weft("init", "multilingual", tmp_path / "nothing", "--output", recipe))
    assert re.search("expected texts in two or more languages.*got none; name the directions", said)
