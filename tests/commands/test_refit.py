"""What a run learns from its validation texts: `training.refit`, and temperature and threshold."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.commands import labelled
from tests.commands.labelled import make_sentences, make_texts
from tests.commands.shell import evaluated, refused, weft
from tests.slow import leading
from tests.tasks.every import KINDS
from weft.metrics.calibration import best_threshold, f1_from, fitted
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
        found = evaluated(run)[1]["scores"]["accuracy"]["baselines"]
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
        found += evaluated(run)[1]["scores"]["perplexity"]["baselines"].values()
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
    [("training.precision=bfloat16", "float32"), ("training.start=runs/other", "start")],
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


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("calibrate")
    recipe = labelled.make_texts(folder / "toy")
    ends = ("training.max_updates=20", "training.validate_every=20")
    weft("train", recipe, "--run", folder / "run", *ends, code=0)
    return folder / "run"


def probs(run: Path) -> np.ndarray:
    opened = open_run(run, device="cpu")
    texts = [text for _, text in labelled.texts(23, 2)]  # those of valid.tsv
    return np.stack([one.probs for one in opened.pipeline.predictor(opened.model).classify(texts)])


def test_the_temperature_is_that_of_the_validation_texts_and_is_used_everywhere(
    made: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(made, run)
    plain = probs(run)
    classes = open_run(run, device="cpu").pipeline.reader.classes
    targets = np.array([classes.index(label) for label, _ in labelled.texts(23, 2)])
    want = fitted(np.log(plain), targets)
    answer, scores = evaluated(run, "--calibrate")
    assert scores["temperature"] == pytest.approx(want, rel=1e-4)
    before = _scored(made)
    assert scores["calibration_before"]["error"] == pytest.approx(before["calibration"]["error"], abs=1e-4)
    assert "before calibration (temperature" in answer.unfolded
    raised = plain ** (1 / want)
    np.testing.assert_allclose(probs(run), raised / raised.sum(1, keepdims=True), atol=1e-4)


def _scored(run: Path) -> Any:
    answer, found = evaluated(run)
    assert "before calibration (temperature" not in answer.unfolded
    return found


def test_the_temperature_of_another_model_does_not_count(made: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(made, run)
    assert weft("evaluate", run, "--calibrate").code == 0
    about = json.loads((run / "calibration.json").read_text())
    (run / "calibration.json").write_text(json.dumps(about | {"model": "0" * 64, "temperature": 7.0}))
    np.testing.assert_array_equal(probs(run), probs(made))
    assert "trained further since its last --calibrate" in weft("evaluate", run).out
    assert "--calibrate" not in weft("evaluate", made).out + weft("evaluate", run, "--calibrate").out
    (run / "calibration.json").write_text("{}")
    assert "calibration.json" in refused(weft("evaluate", run))


def test_a_threshold_is_chosen_on_the_validation_texts_and_scored_on_others(made: Path) -> None:
    opened = open_run(made, device="cpu")
    classifier = opened.pipeline.predictor(opened.model)

    def read(part: str) -> tuple[np.ndarray, np.ndarray]:
        some = list(opened.task.data.texts(part))
        chosen = np.stack([one.probs for one in classifier.classify([one.text for one in some])])
        return chosen, np.array([one.label for one in some])

    (valid, labels), (test, truth) = read("valid"), read("test")
    name = min(classifier.classes, key=labels.tolist().count)
    column = classifier.classes.index(name)
    value = best_threshold(valid[:, column], labels == name)
    assert _scored(made)["threshold"] == {
        "class": name,
        "value": pytest.approx(value, rel=1e-4),
        "f1": pytest.approx(f1_from(test[:, column], truth == name, value)),
        "usual": pytest.approx(f1_from(test[:, column], truth == name, 0.5)),
        "upper_bound": False,
    }
    said = weft("evaluate", made).out
    assert f"F1 of {name} with the threshold {value:.3g}, chosen on the validation texts: " in said
    assert "answers with at least this probability, and their accuracy: 0.5: 100.0%" in said
    for words in (["--split", "valid"], ["--data", made.parent / "toy" / "valid.tsv"]):
        said = " ".join(weft("evaluate", made, *words).out.split())
        assert "chosen on these texts, so an upper bound: " in said


def test_a_threshold_that_was_kept_needs_no_validation_texts(made: Path, tmp_path: Path) -> None:
    run, toy = tmp_path / "run", made.parent / "toy"
    shutil.copytree(made, run)
    assert weft("evaluate", run, "--calibrate").code == 0
    kept = json.loads((run / "calibration.json").read_text())["threshold"]
    recipe = (run / "recipe.yaml").read_text()
    gone = recipe.replace(f"{toy / 'valid.tsv'}", f"{toy / 'gone.tsv'}")
    assert gone != recipe
    for folder in (made, run):
        shutil.copytree(folder, tmp_path / f"{folder.name}-{folder.parent.name}")
    for folder, shown in ((run, True), (made, False)):
        other = tmp_path / f"{folder.name}-{folder.parent.name}"
        (other / "recipe.yaml").write_text(gone)
        said = weft("evaluate", other, code=0)
        line = f"F1 of {kept[0]} with the threshold {kept[1]:.3g}, chosen on the validation texts: "
        assert (line in said.out) == shown and ("with the threshold" in said.out) == shown
    said, before = weft("evaluate", run, "--split", "valid").out, weft("evaluate", run).out
    assert "to which the calibration was fitted" in said and "was fitted" not in before
    about = json.loads((run / "calibration.json").read_text())
    del about["threshold"]  # as earlier versions wrote it
    (run / "calibration.json").write_text(json.dumps(about))
    line = f"F1 of {kept[0]} with the threshold {kept[1]:.3g}, chosen on the validation texts: "
    assert line in before and line in weft("evaluate", run).out


def test_runs_that_decide_together_have_a_threshold_of_their_own(made: Path, tmp_path: Path) -> None:
    calibrated, twin = tmp_path / "calibrated", tmp_path / "twin"
    for run in (calibrated, twin):
        shutil.copytree(made, run)
    assert weft("evaluate", calibrated, "--calibrate").code == 0
    about = json.loads((calibrated / "calibration.json").read_text())
    about["threshold"][1] = 0.001
    (calibrated / "calibration.json").write_text(json.dumps(about))
    assert "with the threshold 0.001, " in weft("evaluate", calibrated).out
    opened = [open_run(run, device="cpu") for run in (calibrated, twin)]
    valid = list(opened[0].task.data.texts("valid"))
    texts = [one.text for one in valid]
    column = opened[0].pipeline.reader.classes.index(about["threshold"][0])
    answers = [one.pipeline.predictor(one.model).classify(texts) for one in opened]
    both = np.mean([[one.probs[column] for one in some] for some in answers], 0)
    value = best_threshold(both, np.array([one.label == about["threshold"][0] for one in valid]))
    _, found = evaluated(calibrated, "--ensemble", twin)
    assert found["threshold"]["value"] == pytest.approx(value, rel=1e-4)


@pytest.mark.parametrize("crf", leading(["true", "false"]))
def test_a_tagger_answers_with_calibrated_probabilities_of_the_same_tags(crf: str, tmp_path: Path) -> None:
    recipe, run = labelled.make_sentences(tmp_path / "toy"), tmp_path / "run"
    words = f"model.crf={crf}", "training.max_updates=4", "training.validate_every=2"
    assert weft("train", recipe, "--run", run, *words).code == 0
    test = (tmp_path / "toy" / "test.conllu").read_bytes()
    opened = open_run(run, device="cpu")
    data, lexicon = opened.pipeline.task.data, opened.pipeline.lexicon
    tagger = opened.pipeline.predictor(opened.model)
    forms = [one.forms for one in data.sentences("test")]
    valid = list(data.sentences("valid"))
    fit = np.concatenate([one.every for one in tagger.tag([one.forms for one in valid], probs=True)])
    targets = np.array([lexicon.tags.index(tag) for one in valid for tag in one.tags])
    want = fitted(np.log(fit), targets)
    plain = [one.every for one in tagger.tag(forms, probs=True)]
    tags = [[lexicon.tags.index(tag) for tag in one.tags] for one in tagger.tag(forms)]
    before = weft("predict", run, stdin=test).out
    uncalibrated = _scored(run)["calibration"]["error"]

    answer, scores = evaluated(run, "--calibrate")
    assert "before calibration (temperature" in answer.unfolded
    assert scores["temperature"] == pytest.approx(want, rel=1e-4) and abs(want - 1) > 0.05
    assert scores["calibration_before"]["error"] == pytest.approx(uncalibrated, abs=1e-4)
    assert weft("predict", run, stdin=test).out == before
    found = [
        float(line.rpartition("Prob=")[2])
        for line in weft("predict", run, "--scores", stdin=test).lines
        if "Prob=" in line
    ]
    raised = [one ** (1 / want) for one in plain]
    wanted = [
        row[tag] / row.sum()
        for rows, own in zip(raised, tags, strict=True)
        for row, tag in zip(rows, own, strict=True)
    ]
    np.testing.assert_allclose(found, wanted, atol=2e-4)
