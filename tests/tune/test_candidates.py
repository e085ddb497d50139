"""`weft init` tries models: the simplest stays unless another is proven better, and training repeats it."""

import os
import random
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.commands.shell import refused, weft
from weft.metrics.accuracy import Accuracy
from weft.metrics.intervals import FEWEST
from weft.metrics.scored import ScoreWithBaselines, of_rows
from weft.store import weights
from weft.tasks.classify.init import ClassifyInit
from weft.tasks.forecast.init import TRIAL as FORECAST_TRIAL
from weft.tasks.forecast.init import ForecastInit
from weft.tasks.init import ModelCandidate, NewRecipe, Trial
from weft.tasks.language.init import LanguageInit
from weft.tasks.tag.init import TRIAL as TAG_TRIAL
from weft.tasks.tag.init import TagInit
from weft.train.reporting import Reporter
from weft.tune import candidates
from weft.tune.candidates import CandidateScore, ModelChoice


def scored(right: int, items: int = 100, name: str = "same") -> ScoreWithBaselines:
    """A score with the first items right."""
    rows = np.stack([np.arange(items) < right, np.ones(items)], 1).astype(float)
    return of_rows(Accuracy(), rows, beside={"always a": rows[::-1]}, items=name)


def tried(name: str, score: ScoreWithBaselines) -> CandidateScore:
    return CandidateScore(name, score, 3.2, Path())


@pytest.mark.parametrize(
    ("right", "beats"),
    [(82, False), (90, True), (70, False), (80, False)],  # a hair, clearly better, worse, alike
)
def test_only_a_proven_gain_beats_a_simpler_model(right: int, beats: bool) -> None:
    assert tried("network", scored(right)).beats(tried("linear", scored(80))) is beats


def test_scores_of_other_items_prove_nothing() -> None:
    assert not tried("network", scored(100, name="other")).beats(tried("linear", scored(10)))


def test_the_table_names_what_is_kept_and_the_baselines() -> None:
    both = tried("linear", scored(90)), tried("network", scored(70))._replace(cut="stopped")
    title, linear, network, baseline = ModelChoice(both, both[0]).table(seconds=True)
    assert title == "tried on the validation part (accuracy, higher is better, 100 items):"
    assert linear == "  linear    0.9000 [0.8256, 0.9448]  3 CPU s, kept"  # Wilson's interval, by hand
    assert network.startswith("  network   0.7000 [0.6042, 0.7811]  3 CPU s, -0.2000 [-0.")
    assert network.endswith("] against linear, stopped") and baseline.split() == [
        "always",
        "a",
        "0.9000",
        "a",
        "baseline",
    ]
    assert "CPU" not in "".join(ModelChoice(both, both[0]).table())


def texts(path: Path, count: int, wrong: int = 7) -> Path:
    """Labelled texts: one word of each tells its class; one text of `wrong` has another label."""
    draw, words = random.Random(1), [f"w{number}" for number in range(40)]
    rows = ["label\ttext"]
    for number in range(count):
        told = f"{'good' if number % 2 else 'bad'}{draw.randrange(3)}"
        label = (number + (wrong > 0 and number % wrong == 0)) % 2
        rows.append(f"{label}\t{' '.join([*draw.choices(words, k=4), told, *draw.choices(words, k=3)])}")
    path.write_text("\n".join(rows) + "\n")
    return path


def test_the_smallest_file_that_is_tried_holds_out_enough_for_an_interval(tmp_path: Path) -> None:
    file = tmp_path / "train.txt"
    given = {"train": file, "valid": None, "test": None, "column": None, "start": None}
    for count, every in ((TAG_TRIAL.fewest, 5), (499, 9), (999, 19), (5_000, 20)):
        file.write_text("a\tX\nb\tY\n\n" * count)
        for model in ("linear", "network"):
            recipe = TagInit().write({**given, "model": model}, print).recipe
            assert f"hold_out: {every} " in recipe and count // every >= 2 * FEWEST
            small = model == "network" and count < 2_000
            assert ("refit: true" in recipe) is (model == "linear" or small)
            assert ("alone: false" in recipe) is small


def shortened(trial: Trial) -> Trial:
    """A trial with at most two updates where it limits them."""
    return trial._replace(
        candidates=[one._replace(updates=min(2, one.updates)) for one in trial.candidates], fewest=20
    )


class Kept(list[ModelChoice]):
    """What trials chose, and their runs."""


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Kept:
    """Short trials whose runs are kept."""
    found, choose = Kept(), candidates.choose
    for init in (ClassifyInit, ForecastInit, LanguageInit):
        monkeypatch.setattr(init, "trial", shortened(init.trial))

    def kept_runs(trial: Trial, recipes: Any, folder: Path, **others: Any) -> ModelChoice:
        (tmp_path / "trial").mkdir()
        found.append(choose(trial, recipes, tmp_path / "trial", **others))
        return found[-1]

    monkeypatch.setattr(candidates, "choose", kept_runs)
    monkeypatch.chdir(tmp_path)
    return found


def same_weights(one: Path, other: Path) -> bool:
    """Whether two runs have the same model bit for bit."""
    first, second = (weights.load(run / "model.safetensors") for run in (one, other))
    return first.keys() == second.keys() and all(first[name].equal(second[name]) for name in first)


def test_training_the_written_recipe_gives_the_classifier_of_the_trial(kept: Kept) -> None:
    answer = weft("init", "classify", texts(Path("t.tsv"), 120), code=0)
    (found,) = kept
    assert [one.name for one in found.tried] == ["linear", "network"] and found.kept.name == "linear"
    written = Path("classify.yaml").read_text()
    assert all(f"# {line}\n" in written for line in found.table()) and "--model network" in written
    assert "ended after 2 updates" in written and "against linear" in answer.out
    changes = "training.monitors=true", "training.refit=false"  # else the validation texts are given back
    assert weft("train", "classify.yaml", "--run", "run", *changes).code == 0
    assert same_weights(Path("run"), found.kept.run)


def invented(path: Path, vectors: Path, count: int) -> Path:
    """Texts of words that occur once, and vectors that tell their class."""
    draw, rows, lines = random.Random(1), ["label\ttext"], []
    for number in range(count):
        words = ["".join(draw.choices("abcdefghijklmnopqrst", k=7)) for _ in range(3)]
        rows.append(f"{number % 2}\t{' '.join(words)}")
        lines += [f"{word} {number % 2 * 2 - 1 + draw.gauss(0, 0.1)} {draw.gauss(0, 1)}" for word in words]
    path.write_text("\n".join(rows) + "\n")
    vectors.write_text("\n".join(lines) + "\n")
    return path


def test_given_vectors_are_kept_where_they_are_proven_better(kept: Kept) -> None:
    file = invented(Path("t.tsv"), Path("v.txt"), 200)
    weft("init", "classify", file, "--vectors", "v.txt", "--output", "c.yaml", code=0)
    (found,) = kept
    assert [one.name for one in found.tried] == ["linear", "vectors"] and found.kept.name == "vectors"
    written = Path("c.yaml").read_text()
    assert "embedding: {vectors: v.txt}" in written and "--model linear or network` writes another" in written
    assert weft("train", "c.yaml", "--run", "run", "training.refit=false").code == 0
    assert same_weights(Path("run"), found.kept.run)


@pytest.mark.parametrize("line", ["a nan 1", "a b c"])
def test_given_vectors_that_cannot_be_read_end_the_trial(kept: Kept, line: str) -> None:
    file = invented(Path("t.tsv"), Path("v.txt"), 150)
    Path("v.txt").write_text(f"{line}\n")
    found = weft("init", "classify", file, "--vectors", "v.txt", "--output", "c.yaml", code=2)
    assert found.err.startswith("weft: --vectors: v.txt:1: expected finite numbers after 'a'")
    assert not Path("c.yaml").exists() and not kept


def test_given_vectors_that_gain_nothing_are_left_out(kept: Kept) -> None:
    file = texts(Path("t.tsv"), 120)
    Path("v.txt").write_text("good0 1 2\nw1 2 1\n")
    weft("init", "classify", file, "--vectors", "v.txt", code=0)
    (found,) = kept
    assert [one.name for one in found.tried] == ["linear", "vectors", "network"]
    assert found.kept.name == "linear" and "v.txt" not in Path("classify.yaml").read_text()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--model", "vectors"], "--model vectors: expected --vectors, got none"),
        (["--vectors", "t.tsv", "--model", "linear"], "read by a trial and by --model vectors alone"),
        (["--vectors", "t.tsv", "--no-trial"], "read by a trial and by --model vectors alone"),
        (["--vectors", "none.txt"], "--vectors none.txt: no such run or file"),
    ],
)
def test_vectors_that_nothing_would_read_are_refused(options: list[str], sentence: str, kept: Kept) -> None:
    assert sentence in refused(weft("init", "classify", texts(Path("t.tsv"), 120), *options))
    assert not kept and not Path("classify.yaml").exists()


def test_nothing_is_tried_after_a_model_without_a_mistake(kept: Kept) -> None:
    answer = weft("init", "classify", texts(Path("t.tsv"), 120, wrong=0), code=0)
    (found,) = kept
    assert [(one.name, one.score.value) for one in found.tried] == [("linear", 1.0)]
    assert "network: not tried, as linear makes no mistake on the validation part" in answer.out + answer.err


def test_training_the_written_recipe_gives_the_forecaster_of_the_trial(kept: Kept) -> None:
    values = np.random.default_rng(1).normal(size=400).cumsum()
    Path("x.csv").write_text("\n".join(["sales", *map(str, values)]) + "\n")
    answer = weft("init", "forecast", "x.csv", "--horizon", 3, code=0)
    (found,) = kept
    assert found.kept.name == "ridge" and "last value repeated" in answer.out
    trained = weft("train", "forecast.yaml", "--run", "run")
    assert trained.code == 0 and "solved without updates" in trained.out
    assert same_weights(Path("run"), found.kept.run)


class Stopping(Reporter):
    """Presses Ctrl-C after the first update."""

    def moved(self, update: int, done: float) -> None:
        os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_during_the_network_keeps_what_stands(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    screens = iter([Reporter(), Stopping()])
    monkeypatch.setattr("weft.train.trackers.usual_screen", lambda: next(screens))
    answer = weft("init", "classify", texts(Path("t.tsv"), 120), code=0)
    assert "linear" in answer.out and Path("classify.yaml").exists() and kept[0].kept.name == "linear"


def prose(count: int) -> Path:
    draw = random.Random(1)
    lines = [" ".join(draw.choices(["one", "two", "three", "four"], k=5)) for _ in range(count)]
    Path("prose.txt").write_text("\n".join(lines) + "\n")
    return Path("prose.txt")


def test_models_that_only_answer_differently_are_trained_once(kept: Kept) -> None:
    answer = weft("init", "language", prose(160), code=0)
    lstm, mixture = kept[0].tried
    assert lstm.run == mixture.run and mixture.score.value < lstm.score.value and kept[0].kept is mixture
    assert "\n  mixture: tuned " in Path("language.yaml").read_text() and answer.out.count("trying") == 1


def test_ctrl_c_before_any_model_stands_writes_the_usual_recipe(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weft.train.trackers.usual_screen", Stopping)
    answer = weft("init", "language", prose(60))
    assert answer.code == 0 and "(stopped): the recipe is for lstm" in answer.out
    assert "\n  # mixture: tuned " in Path("language.yaml").read_text()


def test_a_model_that_is_asked_for_is_not_tried(kept: Kept) -> None:
    path = texts(Path("t.tsv"), 120)
    assert weft("init", "classify", path, "--model", "network", "-o", "network.yaml").code == 0
    assert weft("init", "classify", path, "--no-trial", "-o", "usual.yaml").code == 0
    assert weft("init", "classify", texts(Path("few.tsv"), 19), "-o", "few.yaml").code == 0
    assert not kept
    assert "recurrent" in Path("network.yaml").read_text() and "bag:" in Path("usual.yaml").read_text()


def test_sizes_without_a_trial_are_named() -> None:
    trial = Trial([ModelCandidate("linear", "")], "linear", 20, "text", 3000, "word")
    assert trial.refusal(NewRecipe("", (), 20, 3000)) == ""
    assert "fewer than 20 texts" in trial.refusal(NewRecipe("", (), 19, 3000))
    assert "more than 3,000 words" in trial.refusal(NewRecipe("", (), 20, 3001))
    few = FORECAST_TRIAL.refusal(NewRecipe("", (), 139, 3000))
    assert "fewer than 140 training horizons (rows to train on, divided by --horizon), no models" in few
    assert few.endswith("the recipe is for network; try --model ridge too")
