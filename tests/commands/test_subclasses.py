"""A classifier that learns the subclasses of its classes, as a user types it."""

import json
import random
from pathlib import Path

import pytest
import torch

from tests.commands.exporting import exported, run_program
from tests.commands.shell import refused, weft
from weft.errors import CheckpointError
from weft.run import open_run
from weft.store import jsonfile
from weft.tasks.classify.model import SubclassHead
from weft.tasks.classify.reader import LabelReader

KINDS = {"order": {"late": "parcel", "cancelled": "refund"}, "account": {"login": "password", "": "profile"}}

RECIPE = """\
task: classify
data: {{train: {folder}/train.tsv, test: {folder}/test.tsv, hold_out: 5, finer: kind}}
model: {model}
training:
  optimiser: {{use: adam, lr: 0.03}}
  max_updates: 40
  validate_every: 20
  device: cpu
  tensorboard: false
"""
MODELS = {"bag": "{bag: {ngrams: 1}}", "network": "{encoder: bag, pool: summary, embedding: {size: 7}}"}


def table(rows: int, seed: int) -> str:
    """Class, subclass (some lack it), text of which one word decides; two columns that divide no class."""
    chance = random.Random(seed)
    lines = ["label\tkind\ttext\tnone\tsame"]
    for _ in range(rows):
        label = chance.choice(list(KINDS))
        kind = chance.choice(list(KINDS[label]))
        words = [*chance.choices(["my", "where", "please", "the"], k=3), KINDS[label][kind]]
        chance.shuffle(words)
        lines.append(f"{label}\t{kind if chance.random() < 0.9 else ''}\t{' '.join(words)}\t\t{label}s")
    return "\n".join(lines) + "\n"


def folder_with(folder: Path, model: str) -> Path:
    for seed, name in enumerate(("train", "test")):
        (folder / f"{name}.tsv").write_text(table(120 if name == "train" else 31, seed))
    (folder / "r.yaml").write_text(RECIPE.format(folder=folder, model=MODELS[model]))
    return folder / "r.yaml"


@pytest.mark.parametrize("model", MODELS)
def test_classes_are_answered_and_subclasses_learnt(tmp_path: Path, model: str) -> None:
    recipe = folder_with(tmp_path, model)
    weft("train", recipe, "--run", tmp_path / "run", code=0)
    weft("evaluate", tmp_path / "run", "--json", tmp_path / "x.json", code=0)
    assert json.loads((tmp_path / "x.json").read_text())["scores"]["accuracy"]["value"] > 0.95
    answer = weft("predict", tmp_path / "run", "--scores", stdin=b"my refund please\nthe password\n")
    assert [line.split("\t")[0] for line in answer.out.splitlines()] == ["order", "account"]
    opened = open_run(tmp_path / "run")
    head = opened.model.head
    assert isinstance(head, SubclassHead)
    pairs = opened.pipeline.reader.finer
    assert pairs == [("account", "login"), ("order", "cancelled"), ("order", "late")]
    source, mask = opened.pipeline.reader.source(opened.pipeline.reader.encode(["my refund"]), ["my refund"])
    device = next(opened.model.parameters()).device
    with torch.no_grad():
        kinds = head._subclasses(opened.model.features(source.to(device), mask.to(device))[0])[0, 0]
    assert pairs[int(kinds.argmax())] == ("order", "cancelled")


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_an_exported_model_answers_the_same(tmp_path: Path, model: str) -> None:
    weft("train", folder_with(tmp_path, model), "--run", tmp_path / "run", code=0)
    pytest.importorskip("onnxscript", reason="pip install -e .[export]")
    exported(tmp_path / "run", tmp_path / "onnx")
    words = "my refund please\nthe password\nmy my where\n"
    ours = weft("predict", tmp_path / "run", "--scores", stdin=words.encode()).lines
    assert run_program(tmp_path / "onnx", words, "--scores") == ours


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("data.finer=nothing", "no such column 'nothing' (data.finer); the columns are label, kind, text"),
        ("data.finer=label", "expected a column of subclasses, got 'label'"),
        ("data.finer=text", "expected a column of subclasses, got 'text'"),
        ("data.finer=none", "column 'none' (data.finer): expected a class with at least two subclasses"),
        ("data.finer=same", "column 'same' (data.finer): expected a class with at least two subclasses"),
        ("data.separator='|'", "finer: cannot be combined with corpus or separator"),
        ("model.class_weights=balanced", "model: class_weights: requires classes without subclasses"),
        ("model.bag.naive_bayes=true", "model: bag.naive_bayes: requires classes without subclasses"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path: Path, change: str, sentence: str) -> None:
    recipe = folder_with(tmp_path, "bag")
    assert sentence in refused(weft("train", recipe, change, "--run", tmp_path / "run"))


def test_subclasses_of_other_classes_are_refused_when_a_run_is_opened(tmp_path: Path) -> None:
    recipe = folder_with(tmp_path, "bag")
    assert weft("train", recipe, "--run", tmp_path / "run", "training.max_updates=1").code == 0
    file = tmp_path / "run" / "tokenizer.classes.json"
    jsonfile.save(file, json.loads(file.read_text()) | {"finer": [["order", "late"], ["other", "x"]]})
    with pytest.raises(CheckpointError, match="a subclass of each class"):
        LabelReader.load(tmp_path / "run", bag=None, max_length=5)


def test_lines_have_no_column_of_subclasses(tmp_path: Path) -> None:
    recipe = folder_with(tmp_path, "bag")
    lines = "".join(f"__label__{one} {one} text\n" for one in ("a", "b") * 9)
    (tmp_path / "lines.txt").write_text(lines)
    change = f"data.train={tmp_path / 'lines.txt'}"
    assert "(data.finer); it is not a table" in refused(
        weft("train", recipe, change, "--run", tmp_path / "run")
    )
