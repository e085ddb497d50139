"""weft folds: every fold is trained and tested once, and the report is their mean."""

import json
import statistics
from pathlib import Path

import pytest

from tests.commands.labelled import make_sentences, make_texts, texts
from tests.commands.shell import refused, weft
from weft.errors import DataError
from weft.tasks.classify.task import ClassifyPipeline
from weft.tune import folds as cross

SHORT = "training.max_updates=4", "training.validate_every=2"


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    recipe = make_texts(tmp_path / "toy")
    rows = [f"{text}\t{label}\t{n // 5}\t{n}\n" for n, (label, text) in enumerate(texts(107, 5))]
    (tmp_path / "toy" / "all.tsv").write_text("text\tlabel\tgroup\tday\n" + "".join(rows))
    plain = recipe.read_text().replace(
        f"  valid: {tmp_path}/toy/valid.tsv\n  test: {tmp_path}/toy/test.csv\n", ""
    )
    recipe.write_text(plain.replace("train.txt", "all.tsv\n  hold_out: 5"))
    return recipe


def rows(folder: Path) -> list[list[str]]:
    return [line.split("\t") for line in (folder / "folds.tsv").read_text().splitlines()]


@pytest.mark.slow
def test_the_report_is_the_mean_of_all_folds_and_a_second_call_trains_nothing(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [
        "folds",
        recipe,
        *SHORT,
        "data.folds=3",
        "data.group=group",
        "--repeats",
        2,
        "--folder",
        tmp_path / "out",
    ]
    answer = weft(*words, code=0)
    found = rows(tmp_path / "out")
    assert [row[:2] for row in found[1:]] == [[r, f] for r in "12" for f in "012"]
    place = found[0].index("accuracy")
    mean = statistics.fmean(float(row[place]) for row in found[1:])
    assert f"accuracy {mean:.4g} [" in answer.out and "baseline: " in answer.out
    assert "mean of 6 trainings" in answer.out
    monkeypatch.setattr(cross, "train_run", None)
    again = weft(*words)
    assert again.code == 0 and again.out == answer.out
    table = tmp_path / "toy" / "all.tsv"
    table.write_text(table.read_text().replace("good", "fair"))
    said = refused(weft(*words))
    assert f"{table}: has changed since this cross-validation began, so its scores" in said


@pytest.mark.slow
def test_taggers_are_cross_validated_too(tmp_path: Path) -> None:
    recipe = make_sentences(tmp_path / "toy")
    words = [*SHORT, "data.test=null", "data.folds=3", "--folder", tmp_path / "out"]
    answer = weft("folds", recipe, *words, code=0)
    found = rows(tmp_path / "out")
    assert (
        found[0][2:] == ["tag accuracy", "tag accuracy, unknown words", "macro F1", "calibration error"]
        and len(found) == 4
    )
    mean = statistics.fmean(float(row[2]) for row in found[1:])
    assert f"tag accuracy {mean:.4g} [" in answer.out
    assert "baseline: most frequent tag and ending" in answer.out
    assert "at least 300 sentences, one per fold, got 200" in refused(
        weft("folds", recipe, *SHORT, "data.test=null", "data.folds=300", "--folder", tmp_path / "more")
    )


def test_the_interval_of_folds_allows_for_the_data_that_they_share(recipe: Path, tmp_path: Path) -> None:
    plan = cross.folds(recipe, ["data.folds=4"], tmp_path / "out", repeats=2)
    seeds = [{one for one in plan.overrides(repeat, 3) if "split_seed" in one} for repeat in (1, 2)]
    assert seeds == [{"data.split_seed=1"}, {"data.split_seed=2"}]
    scores = {
        (1, 0): 0.61,
        (1, 1): 0.67,
        (1, 2): 0.64,
        (1, 3): 0.70,
        **{(2, fold): 0.66 for fold in range(4)},
    }
    for place, value in scores.items():
        path = plan.run(*place).with_suffix(".json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"scores": {"loss": value}, "baselines": {}}))
    (said,) = cross.write_table(plan)
    # Nadeau & Bengio 2003: s² (1/n + test/training examples) with t(7) = 2.365; one part of 4 for 3
    half = 2.365 * statistics.stdev(scores.values()) * (1 / 8 + 1 / 3) ** 0.5
    mean = statistics.fmean(scores.values())
    assert said == f"loss {mean:.4g} [{mean - half:.4g}, {mean + half:.4g}]"


def test_folds_end_with_the_verdict_and_keep_to_the_range_of_a_score(recipe: Path, tmp_path: Path) -> None:
    plan = cross.folds(recipe, ["data.folds=4"], tmp_path / "out")
    for fold, (share, error) in enumerate([(0.9, 0.0), (0.8, 0.09), (1.0, 0.0), (0.94, 0.01)]):
        path = plan.run(1, fold).with_suffix(".json")
        path.parent.mkdir(parents=True, exist_ok=True)
        found = {
            "scores": {"accuracy": share, "calibration error": error},
            "higher_is_better": {"accuracy": True},
        }
        found["baselines"] = {"accuracy": {"low": share - 0.5, "high": share - 0.1 + 0.02 * (fold % 2)}}
        path.write_text(json.dumps(found))
    *said, verdict = cross.write_table(plan)
    assert said[0].startswith("accuracy 0.91 [") and said[0].endswith(", 1]")
    assert said[3].startswith("calibration error 0.025 [0, ")
    # differences .1 .08 .1 .08: mean .09, s = .011547; t(3) = 3.1824; sqrt(1/4 + 1/3) = .7638
    assert verdict.endswith(
        ": better than the best baseline (high 0.8200; difference +0.0900 [+0.0619, +0.1181])"
    )


def test_by_time_the_oldest_part_is_never_tested(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, evaluate = [], ClassifyPipeline.evaluate

    def scored(self: ClassifyPipeline, model: object, *, split: str = "test", **how: object) -> object:
        asked.append(split)
        return evaluate(self, model, split=split, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(ClassifyPipeline, "evaluate", scored)
    weft("folds", recipe, *SHORT, "data.folds=3", "data.time=day", "--folder", tmp_path / "out", code=0)
    assert [row[:2] for row in rows(tmp_path / "out")[1:]] == [["1", "1"], ["1", "2"]]
    assert asked == ["test", "test"]


def test_what_cannot_be_cross_validated_is_refused(recipe: Path, tmp_path: Path) -> None:
    assert "pass data.folds=5" in refused(weft("folds", recipe, "--folder", tmp_path / "out"))
    words = ["folds", recipe, "data.folds=3", "data.time=day", "--repeats", 2]
    assert "--repeats: data.time allows only one split" in refused(weft(*words))
    assert "task: memory has no folds" in refused(weft("folds", "adding-lstm"))
    assert "tests every fold" in refused(weft("folds", recipe, "data.folds=3", "data.fold=1"))
    (tmp_path / "file").write_text("")
    said = refused(weft("folds", recipe, "data.folds=3", "--folder", tmp_path / "file"))
    assert "got a file; choose another --folder" in said
    assert "has files that are read" in refused(weft("folds", recipe, "data.folds=3", "--folder", recipe))


def test_more_folds_than_groups_are_refused_before_the_first_training(recipe: Path, tmp_path: Path) -> None:
    words = ["folds", recipe, *SHORT, "data.group=group", "--folder", tmp_path / "out"]
    assert "values of group (data.group), one per fold, got 22" in refused(weft(*words, "data.folds=30"))
    assert "at least 200 texts" in refused(weft(*words, "data.folds=200"))


def test_folds_of_another_recipe_do_not_count(recipe: Path, tmp_path: Path) -> None:
    words = ["folds", recipe, *SHORT, "data.folds=3", "--folder", tmp_path / "out"]
    assert weft(*words).code == 0
    before = (tmp_path / "out" / "folds.tsv").read_bytes()
    other = weft(*words, "training.optimiser.lr=0.5")
    assert "fold-0: was trained with training.optimiser.lr: 0.02" in refused(other)
    assert (tmp_path / "out" / "folds.tsv").read_bytes() == before


@pytest.mark.slow
def test_a_fold_whose_test_was_interrupted_is_tested_again(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["folds", recipe, *SHORT, "data.folds=3", "--folder"]
    assert weft(*words, tmp_path / "whole").code == 0

    def broken(*_: object, **__: object) -> None:
        raise DataError("is gone", path=tmp_path)

    with monkeypatch.context() as patch:
        patch.setattr(cross, "open_run", broken)
        assert weft(*words, tmp_path / "out").code == 2
    log = tmp_path / "out" / "repeat-1" / "fold-0" / "metrics.jsonl"
    trained = log.read_text()
    assert (log.parent / "checkpoints").is_dir()
    assert weft(*words, tmp_path / "out").code == 0
    assert log.read_text() == trained  # it was not trained again
    assert not (log.parent / "checkpoints").exists()
    (log.parent / "checkpoints").mkdir()  # killed before it was removed
    assert weft(*words, tmp_path / "out").code == 0
    assert not (log.parent / "checkpoints").exists()
    assert rows(tmp_path / "out") == rows(tmp_path / "whole")
