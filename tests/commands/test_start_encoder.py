"""`training.start` names a run of another task: its encoder and vocabulary become those of the model."""

import re
import shutil
from pathlib import Path

import pytest
import torch

from tests import toys
from tests.commands import corpus, labelled, prose
from tests.commands.exporting import exported, run_program
from tests.commands.shell import refused, weft
from weft.config import dump, read_recipe
from weft.config.text import parse
from weft.run import open_run
from weft.store import weights
from weft.train.checkpoints import Checkpoints

FEW = ("training.max_updates=2", "training.validate_every=2", "training.validate_start=true")
GPT = (
    "model.decoder={use: transformer, size: 8, num_layers: 2, num_heads: 2, dropout: 0.1}",
    "model.embedding={size: 12}",
)


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A masked model, two language models and a translator."""
    folder = tmp_path_factory.mktemp("others")
    made = {
        "masked": (toys.gaps(folder / "a"), "model.encoder.positions=learned", "model.encoder.max_length=20"),
        "gpt": (prose.make(folder / "b", batches="windows"), *GPT),
        "lstm": (prose.make(folder / "c"),),
        "translator": (corpus.make(folder / "d"),),
    }
    for name, (recipe, *changes) in made.items():
        short = ("training.max_updates=3", "training.validate_every=3")
        weft("train", recipe, "--run", folder / name, *changes, *short, code=0)
    return {name: folder / name for name in made}


def texts(folder: Path) -> Path:
    """A recipe of a classifier without an encoder of its own."""
    return without_encoder(labelled.make_texts(folder))


def sentences(folder: Path) -> Path:
    return without_encoder(labelled.make_sentences(folder))


def without_encoder(recipe: Path) -> Path:
    plain = parse(recipe.read_text(), "").plain()
    del plain["model"]
    plain["data"].pop("vocabulary", None)
    recipe.write_text(dump(plain))
    return recipe


@pytest.mark.parametrize("make", [texts, sentences])
@pytest.mark.parametrize("name", ["masked", "gpt", "lstm", "translator"])
def test_one_line_gives_the_encoder_and_the_vocabulary(others, name, make, tmp_path: Path) -> None:
    recipe, run = make(tmp_path / "toy"), tmp_path / "run"
    weft("train", recipe, "--run", run, f"training.start={others[name]}", *FEW, code=0)
    begun = Checkpoints(run, print).load(0).weights
    theirs = weights.load(others[name] / "model.safetensors")
    part = {"gpt": "decoder.", "lstm": "decoder.", "masked": "predictor.encoder."}.get(name, "encoder.")
    inner = "encoder.decoder." if part == "decoder." else "encoder."
    inner = f"embed.{inner}" if make is sentences else inner
    taken = {key.removeprefix(part): one for key, one in theirs.items() if key.startswith(part)}
    assert taken and all(torch.equal(begun[inner + key], one) for key, one in taken.items())
    assert {key for key in begun if key.startswith(inner)} == {inner + key for key in taken}
    vocabulary = next(path for path in sorted(others[name].glob("tokenizer*.json")))
    assert (run / "tokenizer.json").read_bytes() == vocabulary.read_bytes()
    said = weft("predict", run, stdin=b"alpha beta gamma\n")
    assert said.code == 0 and said.out.strip(), said.err


def test_a_text_is_read_between_the_symbols_of_its_run(others: dict[str, Path], tmp_path: Path) -> None:
    for name, before, after in (("masked", [2], [3]), ("gpt", [3], []), ("translator", [], [])):
        run = tmp_path / name
        start = f"training.start={others[name]}"
        assert weft("train", texts(tmp_path / f"toy-{name}"), "--run", run, start, *FEW).code == 0
        reader = open_run(run, device="cpu").pipeline.reader
        (row,) = reader.encode(["a b c " * 20])
        assert row[: len(before)] == before and row[len(row) - len(after) :] == after
        if name == "masked":
            assert len(row) == 20  # its positions


@pytest.mark.parametrize("make", [texts, sentences])
def test_it_resumes_bit_identically_without_the_other_run(others, make, tmp_path: Path) -> None:
    recipe, found = make(tmp_path / "toy"), []
    for name in ("whole", "broken"):
        start = tmp_path / f"start-{name}"
        shutil.copytree(others["masked"], start)
        changes = (f"training.start={start}", "training.validate_every=3")
        run = tmp_path / name
        if name == "broken":
            assert weft("train", recipe, "--run", run, *changes, "training.max_updates=6").code == 0
            shutil.rmtree(start)
        weft("train", recipe, "--run", run, *changes, "training.max_updates=9", code=0)
        found.append((run / "model.safetensors").read_bytes())
    assert found[0] == found[1]
    assert weft("predict", tmp_path / "broken", stdin=b"alpha beta\n").code == 0
    own = tmp_path / "broken" / "recipe.yaml"
    assert weft("train", own, "--run", tmp_path / "broken", "training.max_updates=10").code == 0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["model.encoder={use: transformer, size: 24}"], ["model.encoder", "size: 16", "size: 24", "leave"]),
        (["model.encoder=recurrent"], ["model.encoder", "recurrent", "transformer", "leave"]),
        (["model.embedding.size=7"], ["model.embedding", "16", "7", "leave"]),
        (["model.bag={ngrams: 1}"], ["model.bag", "leave model.bag out"]),
        (["data.vocabulary.kind=word"], ["data.vocabulary", "leave data.vocabulary out"]),
    ],
)
def test_another_encoder_in_the_recipe_is_refused(others, tmp_path, changes, words) -> None:
    recipe = texts(tmp_path / "toy")
    said = refused(
        weft("train", recipe, "--run", tmp_path / "run", f"training.start={others['masked']}", *changes)
    )
    assert all(word in said for word in words), said
    assert not (tmp_path / "run").exists()


def test_dropout_of_the_encoder_may_differ(others: dict[str, Path], tmp_path: Path) -> None:
    run, start = tmp_path / "run", f"training.start={others['masked']}"
    given = (start, "model.encoder={dropout: 0.4}", *FEW)
    assert weft("train", texts(tmp_path / "toy"), "--run", run, *given).code == 0
    encoder = read_recipe(run / "recipe.yaml").plain()["model"]["encoder"]
    assert (encoder["dropout"], encoder["size"]) == (0.4, 16)


def test_a_run_without_an_encoder_for_others_is_refused(tmp_path: Path) -> None:
    vectors = toys.words(tmp_path / "vectors")
    assert weft("train", vectors, "--run", tmp_path / "w", "training.max_updates=2").code == 0
    said = refused(
        weft("train", texts(tmp_path / "toy"), "--run", tmp_path / "r", f"training.start={tmp_path / 'w'}")
    )
    assert "no encoder for others" in said, said


@pytest.mark.parametrize("task", ["classify", "tag"])
def test_init_writes_a_recipe_that_starts_with_a_run(others, task: str, tmp_path: Path) -> None:
    make = labelled.make_texts if task == "classify" else labelled.make_sentences
    make(tmp_path / "toy")
    file = tmp_path / "toy" / ("train.txt" if task == "classify" else "train.conllu")
    recipe = tmp_path / "my.yaml"
    answer = weft("init", task, file, "--start", others["masked"], "--output", recipe)
    assert answer.code == 0 and "tried" not in answer.out, answer.err
    answer = weft("train", recipe, "--run", tmp_path / "run", *FEW, "training.device=cpu", code=0)
    said = refused(weft("init", task, file, "--start", others["masked"], "--model", "linear"))
    assert "--model linear" in said and "--start" in said


LORA = "training.lora={rank: 3, alpha: 6, targets: [query, network]}"


def test_lora_trains_little_and_its_run_is_one_like_any_other(
    others: dict[str, Path], tmp_path: Path
) -> None:
    recipe, run = texts(tmp_path / "toy"), tmp_path / "run"
    given = (f"training.start={others['masked']}", LORA, "training.validate_every=3")
    assert weft("train", recipe, "--run", run, *given, "training.max_updates=6").code == 0
    answer = weft("train", recipe, "--run", run, *given, "training.max_updates=9", code=0)
    whole = tmp_path / "whole"
    answer = weft("train", recipe, "--run", whole, *given, "training.max_updates=9")
    assert re.search(r"training starts: [\d,]+ of [\d,]+ parameters", answer.err), answer.err
    stored = [weights.unpack((path / "model.safetensors").read_bytes()) for path in (run, whole)]
    assert stored[0].keys() == stored[1].keys()
    assert all(torch.equal(stored[0][name], stored[1][name]) for name in stored[0])
    theirs = weights.load(others["masked"] / "model.safetensors")
    begin = Checkpoints(run, print).newest().weights
    for name, one in begin.items():
        plain = "predictor." + name.replace(".parametrizations.weight.original", ".weight")
        if name.startswith("encoder.") and not re.search(r"\.0\.(a|b|scale)$", name):
            assert torch.equal(one, theirs[plain]), name
    assert any(one.any() for name, one in begin.items() if name.endswith(".0.b"))
    opened = open_run(run, device="cpu").model.state_dict()
    assert not any("parametrizations" in name for name in opened)
    for change, word in (("training.lora=null", "lora"), (LORA.replace("3", "4"), "lora")):
        said = refused(weft("train", recipe, "--run", run, *given, change, "training.max_updates=12"))
        assert word in said and "a run keeps its seed, optimiser and lora" in said
    again = (
        f"training.start={run}",
        "training.max_updates=1",
        "training.lora=null",
        "training.start_parts=[]",
    )
    weft("train", run / "recipe.yaml", "--run", tmp_path / "next", *again, code=0)
    first = Checkpoints(tmp_path / "next", print).newest()
    assert first is not None and not any("parametrizations" in name for name in first.weights)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["masked", "gpt"])
def test_an_exported_program_answers_like_the_run(others, name: str, tmp_path: Path) -> None:
    run, given = tmp_path / "run", (f"training.start={others[name]}", LORA, *FEW)
    assert weft("train", texts(tmp_path / "toy"), "--run", run, *given).code == 0
    exported(run, tmp_path / "out")
    lines = "a good b\nwell bad c " + "so " * 30 + "\n"
    ours = weft("predict", run, "--scores", stdin=lines.encode()).out.rstrip("\n").split("\n")
    theirs = run_program(tmp_path / "out", lines, "--scores")
    for own, other in zip(ours, theirs, strict=True):
        assert own.split("\t")[0] == other.split("\t")[0]
        probs = [[float(cell.partition("=")[2]) for cell in line.split("\t")[1:]] for line in (own, other)]
        assert probs[0] == pytest.approx(probs[1], abs=1e-4)
