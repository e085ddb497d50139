"""weft tune: what a search leaves, and what it never reads; see also test_tune_kills.py.

Without Optuna only the last test runs.
"""

import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands.shell import refused, weft
from tests.tune.searches import make, needs_optuna, rows, studied, words
from weft.commands import tune
from weft.commands.program import typed
from weft.config import read_recipe
from weft.errors import ConfigError, DataError
from weft.run.training import check_recipe
from weft.store.run_directory import lock
from weft.train.finish import Outcome
from weft.train.loop import train
from weft.tune import trial as trials
from weft.tune.plan import keep, plan
from weft.tune.report import retrain, retrained
from weft.tune.trial import search


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    return make(tmp_path)


@pytest.fixture
def opened() -> Iterator[list[str]]:
    """The paths of all files that are opened during the test."""
    found: list[str] = []
    watching = [True]

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if watching and event == "open":
            found.append(str(arguments[0]))

    sys.addaudithook(hook)
    yield found
    watching.clear()


@needs_optuna
def test_a_search_leaves_a_table_pictures_and_a_recipe_and_never_opens_the_test_split(
    opened: list[str], recipe: Path
) -> None:
    answer = weft(*words(recipe, "--trials", 3, "--seeds", 2, "--no-pruning"), code=0)
    study = recipe.parents[1] / "study"
    found = rows(recipe)
    assert [row["trial"] for row in found] == ["0", "1", "2"]
    assert {row["state"] for row in found} == {"complete"}
    assert found[0]["training.optimiser.lr"] == "0.02" and "queries" in found[0]["model.pool"]
    best = max(found, key=lambda row: float(row["accuracy"]))
    assert f"trial {best['trial']}" in answer.out and "2 seeds" in answer.out
    first = study / "retrained" / f"{int(best['trial']):04}" / "seed-1"
    assert answer.lines[-1] == f"next: {typed('evaluate', first)}   # score it on the test split"
    checked = check_recipe(read_recipe(study / "best.yaml"))
    assert checked.plain["training"]["max_updates"] == 6  # the override is part of it
    assert (study / "history.png").stat().st_size > 1000
    retrained = {path.name for path in (study / "retrained" / f"{int(best['trial']):04}").glob("seed-?")}
    assert retrained == {"seed-1", "seed-2"}
    assert any("train.txt" in path for path in opened) and any("valid.tsv" in path for path in opened)
    assert sum("test.csv" in path for path in opened) == 1  # written by the fixture
    assert check_recipe(read_recipe(study / "retrained" / "0000" / "seed-2" / "recipe.yaml")).task.has("test")
    again = weft(*words(recipe, "--trials", 3, "--seeds", 2, "--no-pruning"))
    assert again.code == 0 and again.out == answer.out and "again" not in again.err


@needs_optuna
def test_a_trial_that_falls_behind_ends_early_and_leaves_nothing_open(
    recipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = studied(recipe)
    curves = {0: [0.9, 0.9, 0.9], 1: [0.1, 0.1, 0.1], 2: [0.95, 0.95, 0.95]}

    def fake(task: object, run: Path, settings: object, report: trials.TrialReport, **_: object) -> Outcome:
        number = int(run.name)
        for at, score in enumerate(curves[number], 1):
            report.moved(2 * at, at / 3)
            report.validated(2 * at, {"accuracy": score}, [], best=True)
        return Outcome("max_updates", 6, 6, {"accuracy": curves[number][-1]})

    monkeypatch.setattr("weft.run.train.train", fake)
    said: list[str] = []
    assert search(study, minutes=0, trials=3, processes=1, say=said.append) == 0
    assert [one.state.name for one in study.trials()] == ["COMPLETE", "PRUNED", "COMPLETE"]
    assert study.trials()[1].intermediate_values == {33: 0.1}
    best = study.best()
    assert best is not None and best.number == 2
    (behind,) = (line for line in said if "not among the best third" in line)
    assert behind.startswith("trial 1: ended early") and behind.endswith("best so far: trial 0, 0.9")
    assert said[-1].startswith("trial 2: trained to its end, accuracy 0.95, after 0:")
    assert said[-1].endswith("best so far: trial 2, 0.95")


@needs_optuna
def test_a_real_trial_that_is_pruned_can_be_trained_on(recipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = studied(recipe)
    monkeypatch.setattr(trials.shutil, "rmtree", lambda *_, **__: None)  # keep the checkpoints
    with study.next() as trial:
        monkeypatch.setattr(trial, "should_prune", lambda: True)
        assert trials.run_trial(study, trial, float("inf"), lambda _: None) == 0
    assert study.trials()[0].state.name == "PRUNED"
    assert [one.name for one in threading.enumerate() if one.name == "weft-saving"] == []
    run = study.plan.trial(0)
    with lock(run):
        pass
    checked = check_recipe(read_recipe(run / "recipe.yaml"))
    assert train(checked.task, run, checked.settings).update == 6


@needs_optuna
def test_the_search_ends_when_time_is_up(recipe: Path) -> None:
    study = studied(recipe)
    assert search(study, minutes=1e-9, trials=0, processes=1, say=lambda _: None) == 0
    assert [one.state.name for one in study.trials()] == ["WAITING"]
    with study.next() as trial:
        trials.run_trial(study, trial, time.monotonic() - 1, lambda _: None)
    assert study.trials()[0].user_attrs["why"] == "time is up"


@needs_optuna
def test_a_study_keeps_its_recipe_and_its_space(recipe: Path) -> None:
    study = studied(recipe)
    other = plan(recipe, ["model.encoder.sizes=[5]"], study.plan.folder)
    with pytest.raises(ConfigError, match=r"started with model\.encoder\.sizes: \[7\].*another --study"):
        keep(other)


@needs_optuna
def test_a_trial_that_cannot_be_trained_fails_and_the_recipe_itself_is_refused(recipe: Path) -> None:
    study = studied(recipe)
    recipe.with_name("train.txt").unlink()
    with pytest.raises(DataError, match=r"train\.txt"), study.next() as trial:
        trials.run_trial(study, trial, float("inf"), lambda _: None)
    assert study.trials()[0].state.name == "RUNNING"
    with study.next(1) as left:
        assert left.number == 0


@pytest.mark.slow
@needs_optuna
def test_trials_taken_at_once_are_different_ones(recipe: Path) -> None:
    one, other = studied(recipe), studied(recipe)
    ask, numbers = one.study.ask, list[int]()

    def take() -> None:
        with other.next() as trial:
            numbers.append(trial.number)

    second = threading.Thread(target=take)

    def slow() -> object:
        trial = ask()
        second.start()
        second.join(1.0)  # ends within it only if it could take the same trial
        return trial

    one.study.ask = slow
    with one.next() as trial:
        second.join(60)
        assert sorted([trial.number, *numbers]) == [0, 1]
        with other.next(2) as more:  # trial 1 has no process any more
            assert more.number == 1
            with one.next(2) as none:
                assert none is None


@pytest.mark.slow
@needs_optuna
def test_what_an_earlier_study_left_in_the_folder_does_not_count(recipe: Path) -> None:
    study = studied(recipe)
    old = study.plan.trial(0) / "checkpoints"
    old.mkdir(parents=True)
    with study.next() as trial:
        assert not old.exists()
        assert trials.run_trial(study, trial, float("inf"), lambda _: None) == 0
    assert retrain(study, 1, lambda _: None) == 0
    run, before = study.plan.retrained(0, 1), retrained(study, 0, 1)
    said: list[str] = []
    assert retrain(study, 1, said.append) == 0 and said == []
    text = (run / "recipe.yaml").read_text()
    assert "lr: 0.02" in text
    (run / "recipe.yaml").write_text(text.replace("lr: 0.02", "lr: 0.05"))
    run.with_suffix(".json").write_text('{"score": 2.0}')
    assert retrain(study, 1, said.append) == 0
    assert len(said) == 2 and retrained(study, 0, 1) == before
    assert (run / "recipe.yaml").read_text() == text


def test_each_process_has_one_of_the_visible_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert [tune._device(n)["CUDA_VISIBLE_DEVICES"] for n in range(3)] == ["0", "1", "0"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5, 7")
    assert [tune._device(n)["CUDA_VISIBLE_DEVICES"] for n in range(3)] == ["5", "7", "5"]


def test_without_an_end_it_is_refused(recipe: Path) -> None:
    assert "pass --minutes or --trials" in refused(weft("tune", recipe))


def test_without_optuna_it_says_what_to_install(recipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert "optuna is not installed; pip install 'weft-seq[tune]'" in refused(
        weft("tune", recipe, "--trials", 2)
    )
