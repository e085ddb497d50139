"""An untrusted run: links out of it, pipes, deep and huge files; one error, and nothing is written.

Read next: test_data.py; ../train/test_headers.py, weights; ../commands/test_damage.py.
"""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import toys
from tests.attacks import bombs
from tests.attacks.jail import Jail, refused
from tests.commands import corpus, labelled
from tests.commands.shell import weft
from tests.fuzz.samples import GPT2, gpt2
from tests.slow import leading, slow
from tests.text.forged import forged, replace, split
from weft.text.imported import KEY

DEEP = "[" * 200_000
COMMANDS = ["predict", "evaluate", "show", "inspect", "train"]


def trained(folder: Path, make: Callable[[Path], Path]) -> Path:
    recipe = make(folder / "toy")
    ends = ["training.max_updates=1", "training.monitors=false", "training.tensorboard=false"]
    weft("train", recipe, "--run", folder / "run", *ends, code=0)
    return folder / "run"


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("translate"), corpus.make)


@pytest.fixture
def run(translator: Path, tmp_path: Path) -> Path:
    """A copy of a trained run, with its recipe next to it and a file outside both."""
    shutil.copytree(translator, tmp_path / "run")
    shutil.copytree(translator.parent / "toy", tmp_path / "toy")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "precious").write_text("mine\n")
    return tmp_path / "run"


def replaced(name: str, by: Callable[[Path], object]) -> Callable[[Path], None]:
    def harm(run: Path) -> None:
        if (run / name).is_dir():
            shutil.rmtree(run / name)
        (run / name).unlink(missing_ok=True)
        by(run / name)

    return harm


def link(path: Path) -> None:
    path.symlink_to(path.parents[1] / "outside" / "precious")


HARMS = {
    "a log that leads out": (replaced("metrics.jsonl", link), r"metrics\.jsonl: is a link out of the run"),
    "weights that lead out": (replaced("model.safetensors", link), r"is a link out of the run"),
    "a lock that leads out": (replaced(".lock", link), r"\.lock: is a link out of the run"),
    "a vocabulary that is /dev/zero": (
        replaced("tokenizer.source.json", lambda path: path.symlink_to("/dev/zero")),
        r"is a link out of the run \(/dev/zero\)",
    ),
    "checkpoints elsewhere": (
        replaced("checkpoints", lambda path: path.symlink_to("../outside")),
        r"checkpoints: is a link out of the run",
    ),
    "a pipe": (replaced("run.json", lambda path: os.mkfifo(path)), r"run\.json: .*a pipe or a device"),
    "a deep run.json": (
        replaced("run.json", lambda path: path.write_text(DEEP)),
        r"run\.json: .*expected object",
    ),
    "a huge run.json": (
        replaced("run.json", lambda path: bombs.sparse(path, 2**40)),
        r"run\.json: is missing or damaged \(it is larger than 64 MiB\)",
    ),
    "a huge recipe": (replaced("recipe.yaml", lambda path: bombs.sparse(path, 2**40)), r"recipe\.yaml"),
}


@pytest.mark.skipif(os.name == "nt", reason="links and pipes of POSIX")
@pytest.mark.parametrize(
    ("command", "name"),
    [
        *(("show", name) for name in HARMS),
        *((command, "a log that leads out") for command in COMMANDS if command != "show"),
        *slow(
            (command, name)
            for command in COMMANDS
            for name in HARMS
            if command != "show" and name != "a log that leads out"
        ),
    ],
)
def test_a_run_that_leads_elsewhere(jail: Jail, run: Path, command: str, name: str) -> None:
    harm, sentence = HARMS[name]
    if command == "train" and name in ("weights that lead out", "a huge recipe"):
        pytest.skip("train makes the one anew, and reads the other after the lock is taken")
    harm(run)
    more: list[object] = [run]
    if command == "train":
        more = [run.parent / "toy" / "toy.yaml", "--run", run, "training.max_updates=1"]
    if command == "inspect":
        more = [run, "alpha", "--output", run.parent / "page.html"]
    refused(jail, run.parent, sentence, command, *more)


FILES: dict[str, tuple[Callable[[Path], Path], str]] = {
    "tokenizer.json": (labelled.make_texts, r"tokenizer\.json"),
    "tokenizer.classes.json": (labelled.make_texts, r"tokenizer\.classes\.json"),
    "series.json": (toys.series, r"series\.json"),
    "lexicon": (labelled.make_sentences, r"json"),
}


@pytest.mark.parametrize("name", leading(FILES, 1))
def test_what_stands_beside_the_model(jail: Jail, tmp_path: Path, name: str) -> None:
    make, sentence = FILES[name]
    run = trained(tmp_path, make)
    path = run / name if name != "lexicon" else next(run.glob("tokenizer*.json"))
    for text in (DEEP, "[]", '{"__class__": "os.system", "words": 3}', '{"words": "x", "counts": "y"}', "\0"):
        path.write_text(text)
        refused(jail, tmp_path, sentence, "show", run)
    path.unlink()
    bombs.sparse(path, 2**40)
    refused(jail, tmp_path, rf"{sentence}|larger than", "show", run)


TOKENIZERS = {
    "a pattern that explodes": ({"pre_tokenizer": split("(a+)+$")}, "takes too long"),
    "a normaliser without end": ({"normalizer": replace("", "y" * 10**6)}, "characters into more than"),
    "a decoder without end": (
        {"decoder": {"type": "Sequence", "decoders": [replace("a", "aa")] * 40}},
        r"decoder may make a text 1\.1e\+12 times as long",
    ),
    "a table that makes the library panic": (
        {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAAAAA="}},
        "index out of bounds",
    ),
}


@pytest.mark.parametrize("name", TOKENIZERS)
def test_a_tokenizer_of_another_program(jail: Jail, run: Path, name: str) -> None:
    parts, sentence = TOKENIZERS[name]
    content = forged(**parts) | {KEY: {"order": [1, 3, 0, 2, 4, 5, 6], "framed": False}}
    (run / "tokenizer.source.json").write_text(json.dumps(content))
    (run.parent / "in.txt").write_text("a" * 300 + "b\n")
    refused(
        jail, run.parent, rf"tokenizer\.source\.json: .*{sentence}", "predict", run, run.parent / "in.txt"
    )


@pytest.mark.parametrize(
    "setting", ["max_extra: 100000000", "min_length: 1000000000", "max_ratio: .inf", "beam: 1000000000",
                "batch_rows: 1000000000", "max_extra: 1.0e+300"]
)  # fmt: skip
def test_a_recipe_that_searches_without_end(jail: Jail, run: Path, setting: str) -> None:
    recipe = run / "recipe.yaml"
    name = setting.partition(":")[0]
    lines = [line for line in recipe.read_text().split("\n") if not line.startswith(f"  {name}:")]
    recipe.write_text("\n".join(lines).replace("\ndecoding:\n", f"\ndecoding:\n  {setting}\n"))
    (run.parent / "in.txt").write_text("alpha beta\n")
    refused(jail, run.parent, rf"{name}: .*(at most|expected)", "predict", run, run.parent / "in.txt")


def test_weights_of_a_terabyte(jail: Jail, run: Path) -> None:
    path = run / "model.safetensors"
    bombs.sparse(path, 2**40, bombs.safetensors([2**38], 2**40))
    refused(jail, run.parent, r"more than fits into memory|is damaged", "show", run)


CONFIGS = {
    "a billion layers": {"n_layer": 10**9},
    "terabytes of embeddings": {"vocab_size": 10**9, "n_embd": 10**6},
    "sizes that fit one by one": {"n_embd": 16, "n_inner": 16},
    "a class by its name": {"model_type": "os.system"},
    "a text for a size": {"n_embd": "4"},
    "a table for a size": {"n_embd": {"a": 1}},
    "a negative size": {"n_positions": -7},
    "no heads": {"n_head": 0},
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_configuration_that_asks_for_everything(jail: Jail, tmp_path: Path, name: str) -> None:
    there = tmp_path / "checkpoint"
    there.mkdir()
    gpt2(there)
    (there / "config.json").write_text(json.dumps(GPT2 | CONFIGS[name]))
    (there / "tokenizer.json").write_text("{}")
    refused(jail, tmp_path, r"config\.json|model\.safetensors", "import", there, "--run", tmp_path / "run")
