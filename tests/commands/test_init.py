"""`weft init` writes a commented recipe for the user's files, and it trains."""

import random
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

import weft.tasks as tasks
from tests.commands.corpus import WORDS, write
from tests.commands.shell import refused, untouched, weft
from tests.slow import leading
from weft import rooms
from weft.config import read_recipe
from weft.errors import ConfigError
from weft.run.training import check_recipe
from weft.tasks.init import Init, filled, only
from weft.tasks.task import Task
from weft.tasks.translate.init import DEMO_PIECES, _quick

INITS = {name: rooms.find(tasks, Init, name) for name in rooms.folders(tasks, Init)}


def pairs(train: Path, *options: object) -> tuple[object, ...]:
    return "init", "translate", "--train", train, "--source", "xx", "--target", "yy", *options


SMALL = "model.encoder.sizes=[8]", "model.decoder.sizes=[8]", "model.embedding.size=8"


def test_its_recipe_trains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for seed, (name, rows) in enumerate({"train": 97, "dev": 7, "test": 5}.items()):
        write(tmp_path, name, rows, seed)
    answer = weft(*pairs(Path("train")), code=0)
    text = Path("xx-yy.yaml").read_text()
    assert text in answer.out
    said = answer.out.splitlines()
    at = said.index("recipe: xx-yy.yaml")
    assert said[at + 1] == "next:"
    assert said[at + 2].endswith("weft data check train.xx train.yy")
    assert said[at + 3].endswith("weft train xx-yy.yaml")
    assert "97 training pairs" in text and "valid: dev" in text and "test: test" in text
    assert text.count(" # ") > 5
    weft("train", "xx-yy.yaml", *SMALL, "training.max_updates=1", code=0)
    assert weft("predict", "runs/xx-yy", stdin=b"alpha\n").code == 0


def test_the_recipe_says_which_model_other_programs_run(tmp_path: Path) -> None:
    """Before any training: they take the model of the two lines in its comment, and refuse its own."""
    from tests.export.runs import made
    from weft.export.network import network
    from weft.run import open_run

    for seed, (name, rows) in enumerate({"train": 97, "dev": 7}.items()):
        write(tmp_path, name, rows, seed)
    answer = weft(*pairs(tmp_path / "train"), "--output", tmp_path / "x.yaml")
    assert answer.code == 0 and "Argos Translate\n" in answer.out
    lines = (tmp_path / "x.yaml").read_text().splitlines()
    other = [line.replace("#   ", "") for line in lines if line.startswith("  #   ")]
    kept = [line for line in lines if not line.startswith(("  encoder:", "  decoder:"))]
    place = next(n for n, line in enumerate(kept) if line.startswith("model:"))
    texts = {"own": lines, "other": [*kept[: place + 1], *other, *kept[place + 1 :]]}
    for name, text in texts.items():
        (tmp_path / f"{name}.yaml").write_text("\n".join(text) + "\n")
        plain: Any = check_recipe(read_recipe(tmp_path / f"{name}.yaml")).plain
        plain["data"]["vocabulary"]["size"] = 211
        opened = open_run(made(tmp_path / name, plain, 0.0), device="cpu")
        for program in ("argos", "ctranslate2", "huggingface"):
            if name == "other":
                assert network(opened, program).encoder is not None
            else:
                with pytest.raises(ConfigError, match=f"--to {program} expects a Transformer"):
                    network(opened, program)


@pytest.mark.parametrize(
    ("option", "said"), [("--split-off", ""), ("--hold-out", "--hold-out is now --split-off\n")]
)
def test_pairs_are_split_off_into_files(tmp_path: Path, option: str, said: str) -> None:
    write(tmp_path, "train", 60, 1)
    recipe = tmp_path / "my.yaml"
    answer = weft(*pairs(tmp_path / "train", "--output", recipe, option, 6))
    assert answer.code == 0 and answer.err == said
    assert (tmp_path / "train.held.xx").read_text().count("\n") == 6
    assert (tmp_path / "train.rest.yy").read_text().count("\n") == 54
    assert weft("train", recipe, "--run", tmp_path / "run", *SMALL, "training.max_updates=1").code == 0


@pytest.mark.parametrize("count", [4, 6])
def test_texts_in_turn_are_the_two_sides_of_training_validation_and_test(tmp_path: Path, count: int) -> None:
    for name in ("train", "valid", "test"):
        write(tmp_path, name, 60, 1)
    files = [tmp_path / f"{name}.{side}" for name in ("train", "valid", "test") for side in ("xx", "yy")]
    recipe = tmp_path / "my.yaml"
    weft("init", "translate", *files[:count], "--source", "xx", "--target", "yy", "--output", recipe, code=0)
    data = read_recipe(recipe).section("data").plain()
    named = {name: f"{tmp_path / name}.xx,{tmp_path / name}.yy" for name in ("train", "valid", "test")}
    assert {name: data[name] for name in named} == named  # the test files are found beside them


@pytest.mark.parametrize("rows", leading([30, 3, 300]))
@pytest.mark.parametrize("script", ["abc", "一二三四五六七八九十百千"])
def test_the_vocabulary_it_asks_for_can_be_had(tmp_path: Path, rows: int, script: str) -> None:
    chance = random.Random(rows)
    for side in ("xx", "yy"):
        words = ["".join(chance.choices(script, k=chance.randint(1, 5))) for _ in range(6 * rows)]
        lines = [" ".join(words[at : at + 6]) + "." for at in range(0, len(words), 6)]
        for name in ("train", "valid"):
            (tmp_path / f"{name}.{side}").write_text("".join(f"{line}\n" for line in lines))
    assert weft(*pairs(tmp_path / "train", "--output", tmp_path / "my.yaml")).code == 0
    (quick,) = re.findall("#   (weft train help-demo .*)", (tmp_path / "my.yaml").read_text())
    for number, command in enumerate([["train", tmp_path / "my.yaml"], shlex.split(quick)[1:]]):
        weft(*command, "--run", tmp_path / f"run{number}", *SMALL, "training.max_updates=1", code=0)


def test_the_smaller_model_has_the_vocabulary_of_its_recipe_where_the_pairs_give_it() -> None:
    assert read_recipe("help-demo").plain()["data"]["vocabulary"]["size"] == DEMO_PIECES
    command = _quick(Path("my.tsv"), None, "en", "es", 20, DEMO_PIECES)
    assert command.endswith(" data.hold_out=20")


@pytest.mark.parametrize("folder", ["a: b #c", "ein Ordner", "- 'x'", "путь", "no"])
def test_paths_with_any_name_are_written_so_that_yaml_reads_them(tmp_path: Path, folder: str) -> None:
    place = tmp_path / folder
    place.mkdir()
    for name in ("train", "valid"):
        write(place, name, 30, 1)
    assert weft(*pairs(place / "train", "--output", tmp_path / "my.yaml")).code == 0
    data = read_recipe(tmp_path / "my.yaml").section("data").plain()
    assert (data["train"], data["valid"]) == (str(place / "train"), str(place / "valid"))
    assert (data["source"], data["target"]) == ("xx", "yy")


def test_a_table_is_taken_too(tmp_path: Path) -> None:
    rows = "".join(f"{one}\t{other}\n" for one, other in [("no", "yes"), *WORDS.items()])
    for name in ("train", "valid"):
        (tmp_path / f"{name}.tsv").write_text(rows)
    table = tmp_path / "train.tsv"
    options = "--train", table, "--source", "no", "--target", "yes", "--output", tmp_path / "my.yaml"
    answer = weft("init", "translate", *options, code=0)
    assert f"weft data check {table}\n" in answer.out
    data = read_recipe(tmp_path / "my.yaml").section("data").plain()
    assert (data["source"], data["train"], data["valid"]) == ("no", str(table), str(tmp_path / "valid.tsv"))


def test_what_a_translator_has_to_beat_is_said(tmp_path: Path) -> None:
    lines = [f"open file {number} of {number % 7}" for number in range(60)]
    rows = [(line, line.replace("open", "abra").replace("of", "de")) for line in lines]
    for name, some in (("train", rows), ("valid", rows[:9])):
        (tmp_path / f"{name}.tsv").write_text("".join(f"{en}\t{es}\n" for en, es in [("en", "es"), *some]))
    said = weft("init", "translate", tmp_path / "train.tsv", "--output", tmp_path / "my.yaml", code=0).out
    assert "nearest of 60 training pairs has chrF2 100.0 on 9 pairs kept for validation" in said
    assert "60 training pairs are few" in said
    (tmp_path / "valid.tsv").unlink()
    said = weft("init", "translate", tmp_path / "train.tsv", "--output", tmp_path / "other.yaml", code=0).out
    held = re.search(r"nearest of (\d+) training pairs has chrF2 (\d+)\.\d on (\d+) pairs? kept", said)
    assert held is not None
    assert int(held[1]) + int(held[3]) == 60
    assert 50 < int(held[2]) < 100


def test_two_files_of_any_names_are_a_training_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, rows in (("train", 60), ("valid", 7)):
        write(tmp_path, name, rows, rows)
        (tmp_path / f"{name}.xx").rename(f"english {name}.txt")
        (tmp_path / f"{name}.yy").rename(f"numbers-{name}.text")
    files = "english train.txt", "numbers-train.text"
    answer = weft("init", "translate", *files, code=0)
    assert "data check 'english train.txt' numbers-train.text\n" in answer.out
    data = read_recipe(Path("english-numbers.yaml")).section("data").plain()
    assert (data["source"], data["target"]) == ("english", "numbers")
    assert data["valid"] == "english valid.txt,numbers-valid.text"
    weft("train", "english-numbers.yaml", "--run", "run", *SMALL, "training.max_updates=1", code=0)
    moved = [f"data.{key}={data[key]}" for key in ("train", "valid")]
    monkeypatch.chdir("/")
    weft("train", tmp_path / "english-numbers.yaml", "--run", tmp_path / "other", *SMALL, *moved,
                 f"data.folder={tmp_path}", "training.max_updates=1", code=0)  # fmt: skip
    both = f"{tmp_path / files[0]},{tmp_path / files[1]}"
    assert "60 pairs" in weft("evaluate", tmp_path / "run", "--data", both, "--beam", 1).out
    weft("init", "translate", "--train", both, "--source", "a", "--target", "b", "--split-off", 5,
                "-o", tmp_path / "x.yaml", code=0)  # fmt: skip
    assert (tmp_path / "a-b.held.b").read_text().count("\n") == 5


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--output", "train.xx"], "train.xx: already exists; remove it or choose another name"),
        (["--output", "no/my.yaml"], "no/my.yaml: no such directory no"),
        (["--split-off", "7"], "train: cannot hold out 7 of 60 pairs"),
        (["--split-off", "0"], "train: cannot hold out 0 of 60 pairs"),
        (
            ["--split-off", "6", "--valid", "train"],
            "--split-off and --valid: expected one of them, got both",
        ),
        (["--split-off", "6", "--test", "tset"], "tset.xx: no such file"),
    ],
)
def test_what_it_refuses_it_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "train", 60, 1)
    assert sentence in untouched(tmp_path, lambda: weft(*pairs(Path("train"), *options)))


def test_two_languages_are_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "train", 60, 1)
    options = ("--train", "train", "--source", "xx", "--target", "xx")
    said = untouched(tmp_path, lambda: weft("init", "translate", *options))
    assert "--source and --target are both 'xx'; name two languages" in said


def test_missing_files_are_named(tmp_path: Path) -> None:
    assert "train.xx: no such file" in refused(weft(*pairs(tmp_path / "train", "--output", tmp_path / "x")))


def test_one_file_in_place_of_the_prefix_is_told(tmp_path: Path) -> None:
    write(tmp_path, "train", 60, 1)
    said = refused(weft(*pairs(tmp_path / "train.xx", "--output", tmp_path / "x")))
    assert "train.xx: one file of a pair was given; name the part before the language" in said


def test_every_task_with_an_init_file_has_its_command() -> None:
    folders = Path(str(tasks.__file__)).parent
    assert sorted(INITS) == sorted(path.parent.name for path in folders.glob("*/init.py"))
    assert set(INITS) <= set(rooms.folders(tasks, Task))
    listed = weft("init", "--help").out
    for name, kind in INITS.items():
        assert name in listed and kind().about in listed


@pytest.mark.parametrize("name", INITS)
def test_the_command_of_a_task_has_the_options_that_its_file_declares(name: str) -> None:
    kind = INITS[name]
    helped = weft("init", name, "--help", code=0)
    shown = " ".join(helped.out.split())
    assert "--output" in shown and kind().about in shown
    for option in kind.options:
        assert f"--{option.name} " in shown
        assert option.help in shown
    needed = [option.name for option in kind.options if option.required]
    if kind().files:
        said = refused(weft("init", name))
        assert f"--{needed[0]}" in said if needed else "expected" in said


@pytest.mark.parametrize("name", INITS)
def test_files_need_no_option(name: str) -> None:
    """Their names say what they are for, or their order."""
    kind = INITS[name]()
    names = kind.files
    given: dict[str, object] = dict.fromkeys(option.name.replace("-", "_") for option in kind.options)
    files = [Path(f"{name if kind.several else number}.tsv") for number, name in enumerate(names)]
    if not names:  # generated
        return
    assert [kind.with_files(given, files)[one] for one in names] == files
    assert kind.with_files({**given, names[0]: files[0]}, ())[names[0]] == files[0]
    with pytest.raises(ConfigError, match="at most"):
        kind.with_files(given, [*files, Path("more.tsv")])
    if kind.several:
        several = kind.with_files(given, [Path("a.tsv"), Path("b.tsv")])
        assert (several[names[0]], several[names[1]]) == ([Path("a.tsv"), Path("b.tsv")], None)
    with pytest.raises(ConfigError, match="expected one of them"):
        kind.with_files({**given, names[0]: files[0]}, files[:1])


def test_two_texts_without_columns_are_texts_and_their_summaries(tmp_path: Path) -> None:
    for name, text in {"texts": "one two three four five", "summaries": "one two"}.items():
        for part in ("train", "valid"):
            (tmp_path / f"{name}.{part}").write_text(f"{text}\n" * 20)
    files = tmp_path / "texts.train", tmp_path / "summaries.train"
    weft("init", "summarise", *files, "--output", tmp_path / "my.yaml", code=0)
    data = read_recipe(tmp_path / "my.yaml").section("data").plain()
    assert data["train"] == ",".join(map(str, files))
    assert data["valid"] == data["train"].replace(".train", ".valid")


def test_a_template_leaves_out_lines_without_a_value_and_quotes_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "my.yaml").write_text(
        "train: $train\nvalid: $valid\nwhole: 1$whole\nprice: $$5\n"
    )
    monkeypatch.setattr("weft.tasks.init.recipes_folder", lambda: tmp_path)
    values = {"train": Path("a: #b"), "valid": None, "whole": only(True)}
    assert filled("my", values) == 'train: "a: #b"\nwhole: 1\nprice: $5\n'
    assert "whole" not in filled("my", {**values, "whole": only(0)})
    with pytest.raises(KeyError):
        filled("my", {"train": 1})
