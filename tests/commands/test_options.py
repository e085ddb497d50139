"""Options of every command: passed on, given once, and no output replaces an input or a part of a run."""

import os
from pathlib import Path
from typing import Any

import click
import pytest
from PIL import Image

from tests.commands.shell import commands, refused, untouched, weft
from tests.shared import TOYS, copied, shared_run
from weft import cli
from weft.cli import group
from weft.commands import predict, train
from weft.commands.options import as_words, given_one
from weft.commands.outputs import PARTS, OutputPath


def test_options_that_are_zero_are_passed_on() -> None:
    zeros: dict[str, Any] = {"length_penalty": 0.0, "coverage": 0.0, "no_repeat_ngram": 0, "seed": 0}
    words = as_words(predict.command, zeros)
    assert sorted(zip(words[::2], words[1::2], strict=True)) == [
        ("--coverage", "0.0"),
        ("--length-penalty", "0.0"),
        ("--no-repeat-ngram", "0"),
        ("--seed", "0"),
    ]


def test_options_that_were_not_given_are_left_out() -> None:
    given: dict[str, Any] = {"beam": None, "sample": False, "scores": True, "require": (), "prefix": ""}
    assert as_words(predict.command, given) == ["--scores", "--prefix", ""]
    assert as_words(train.command, {"plugins": ("one", "two")}) == ["--plugin", "one", "--plugin", "two"]


@pytest.mark.parametrize("value", [0, 0.0, "", True])
def test_a_given_option_may_be_zero_or_empty(value: Any) -> None:
    assert given_one(value)


@pytest.mark.parametrize("value", [None, False, ()])
def test_what_click_fills_in_was_not_given(value: Any) -> None:
    assert not given_one(value)


def test_an_option_of_one_value_is_refused_twice_in_every_command() -> None:
    seen = 0
    for names, command in commands(group):
        for option in command.params:
            if isinstance(option, click.Option) and not (option.multiple or option.is_flag):
                name = option.opts[0]
                said = refused(weft(*names, name, "1", f"{name}=2" if name.startswith("--") else name, "3"))
                assert f"{name}: expected one value, got 2; leave the others out" in said
                seen += 1
    assert seen > 150


def test_an_option_of_several_values_takes_all() -> None:
    assert "--plugin" not in refused(weft("predict", "none", "--plugin", "json", "--plugin", "csv"))
    assert weft("--help").code == 0


def test_the_help_of_predict_fits_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert len(weft("predict", "--help").lines) <= 40


READS = {
    *("--data", "--score", "--glossary", "--ensemble", "--document", "--future", "--library", "--space"),
    *("--api-keys", "--tls-cert", "--tls-key", "--sources", "--student", "--vocabulary", "--subwords"),
    *("--train", "--valid", "--test", "--images", "--file", "--start", "--vectors"),
}
FRESH = {
    "--run": "a new run, or one that is resumed",
    "--study": "an empty folder, or the same study",
    "--corpus": "an empty folder, or the same teacher",
    "data get --folder": "existing files in it are kept",
    "backtranslate --folder": "an empty folder, or the same texts and model",
}
"""Folders that are checked where they are made."""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return copied(shared_run("translate"), tmp_path)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "in.txt"
    path.write_text("alpha beta\n")
    return path


def kept(folder: Path, *words: object) -> str:
    """The sentence that a command is refused with, nothing in the folder being changed."""
    return untouched(folder, lambda: weft(*words))


def test_every_option_with_a_path_says_whether_it_is_written() -> None:
    unknown = [
        f"{' '.join(names)} {param.opts[0]}"
        for names, command in commands(cli.group)
        for param in command.params
        if isinstance(param, click.Option)
        and isinstance(param.type, click.Path)
        and not isinstance(param.type, OutputPath)
        and param.opts[0] not in READS
        and not {param.opts[0], f"{' '.join(names)} {param.opts[0]}"} & set(FRESH)
    ]
    assert not unknown


def test_every_file_of_a_run_is_a_part_of_it() -> None:
    from fnmatch import fnmatch

    for name in TOYS:
        for path in shared_run(name).iterdir():
            known = any(fnmatch(path.name.casefold(), part) for part in PARTS)
            assert known or path.name == "inspect.html", path


WRITES = {
    "answers": ("predict", "RUN", "IN", "--output"),
    "alignments": ("predict", "RUN", "IN", "--alignments"),
    "a document": ("predict", "RUN", "--document", "IN", "--output"),
    "outputs": ("evaluate", "RUN", "--score", "IN", "--output"),
    "scores": ("evaluate", "RUN", "--score", "IN", "--json"),
    "an n-gram model": ("ngram", "count", "IN", "--output"),
    "a page": ("inspect", "RUN", "IN", "--output"),
    "a log": ("serve", "RUN", "--api-keys", "IN", "--access-log"),
    "suggestions": ("serve", "RUN", "--glossary", "IN", "--suggestions"),
    "suggestions of one run": ("serve", "RUN", "--glossary", "run=IN", "--suggestions"),
}


def same_file(text: Path, how: str) -> Path:
    """Another name of a file."""
    other = text.with_name("other.txt")
    if how == "symlink":
        other.symlink_to(text)
    elif how == "hard link":
        os.link(text, other)
    elif how == "folder link":
        (text.parent / "also").symlink_to(text.parent)
        other = text.parent / "also" / text.name
    else:
        other = text.parent / "." / ".." / text.parent.name / text.name
    return other


@pytest.mark.parametrize("words", WRITES.values(), ids=WRITES)
def test_an_input_is_not_replaced(run: Path, text: Path, words: tuple[str, ...]) -> None:
    given = [word.replace("RUN", str(run)).replace("IN", str(text)) for word in words]
    said = kept(text.parent, *given, text)
    assert f"{text}: this command reads it; choose another name" in said


@pytest.mark.parametrize("how", ["symlink", "hard link", "folder link", "other spelling"])
def test_an_input_by_another_name_is_not_replaced(run: Path, text: Path, how: str) -> None:
    other = same_file(text, how)
    for option in ("--alignments", "--output"):
        said = kept(text.parent, "predict", run, text, option, other)
        assert "this command reads it; choose another name" in said


@pytest.mark.parametrize(
    "name",
    ["model.safetensors", "recipe.yaml", "tokenizer.json", "README.md", "checkpoints/new.txt", "run.json"],
)
def test_a_part_of_a_run_is_not_replaced(run: Path, text: Path, name: str) -> None:
    for words in (["predict", run, text, "--output"], ["ngram", "count", text, "--output"]):
        said = kept(text.parent, *words, run / name)
        assert f"{run / name}: is a part of the run {run}; choose another name" in said


def test_what_a_recipe_reads_is_not_replaced(run: Path) -> None:
    toy = shared_run("translate").parent / "toy"
    target = next(toy.glob("valid.*"))
    other = run.parent / "link.txt"
    os.symlink(target, other)
    for path in (target, other):
        said = refused(weft("evaluate", run, "--split", "valid", "--output", path))
        assert f"is named by the recipe of {run}; choose another name" in said


def test_two_outputs_have_two_names(run: Path, text: Path) -> None:
    both = text.with_name("both")
    words = ("evaluate", run, "--score", text, "--output", both, "--json", text.parent / "." / "both")
    assert "both: is written twice" in kept(text.parent, *words)
    device = ("--output", "/dev/null", "--json", "/dev/null")
    assert weft("evaluate", run, "--split", "valid", *device).code == 0


def test_a_folder_is_no_file_and_a_missing_folder_is_named(run: Path, text: Path) -> None:
    for option in ("--output", "--alignments"):
        said = kept(text.parent, "predict", run, text, option, text.parent)
        assert "expected a file, got a directory" in said
        said = kept(text.parent, "predict", run, text, option, text.parent / "no" / "x")
        assert "no such directory" in said


def test_pictures_are_not_drawn_over_the_pictures_that_are_read(tmp_path: Path) -> None:
    run, photos = shared_run("caption"), tmp_path / "photos"
    photos.mkdir()
    for number in (1, 2):
        Image.new("RGB", (12, 12), "red").save(photos / f"{number}.png")
    for words in ((photos,), (photos / "1.png",)):
        said = kept(tmp_path, "predict", run, *words, "--pictures", photos)
        assert f"{photos}: has files that are read" in said
    listed = tmp_path / "list.txt"
    listed.write_text("".join(f"{photos / name}\n" for name in ("1.png", "2.png")))
    answer = weft("predict", run, listed, "--pictures", photos)
    assert answer.code == 2 and f"{photos / '1.png'}: is a picture that Weft has not drawn" in answer.err
    assert sorted(path.name for path in photos.iterdir()) == ["1.png", "2.png"]
    said = kept(tmp_path, "predict", run, photos, "--output", photos / "1.png")
    assert "1.png: is a picture or recording that exists" in said


def test_what_a_run_may_hold_besides_is_written_and_replaced(run: Path, text: Path) -> None:
    for _ in range(2):
        assert weft("predict", run, text, "--output", run / "answers.txt").code == 0
        assert (
            weft("inspect", run, "alpha", "--output", run / "inspect.html", "--only", "alignment").code == 0
        )


def test_a_picture_of_scores_is_drawn_again(run: Path) -> None:
    for _ in range(2):
        assert weft("evaluate", run, "--split", "valid", "--plot", run / "scores.png").code == 0


def test_a_word_among_the_options_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, toy = shared_run("translate"), shared_run("translate").parent / "toy"
    monkeypatch.chdir(tmp_path)
    for _ in range(2):  # wer is a metric, and a name
        words = ("--split", "valid", "--metric", "wer", "--output", "wer")
        assert weft("evaluate", run, *words).code == 0
    assert len(Path("wer").read_text().splitlines()) == len((toy / "valid.xx").read_text().splitlines())


def test_files_that_another_program_keeps_beside_the_output_stay(run: Path, text: Path) -> None:
    parts = text.with_name("out.txt.parts")
    parts.mkdir()
    (parts / "mine").write_text("mine")
    said = kept(text.parent, "predict", run, text, "--output", text.with_name("out.txt"))
    assert "out.txt.parts: is not empty and has no answers" in said
