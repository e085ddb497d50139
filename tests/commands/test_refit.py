"""`training.refit` by the command: the model has seen the validation texts, and everything says so."""

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.commands.labelled import make_sentences, make_texts
from tests.commands.shell import refused, weft
from tests.tasks.every import KINDS
from weft.run import open_run
from weft.store import weights

SOLVED = ["model.bag={ngrams: 2, letters: [2, 4], weight: tfidf, solve: true}", "training.refit=true"]


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("solved")
    answer = weft("train", make_texts(folder / "toy"), "--run", folder / "run", *SOLVED, code=0)
    assert "trained again in the same way on the validation examples too" in answer.out
    assert "--split valid" not in answer.out and "training.start" not in answer.out
    said = r"of up to 2 tokens, [\d,]+ of 2 to 4 letters\nthe linear model is solved: [\d,]+ parameters, "
    assert re.search(said, answer.err) and "1 checkpoint written\n" in answer.err
    assert "training starts" not in answer.err and "items" not in answer.err
    return folder / "run"


def test_the_validation_texts_are_no_test_any_more(solved: Path) -> None:
    for command in (["evaluate", "--split", "valid"], ["evaluate", "--calibrate"]):
        said = refused(weft(command[0], solved, *command[1:]))
        assert "training.refit" in said
    assert "accuracy 1" in weft("evaluate", solved).out
    acting, every = (weft("show", solved, *words).out for words in ([], ["--all"]))
    assert "training.refit" in acting and "\n  refit: true\n" in acting and "\n    ngrams: 2\n" in acting
    for name in ("encoder", "pool", "embedding", "dropout", "optimiser", "patience"):
        assert f"\n  {name}:" not in acting and f"\n  {name}:" in every, name
    assert "trained again" in (solved / "README.md").read_text()


def test_no_test_part_is_not_answered_with_the_validation_part(solved: Path, tmp_path: Path) -> None:
    run = shutil.copytree(solved, tmp_path / "run")
    recipe = run / "recipe.yaml"
    lines = [line for line in recipe.read_text().splitlines() if not line.startswith("  test:")]
    recipe.write_text("\n".join(lines) + "\n")
    said = refused(weft("evaluate", run))
    assert "--data FILE; weft show" in said and "--split" not in said
    assert f"weft folds {recipe} data.folds=5" in said
    assert f"weft folds {recipe} data.folds=5" in refused(weft("evaluate", run, "--split", "valid"))
    assert "weft folds" not in refused(weft("evaluate", solved, "--split", "valid"))  # it has a test file


def test_baselines_have_the_examples_that_the_model_had(tmp_path: Path) -> None:
    rows = {
        "train": 12 * ["a\tone"] + 8 * ["b\ttwo"],
        "valid": ["a\tone", *12 * ["b\ttwo"]],
        "test": ["b\ttwo"],
    }
    for name, lines in rows.items():
        (tmp_path / f"{name}.tsv").write_text("\n".join(["label\ttext", *lines]) + "\n")
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        f"task: classify\ndata: {{folder: {tmp_path}, train: train.tsv, valid: valid.tsv, test: test.tsv}}\n"
    )
    for refit, right in (("false", 0), ("true", 1)):
        run = tmp_path / refit
        weft("train", recipe, "--run", run, SOLVED[0], f"training.refit={refit}", code=0)
        assert weft("evaluate", run, "--json", tmp_path / "scores.json").code == 0
        found = json.loads((tmp_path / "scores.json").read_text())["scores"]["accuracy"]["baselines"]
        assert found["most frequent class"] == right


def test_the_n_grams_beside_a_language_model_have_its_text(tmp_path: Path) -> None:
    """Words of the validation text alone are known to the n-grams after a refit."""
    for name, line in (("train", "a b c d e f"), ("valid", "f e d c b a"), ("test", "f e d c b a")):
        (tmp_path / f"{name}.txt").write_text(f"{line}\n" * 40)
    recipe, found = tmp_path / "recipe.yaml", []
    parts = ", ".join(f"{name}: {name}.txt" for name in ("train", "valid", "test"))
    model = "model: {decoder: {use: recurrent, sizes: [4]}, embedding: {size: 4}}"
    data = f"data: {{folder: {tmp_path}, {parts}, vocabulary: {{kind: space, size: null}}, batches: lines}}"
    recipe.write_text(f"task: language\n{data}\n{model}\n")
    for refit in ("false", "true"):
        run = tmp_path / refit
        weft("train", recipe, "--run", run, "training.max_updates=2", f"training.refit={refit}", code=0)
        assert weft("evaluate", run, "--json", tmp_path / "scores.json").code == 0
        score = json.loads((tmp_path / "scores.json").read_text())["scores"]["perplexity"]
        found += score["baselines"].values()
    assert found[1] < found[0] / 1.5, found


def test_its_penalty_is_that_of_before_and_its_texts_are_all(solved: Path, tmp_path: Path) -> None:
    recipe = make_texts(tmp_path / "toy")
    answer = weft("train", recipe, "--run", tmp_path / "run", *SOLVED)
    said = [line.split("penalty ")[1].split(",")[0] for line in answer.err.splitlines() if "penalty" in line]
    assert len(said) == 2 and said[0] == said[1]
    texts = [open_run(tmp_path / "run").pipeline.reader.items.total]  # type: ignore[attr-defined]
    weft("train", recipe, "--run", tmp_path / "plain", SOLVED[0], code=0)
    texts += [open_run(tmp_path / "plain").pipeline.reader.items.total]  # type: ignore[attr-defined]
    assert texts == [201 + 23, 201]  # the items of the validation texts are known too
    names = [tmp_path / name / "model.safetensors" for name in ("run", "plain")]
    assert names[0].read_bytes() != names[1].read_bytes()


def test_a_calibration_of_the_model_before_is_kept(tmp_path: Path) -> None:
    recipe = make_texts(tmp_path / "toy")
    run = tmp_path / "run"
    assert weft("train", recipe, "--run", run, SOLVED[0]).code == 0
    assert weft("evaluate", run, "--calibrate").code == 0
    before = open_run(run).pipeline.reader.temperature  # type: ignore[attr-defined]
    assert weft("train", recipe, "--run", run, *SOLVED).code == 0
    opened = open_run(run)
    assert opened.pipeline.refit and opened.pipeline.reader.temperature == before != 1  # type: ignore[attr-defined]


def test_a_network_of_tags_and_a_start_from_it(tmp_path: Path) -> None:
    recipe, run = make_sentences(tmp_path / "toy"), tmp_path / "run"
    short = ["training.max_updates=6", "training.validate_every=3"]
    weft("train", recipe, "--run", run, *short, "training.refit=true", code=0)
    assert open_run(run).pipeline.refit
    weft("train", recipe, "--run", tmp_path / "more", *short, f"training.start={run}", code=0)
    start = weights.metadata(tmp_path / "more" / weights.START)
    assert "refit" not in start  # the weights that have not seen the validation sentences


CAN = {"classify", "tag", "forecast", "language", "translate", "summarise"}


@pytest.mark.parametrize("name", sorted(KINDS))
def test_every_task_can_or_refuses_by_name(tmp_path: Path, name: str) -> None:
    kind = KINDS[name]
    words = "train", kind.make(tmp_path / "toy"), "--run", tmp_path / "run", "training.max_updates=2"
    answer = weft(*words, "training.validate_every=2", "training.refit=true", *kind.changes)
    if (tmp_path / "run").exists():
        assert answer.code == 0, answer.err
        assert name.split()[0] in CAN and open_run(tmp_path / "run").pipeline.refit
    else:
        assert name.split()[0] not in CAN
        assert "training.refit" in refused(answer) and "validation" in answer.err


@pytest.mark.parametrize(
    ("setting", "word"),
    [
        ("training.precision=bfloat16", "float32"),
        ("training.start=runs/other", "start"),
    ],
)
def test_a_solved_model_refuses_what_it_settles(tmp_path: Path, setting: str, word: str) -> None:
    recipe = make_texts(tmp_path / "toy")
    said = refused(weft("train", recipe, "--run", tmp_path / "run", SOLVED[0], setting))
    assert word in said and "model.bag.solve" in said


def test_a_bag_reads_texts_whole(tmp_path: Path) -> None:
    recipe = make_texts(tmp_path / "toy")
    recipe.write_text(recipe.read_text().replace("max_updates: 60", "validate_every: 1"))
    recipe.write_text(recipe.read_text().replace("  validate_every: 30\n", ""))
    answer = weft("train", recipe, "--run", tmp_path / "run", SOLVED[0])
    assert answer.code == 0 and "read whole" in answer.err
    assert open_run(tmp_path / "run").pipeline.reader.max_length > 10**6  # type: ignore[attr-defined]
    answer = weft("train", recipe, "--run", tmp_path / "network", "training.max_updates=1")
    assert "cut at 400 tokens" in answer.err
