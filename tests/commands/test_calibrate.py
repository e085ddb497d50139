"""weft evaluate --calibrate keeps the temperature of a classifier or a tagger in its run."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.commands import labelled
from tests.commands.shell import refused, weft
from tests.slow import leading
from weft.metrics.calibration import best_threshold, f1_from, fitted
from weft.run import open_run


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
    answer = weft("evaluate", run, "--calibrate", "--json", tmp_path / "scores.json", code=0)
    scores = json.loads((tmp_path / "scores.json").read_text())
    assert scores["temperature"] == pytest.approx(want, rel=1e-4)
    before = json.loads(_scored(made, tmp_path / "before.json"))
    assert scores["calibration_before"]["error"] == pytest.approx(before["calibration"]["error"], abs=1e-4)
    assert "before calibration (temperature" in answer.unfolded
    raised = plain ** (1 / want)
    np.testing.assert_allclose(probs(run), raised / raised.sum(1, keepdims=True), atol=1e-4)


def _scored(run: Path, path: Path) -> str:
    answer = weft("evaluate", run, "--json", path)
    assert answer.code == 0 and "before calibration (temperature" not in answer.unfolded
    return path.read_text()


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


def test_a_threshold_is_chosen_on_the_validation_texts_and_scored_on_others(
    made: Path, tmp_path: Path
) -> None:
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
    scores = json.loads(_scored(made, tmp_path / "test.json"))["threshold"]
    assert scores == {
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
    texts, column = (
        [one.text for one in valid],
        opened[0].pipeline.reader.classes.index(about["threshold"][0]),
    )
    answers = [one.pipeline.predictor(one.model).classify(texts) for one in opened]
    both = np.mean([[one.probs[column] for one in some] for some in answers], 0)
    value = best_threshold(both, np.array([one.label == about["threshold"][0] for one in valid]))
    weft("evaluate", calibrated, "--ensemble", twin, "--json", tmp_path / "both.json", code=0)
    found = json.loads((tmp_path / "both.json").read_text())["threshold"]
    assert found["value"] == pytest.approx(value, rel=1e-4)


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
    uncalibrated = json.loads(_scored(run, tmp_path / "before.json"))

    answer = weft("evaluate", run, "--calibrate", "--json", tmp_path / "scores.json")
    assert answer.code == 0 and "before calibration (temperature" in answer.unfolded
    scores = json.loads((tmp_path / "scores.json").read_text())
    assert scores["temperature"] == pytest.approx(want, rel=1e-4) and abs(want - 1) > 0.05
    assert scores["calibration_before"]["error"] == pytest.approx(
        uncalibrated["calibration"]["error"], abs=1e-4
    )
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
