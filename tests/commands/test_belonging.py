"""Weights that are no numbers, and files of a run that do not belong together: noticed where they meet."""

import hashlib
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

import weft as library
from tests import toys
from tests.commands import corpus, labelled
from tests.commands.shell import refused, untouched, weft
from tests.shared import TOYS, copied, quick_first, shared_run
from weft.commands import bulk
from weft.errors import CheckpointError
from weft.run.loading import check_described, model_description
from weft.store import weights

FEW = ("training.max_updates=4", "training.validate_every=2")


def poisoned(path: Path, value: float) -> str:
    """Put one number that is not finite into the middle of a file of weights; the name of its tensor."""
    found, fits = weights.read(path)
    name = max(found, key=lambda one: found[one].numel())
    flat = found[name].view(-1)
    flat[len(flat) // 2] = value
    path.write_bytes(weights.pack(found, update="4", fits={"kept": fits.kept, "recipe": fits.recipe}))
    return name


@pytest.mark.parametrize(
    ("task", "value"), [("classify", np.nan), ("translate", np.inf), ("forecast", -np.inf)]
)
def test_a_model_with_a_number_that_is_not_finite_answers_nothing(
    task: str, value: float, tmp_path: Path
) -> None:
    run = copied(shared_run(task), tmp_path)
    name = poisoned(run / "model.safetensors", value)
    for command in ("predict", "evaluate"):
        said = untouched(run, lambda command=command: weft(command, run, stdin=b"a fine film\n"))
        assert re.search(
            rf"model\.safetensors: 1 of [\d,]+ numbers of {re.escape(name)} are not finite", said
        )
    with pytest.raises(CheckpointError, match="not finite"):
        library.load(run)


def test_only_finite_numbers_pass_the_check_of_weights() -> None:
    small = {"w": torch.tensor([1e38, -1e38, 0.0]), "n": torch.tensor([3]), "none": torch.empty(0)}
    weights.check_finite(small, "here")  # their sum would overflow
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
        for value in (np.nan, np.inf, -np.inf):
            for place in range(3):
                wrong = torch.zeros(3, dtype=dtype)
                wrong[place] = value
                with pytest.raises(CheckpointError, match="here: 1 of 3 numbers of v are not finite"):
                    weights.check_finite({**small, "v": wrong}, "here")


@pytest.fixture
def run(toy: Path, tmp_path: Path) -> Path:
    """A run with checkpoints of updates 2 and 4."""
    assert weft("train", toy, "--run", tmp_path / "run", *FEW).code == 0
    return tmp_path / "run"


def test_a_training_resumes_from_the_newest_checkpoint_with_finite_weights(toy: Path, run: Path) -> None:
    step = run / "checkpoints" / "step-00000004"
    poisoned(step / "model.safetensors", np.nan)
    data = (step / "model.safetensors").read_bytes()
    manifest = json.loads((step / "manifest.json").read_bytes())
    manifest["model.safetensors"] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (step / "manifest.json").write_text(json.dumps(manifest))
    answer = weft("train", toy, "--run", run, "training.max_updates=6")
    assert answer.code == 0 and "resumes after update 2" in answer.err
    assert re.search(r"step-00000004: .* are not finite .*; trying the one before it", answer.err)


@pytest.fixture
def other(run: Path, tmp_path: Path) -> Path:
    """A run of the same shapes from other words."""
    folder = tmp_path / "other"
    recipe = corpus.make(folder)
    for file in folder.glob("*.xx"):
        lines = file.read_text().splitlines()
        file.write_text("".join(f"{' '.join(word[::-1] for word in line.split())}\n" for line in lines))
    assert weft("train", recipe, "--run", folder / "run", *FEW).code == 0
    return folder / "run"


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.source.json"])
def test_weights_and_vocabularies_of_two_runs_are_refused(
    name: str, run: Path, other: Path, toy: Path, tmp_path: Path
) -> None:
    shutil.copy(other / name, run / name)
    sentence = f"model.safetensors: was not trained with {run / 'tokenizer.source.json'}: one of the two"
    for command in (["predict", run], ["predict", other, "--ensemble", run], ["evaluate", run]):
        assert sentence in untouched(run, lambda command=command: weft(*command, stdin=b"alpha\n"))
    new = ["train", toy, "--run", tmp_path / "new", f"training.start={run}", *FEW]
    assert sentence in refused(weft(*new)) and not (tmp_path / "new").exists()
    if name != "model.safetensors":
        said = refused(weft("train", toy, "--run", run, "training.max_updates=6"))
        assert "step-00000004: was not trained with" in said


def test_a_run_of_an_earlier_version_has_no_digests_and_opens(run: Path, toy: Path) -> None:
    for path in run.rglob("model.safetensors"):
        path.write_bytes(weights.pack(weights.load(path), update="4"))
    (run / "data.json").unlink()
    answer = weft("predict", run, stdin=b"alpha\n")
    assert (answer.code, answer.err) == (0, "")
    (run / "checkpoints" / "step-00000004" / "manifest.json").unlink()
    shutil.rmtree(run / "checkpoints")
    assert weft("train", toy, "--run", run, *FEW).code == 0 and (run / "data.json").exists()


def test_a_recipe_of_another_model_is_refused_where_no_shape_shows_it() -> None:
    then = {"task": "translate", "model": {"heads": 4, "dropout": 0.1, "use": "lstm", "vectors": "a/b.txt"}}
    for key, value in (("dropout", 0.0), ("vectors", "c/d.txt"), ("added_later", 3)):
        check_described({**then, "model": {**then["model"], key: value}}, then, "file", Path("run"))
    for key, value in (("heads", 8), ("use", "gru")):
        with pytest.raises(CheckpointError, match=f"was trained with model.{key}: .*recipe.yaml says"):
            check_described({**then, "model": {**then["model"], key: value}}, then, "file", Path("run"))
    with pytest.raises(CheckpointError, match="was trained with task"):
        check_described({**then, "task": "summarise"}, then, "file", Path("run"))
    check_described(then, {}, "file", Path("run"))
    assert model_description({**then, "data": {}}) == {
        "task": "translate",
        "model": {"heads": 4, "dropout": 0.1, "use": "lstm"},
    }


def swap_labels(path: Path) -> None:
    text = path.read_text()
    path.write_text(text.replace("good", "?").replace("bad", "good").replace("?", "bad"))


def append(path: Path) -> None:
    with path.open("a") as file:
        file.write(path.read_text().splitlines(keepends=True)[0])


@pytest.mark.parametrize(("change", "name"), [(swap_labels, "train.txt"), (append, "valid.tsv")])
def test_a_training_whose_data_has_changed_is_not_resumed(change: object, name: str, tmp_path: Path) -> None:
    recipe, run = labelled.make_texts(tmp_path / "toy"), tmp_path / "run"
    assert weft("train", recipe, "--run", run, *FEW).code == 0
    again = ("train", recipe, "--run", run, "training.max_updates=6")
    path = tmp_path / "toy" / name
    change(path)  # type: ignore[operator]
    said = refused(weft(*again))
    assert f"{path}: has changed since the training of {run} began" in said
    started = re.search(r"(train \S+ --run \S+ training\.start=\S+);", said)
    assert started and said.endswith(f"; to resume this one all the same, delete {run / 'data.json'}")
    assert weft(*started[1].split(), "training.max_updates=2").code == 0
    (run / "data.json").unlink()
    answer = weft(*again)
    assert answer.code == 0 or "batches in epoch" in refused(answer)


@pytest.mark.parametrize("task", quick_first({name: name for name in TOYS if name != "memory"}, 3))
def test_a_run_has_the_digest_of_every_file_that_it_was_trained_on(task: str) -> None:
    run = shared_run(task)
    digests = json.loads((run / "data.json").read_bytes())["data"]
    for path, digest in digests.items():
        assert hashlib.sha256(Path(path).read_bytes()).hexdigest() == digest, path
    kept = [path for path in (run.parent / "toy").rglob("*") if path.is_file() and path.suffix != ".yaml"]
    unused = ("test", "pairs.tsv")  # read when the run is scored
    if task == "several labels":
        unused = (*unused, "train.txt", "valid.tsv")  # of the recipe with one label that stands beside it
    assert {str(path) for path in kept if not path.name.startswith(unused)} == set(digests)


def test_a_training_whose_pictures_have_other_labels_is_not_resumed(tmp_path: Path) -> None:
    recipe, run = toys.pictures(tmp_path / "toy"), tmp_path / "run"
    words = ("train", recipe, "--run", run, f"data.folder={tmp_path / 'toy'}", "training.validate_every=2")
    assert weft(*words).code == 0
    first, second, *_ = sorted((tmp_path / "toy" / "train").iterdir())
    assert not {one.name for one in first.iterdir()} & {one.name for one in second.iterdir()}
    first.rename(tmp_path / "between")
    second.rename(first)
    (tmp_path / "between").rename(second)
    assert f"{first}/" in refused(weft(*words, "training.max_updates=5"))
    second.rename(tmp_path / "between")
    first.rename(second)
    (tmp_path / "between").rename(first)
    moved = (tmp_path / "toy").rename(tmp_path / "elsewhere")
    again = ("train", moved / recipe.name, *words[2:4], f"data.folder={moved}", "training.max_updates=5")
    assert weft(*again).code == 0


def test_a_finished_training_whose_data_has_grown_says_how_to_train_on_it(toy: Path, run: Path) -> None:
    append(toy.parent / "train.xx")
    append(toy.parent / "train.yy")
    said = refused(weft("train", toy, "--run", run, *FEW))
    assert "train.xx: has changed since" in said and f"training.start={run}" in said
    other = refused(weft("train", toy, "--run", run, *FEW, f"data.train={toy.parent / 'valid'}"))
    assert f"training.start={run}" in other and f"--run {run}-2" in other


def test_answers_of_two_glossaries_models_or_texts_are_not_mixed(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "CHUNK", 7)
    lines, large = [f"{word} alpha" for word in [*corpus.WORDS] * 3][:23], tmp_path / "large.txt"
    large.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    run, out, terms = shutil.copytree(trained, tmp_path / "run"), tmp_path / "out.txt", tmp_path / "terms.tsv"
    terms.write_text("alpha\tdue\n")
    command = ["predict", run, large, "--output", out, "--glossary", terms]
    with monkeypatch.context() as patch:
        patch.setattr(bulk, "join", lambda file, output: bulk.JoinedOutput(0, []))
        assert weft(*command).code == 0
    terms.write_text("alpha\ttre\n")
    said = refused(weft(*command))
    assert "has chunks of a command with different glossary; remove it to start over" in said
    terms.write_text("alpha\tdue\n")
    recipe = (run / "recipe.yaml").read_text()
    (run / "recipe.yaml").write_text(recipe.replace("beam: 3", "beam: 2"))
    assert "different model, recipe; remove it" in refused(weft(*command))
    (run / "recipe.yaml").write_text(recipe)
    assert "different options" in refused(weft(*command, "--set", "beam=2"))
    model = (run / "model.safetensors").read_bytes()
    found, fits = weights.read(run / "model.safetensors")
    changed = {name: tensor + 1 for name, tensor in found.items()}
    (run / "model.safetensors").write_bytes(weights.pack(changed, update="400"))
    assert "different model; remove it" in refused(weft(*command))
    (run / "model.safetensors").write_bytes(model)
    lines[9] = "alpha beta gamma delta"
    large.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    answer = weft(*command)
    assert answer.code == 0 and "answered again, since their lines have changed: 1 chunk" in answer.err
    assert "7 lines answered" in answer.err and fits.kept
    assert out.read_text("utf-8") == weft("predict", run, large, "--glossary", terms).out
