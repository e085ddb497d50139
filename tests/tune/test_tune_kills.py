"""weft tune that is killed, or whose database fails: nothing is lost, and the same command resumes."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.commands.shell import refused, weft
from tests.tune.searches import make, needs_optuna, rows, studied, words
from weft.config import read_recipe
from weft.run.training import check_recipe
from weft.train.finish import Outcome
from weft.train.loop import train
from weft.tune import report as retraining
from weft.tune import space as spaces
from weft.tune import trial as trials
from weft.tune.report import retrain
from weft.tune.trial import search

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    return make(tmp_path)


@needs_optuna
@pytest.mark.slow
def test_a_killed_search_resumes_its_trial_where_it_was(recipe: Path) -> None:
    study = recipe.parents[1] / "study"
    arguments = words(recipe, "training.max_updates=40", "--trials", 2, "--seeds", 0, "--no-pruning")
    command = [sys.executable, "-m", "weft", *map(str, arguments)]
    log = study / "trials" / "0000" / "metrics.jsonl"
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL, start_new_session=True) as first:
        until = time.monotonic() + 120
        while first.poll() is None and time.monotonic() < until:
            if log.exists() and log.read_text().count('"validation"') >= 3:
                break
            time.sleep(0.002)
        os.killpg(first.pid, signal.SIGKILL)
    assert first.wait() == -signal.SIGKILL
    before = log.read_text().count('"validation"')
    assert 3 <= before < 20
    again = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=240)
    assert again.returncode == 0, again.stderr
    assert [row["state"] for row in rows(recipe)] == ["complete", "complete"]
    validated = [line for line in log.read_text().splitlines() if '"validation"' in line]
    assert len(validated) == 20  # each once
    first_line = next(line for line in again.stderr.splitlines() if "trained" in line)
    percent = int(first_line.partition("trial 0: ")[2].partition(" %")[0])
    assert percent >= 5 * (before - 1)  # not from the beginning


@pytest.mark.slow
@needs_optuna
def test_a_kill_after_a_training_loses_nothing_and_leaves_nothing(
    recipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    study = studied(recipe)
    with monkeypatch.context() as patch:
        patch.setattr(trials, "remove_checkpoints", killed)
        with pytest.raises(KeyboardInterrupt):
            search(study, minutes=0, trials=1, processes=1, say=lambda _: None)
        patch.setattr(retraining, "_finish", killed)
        with pytest.raises(KeyboardInterrupt):
            retrain(study, 1, lambda _: None)
    left = study.plan.trial(0) / "checkpoints", study.plan.retrained(0, 1) / "checkpoints"
    assert all(folder.is_dir() for folder in left)
    said: list[str] = []
    assert search(study, minutes=0, trials=1, processes=1, say=said.append) == 0
    assert retrain(study, 1, said.append) == 0
    assert said == [] and not any(folder.exists() for folder in left)
    assert check_recipe(read_recipe(study.plan.retrained(0, 1) / "recipe.yaml")).task.has("test")


@pytest.mark.slow
@needs_optuna
def test_a_killed_search_proposes_what_an_unbroken_one_does(recipe: Path) -> None:
    def taken(kills: int) -> list[dict[str, Any]]:
        shutil.rmtree(recipe.parents[1] / "study", ignore_errors=True)
        study = studied(recipe)
        for _ in range(4):
            for when in range(kills):
                with study.next() as trial:  # killed before its settings are proposed, then after
                    if when:
                        spaces.proposed(trial, study.plan.space)
                study = studied(recipe)
            with study.next() as trial:
                spaces.proposed(trial, study.plan.space)
                study.end(trial, 0.5)
        return [one.params for one in study.trials()]

    whole = taken(0)
    assert taken(2) == whole and all(one != other for one, other in pairwise(whole))


@pytest.mark.slow
@needs_optuna
def test_a_database_that_does_not_answer_is_told_and_the_search_resumes(
    recipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = recipe.parents[1] / "study" / "study.db"
    monkeypatch.setattr("weft.tune.study.LOCAL_SECONDS", 0.1)
    command = words(recipe, "--trials", 2, "--seeds", 0, "--no-pruning")
    with closing(sqlite3.connect(database.parent.parent / "unused")) as other, monkeypatch.context() as patch:

        def locking(*given: Any, **more: Any) -> Outcome:
            other.execute("ATTACH ? AS study", [str(database)])
            other.execute("BEGIN EXCLUSIVE")
            return train(*given, **more)

        patch.setattr("weft.run.train.train", locking)
        assert "study.db: the database does not answer" in (said := refused(weft(*command)))
        assert "is locked); the same command resumes" in said
    assert weft(*command).code == 0
    assert [row["state"] for row in rows(recipe)] == ["complete", "complete"]


@needs_optuna
@pytest.mark.slow
def test_a_signal_stops_all_processes_and_the_search_resumes(recipe: Path) -> None:
    arguments = words(recipe, "training.max_updates=4000", "--trials", 2, "--seeds", 0, "--processes", 2)
    command = [sys.executable, "-m", "weft", *map(str, arguments)]
    folder = recipe.parents[1] / "study" / "trials"
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as running:
        until = time.monotonic() + 240
        while running.poll() is None and time.monotonic() < until:
            if len(list(folder.glob("*/metrics.jsonl"))) == 2:
                break
            time.sleep(0.05)
        running.send_signal(signal.SIGTERM)
        assert "stopped; the same command resumes" in running.communicate(timeout=120)[1]
    assert running.returncode == 128 + signal.SIGTERM
    with studied(recipe, changes=("training.max_updates=4000",)).next(2) as left:
        assert left.number in (0, 1)


@needs_optuna
@pytest.mark.slow
def test_two_processes_share_the_trials(recipe: Path) -> None:
    command = [sys.executable, "-m", "weft", *map(str, words(recipe, "--trials", 4, "--seeds", 1))]
    done = subprocess.run(
        [*command, "--processes", "2"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    found = rows(recipe)
    assert len(found) == 4 and {row["state"] for row in found} <= {"complete", "pruned"}
