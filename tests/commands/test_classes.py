"""Class weights, subclasses and several labels: what a classifier may be told of its classes."""

import csv
import io
import json
import random
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import weft as package
from tests.commands import labelled
from tests.commands.exporting import exported, run_program
from tests.commands.labelled import SEVERAL as CHANGES
from tests.commands.labelled import TOPICS
from tests.commands.labelled import make_several as make
from tests.commands.shell import evaluated, refused, weft
from tests.shared import copied
from weft.errors import CheckpointError, ConfigError
from weft.run import open_run
from weft.store import jsonfile
from weft.tasks.classify.data import LabelData, names_of
from weft.tasks.classify.model import SubclassHead
from weft.tasks.classify.reader import LabelReader
from weft.tasks.predictor import Place
from weft.tasks.task import InspectionSettings

TASK = "several labels"


def test_each_label_is_given_by_itself(run: Path) -> None:
    found = weft("predict", run, stdin=b"a song today\nthis film\ngoal it was song today\n")
    assert found.out == "music|news\n\nmusic|news|sport\n"
    served = package.load(run)
    (one,) = served.answers([served.parse("the goal today", Place("input"))])
    said = one.json()
    assert said["labels"] == ["news", "sport"] and set(said["probs"]) == set(TOPICS)
    assert min(said["probs"]["news"], said["probs"]["sport"]) > 0.5 > said["probs"]["music"]
    first, *probs = weft("predict", run, "--scores", stdin=b"a song\n").out.strip().split("\t")
    assert first == "music" and probs[0].startswith("music=") and len(probs) == 3


def test_a_table_keeps_its_columns(run: Path, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text('id,text,note\n7,"a song, today",x\n8,a film,\n')
    rows = list(csv.reader(io.StringIO(weft("predict", run, tmp_path / "new.csv").out)))
    assert rows == [
        ["id", "text", "note", "predicted"],
        ["7", "a song, today", "x", "music|news"],
        ["8", "a film", "", ""],
    ]


def test_scores_and_thresholds_are_fitted_to_the_validation_part(run: Path, tmp_path: Path) -> None:
    run = copied(run, tmp_path)
    plain = weft("evaluate", run, code=0)
    for words in ("micro F1 1.0", "macro F1 1.0", "all labels right 1.0", "baseline: most frequent labels ("):
        assert words in plain.out, plain.out
    assert not (run / "calibration.json").exists()
    limits = evaluated(run, "--calibrate")[1]["thresholds"]
    assert set(limits) == set(TOPICS) and set(limits.values()) != {0.5}
    opened = open_run(run, device="cpu")
    classifier = opened.pipeline.predictor(opened.model)
    valid = list(opened.task.data.texts("valid"))
    probs = np.stack([one.probs for one in classifier.classify([one.text for one in valid])])
    for number, name in enumerate(opened.pipeline.reader.classes):
        assert limits[name] == opened.pipeline.reader.thresholds[number]
        there = np.array([name in one.label.split("|") for one in valid])
        given = probs[:, number] >= limits[name] - 1e-6
        assert (given == there).all()  # as the toy is learnt


@pytest.mark.slow
def test_it_is_inspected_and_has_a_page(run: Path, tmp_path: Path) -> None:
    opened = open_run(run, device="cpu")
    seen = opened.pipeline.inspection(opened.model, InspectionSettings(text="a song today"))
    assert seen.answer.startswith("music|news (")
    pytest.importorskip("onnxscript", reason="pip install -e .[export]")
    weft("export", run, "--to", "web", "--output", tmp_path / "page.html", code=0)
    assert "thresholds" in (tmp_path / "page.html").read_text("utf-8")


def test_without_a_separator_an_empty_label_is_refused(tmp_path: Path) -> None:
    recipe = make(tmp_path / "toy")
    changes = [*CHANGES[:3], *CHANGES[4:], f"data.folder={tmp_path / 'toy'}", "training.max_updates=1"]
    said = refused(weft("train", recipe, "--run", tmp_path / "run", *changes))
    assert "the label is empty" in said and "train.csv:2" in said


def test_a_bag_learns_several_labels_too(tmp_path: Path) -> None:
    recipe = make(tmp_path / "toy")
    changes = [*CHANGES, f"data.folder={tmp_path / 'toy'}", "model.bag={ngrams: 1}"]
    assert weft("train", recipe, "--run", tmp_path / "run", *changes).code == 0
    assert weft("predict", tmp_path / "run", stdin=b"a song today\n").out == "music|news\n"


def test_labels_in_a_cell_are_sorted_and_each_once() -> None:
    assert names_of(" b |a||b", "|") == ["a", "b"]
    assert names_of("", "|") == [] and names_of("a|b", None) == ["a|b"]
    with pytest.raises(ConfigError):
        LabelData(train="x", separator="\t")


def test_data_check_counts_each_of_several_labels(tmp_path: Path) -> None:
    train, valid = tmp_path / "train.tsv", tmp_path / "valid.tsv"
    rows = ["sun\tweather|good", "rain\tweather", "nothing\t", "snow\tgood|weather"]
    train.write_text("text\tlabel\n" + "\n".join(rows) + "\n")
    valid.write_text("text\tlabel\nfrost\tweather|cold\n")
    made = weft("data", "check", train, valid, "--label", "label", "--separator", "|", code=0)
    assert "the class 'good' has 2 texts" in made.out and "the class 'weather' has" not in made.out
    assert f"{valid}:2: the label 'cold' does not occur in {train}" in made.out
    other = weft("data", "check", train, valid, "--label", "label", "--separator", ";")
    assert other.code == 0 and f"{train}: no text has several labels; if some should, ';' is not" in other.out
    assert "no text has several" not in made.out
    plain = weft("data", "check", train, "--label", "label")
    assert plain.code == 1 and f"{train}:4: the label is empty" in plain.out


def test_init_writes_a_recipe_for_several_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cycle = ("", "weather", "weather|good")
    rows = ["sun,weather|good", "nothing,", *(f"rain {n},{cycle[n % 3]}" for n in range(40))]
    Path("news.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
    made = weft("init", "classify", "--train", "news.csv", "--label", "label", "--separator", "|", code=0)
    assert "weft data check news.csv --task classify --separator '|'" in made.out
    recipe = Path("classify.yaml").read_text()
    assert recipe.startswith("# 2 classes, 42 training texts") and '  separator: "|"\n' in recipe
    assert all(line.count("(") == line.count(")") for line in recipe.splitlines()[:3])
    said = refused(weft("init", "classify", "--train", "news.csv", "--label", "label", "-o", "other.yaml"))
    assert "news.csv:3: the label is empty" in said
    assert weft("train", "classify.yaml", "training.max_updates=2", "--run", "run").code == 0


SHORT = "training.max_updates=12", "training.metric=loss"


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """A recipe for 201 good texts and 7 bad ones."""
    recipe = labelled.make_texts(tmp_path / "toy")
    rows = [(label, text) for label, text in labelled.texts(401, 1)]
    rare = [row for row in rows if row[0] == "bad"][:7]
    lines = [f"__label__{label} {text}\n" for label, text in [row for row in rows if row[0] == "good"] + rare]
    (tmp_path / "toy" / "train.txt").write_text("".join(lines))
    return recipe


@pytest.fixture
def sentences(tmp_path: Path) -> Path:
    """A recipe for sentences in which nearly every word in -ing is tagged as a noun, and 7 as verbs."""
    recipe = labelled.make_sentences(tmp_path / "toy")
    recipe.write_text(recipe.read_text().replace("crf: true", "crf: false"))
    train = tmp_path / "toy" / "train.conllu"
    before, *verbs = train.read_text().split("\tVERB\t")
    tags = ["VERB" if n % (len(verbs) // 7) == 0 else "NOUN" for n in range(len(verbs))]
    train.write_text(before + "".join(f"\t{tag}\t{rest}" for tag, rest in zip(tags, verbs, strict=True)))
    return recipe


@pytest.mark.parametrize("kind", ["texts", "sentences"])
def test_balanced_weights_find_a_rare_class(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    recipe, found = request.getfixturevalue(kind), {}
    for weights in ("none", "balanced"):
        run = tmp_path / weights
        weft("train", recipe, "--run", run, f"model.class_weights={weights}", *SHORT, code=0)
        if kind == "texts":
            bad = "".join(f"{text}\n" for label, text in labelled.texts(97, 9) if label == "bad")
            found[weights] = weft("predict", run, stdin=bad.encode()).lines.count("bad")
        else:
            found[weights] = weft("predict", run, stdin=b"beding moling .\n" * 9).out.count("\tVERB\n")
    assert found["balanced"] > found["none"] and (kind == "texts" or found["none"] == 0)


def test_own_weights_equal_to_the_balanced_ones_train_the_same_model(texts: Path, tmp_path: Path) -> None:
    lines = (tmp_path / "toy" / "train.txt").read_text().splitlines()
    rows = [line.split()[0].removeprefix("__label__") for line in lines]
    own = ", ".join(f"{name}: {len(rows) / (2 * rows.count(name))!r}" for name in ("good", "bad"))
    for name, weights in {"own": f"{{{own}}}", "balanced": "balanced", "some": "{bad: 3}"}.items():
        weft("train", texts, "--run", tmp_path / name, f"model.class_weights={weights}", *SHORT, code=0)
    own_model, balanced, some = (
        load_file(tmp_path / name / "model.safetensors") for name in ("own", "balanced", "some")
    )
    assert all(bool((own_model[name] == balanced[name]).all()) for name in balanced)
    assert any(bool((some[name] != balanced[name]).any()) for name in balanced)
    assert weft("evaluate", tmp_path / "some").code == 0  # its recipe is read again


def test_the_validation_texts_choose_between_none_and_balanced(texts: Path, tmp_path: Path) -> None:
    solved, losses, models = ("model.bag={solve: true}", "training.metric=loss"), {}, {}
    for weights in ("none", "balanced", "best"):
        run = tmp_path / weights
        said = weft("train", texts, "--run", run, f"model.class_weights={weights}", *solved, code=0).err
        losses[weights] = float(re.findall(r"validation after update 0: loss ([\d.]+)", said)[0])
        models[weights] = load_file(run / "model.safetensors")
    chosen = min(("none", "balanced"), key=losses.__getitem__)
    assert losses["none"] != losses["balanced"]
    assert all(torch.equal(one, models[chosen][name]) for name, one in models["best"].items())
    assert f"class_weights: {chosen}, the better one" in said


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
    assert evaluated(tmp_path / "run")[1]["scores"]["accuracy"]["value"] > 0.95
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
