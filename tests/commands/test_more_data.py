"""Training on from a trained run: its score comes first and competes, and the first updates are gentle."""

import json
import re
from pathlib import Path

import pytest
import yaml

from tests.commands.corpus import stopped
from tests.commands.shell import weft
from weft.train.schedules import ConstantSchedule, LinearSchedule
from weft.train.settings import TrainingSettings

MORE = ("training.max_updates=6", "training.validate_every=2")


def validations(run: Path) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads((run / "checkpoints.json").read_bytes())["validations"]
    return found


def rates(run: Path) -> list[float]:
    events = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    return [event["lr"] for event in events if event["event"] == "update"]


def test_the_start_is_scored_first_and_kept_where_no_update_is_better(
    toy: Path, trained: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    harmful = ("training.optimiser.lr=0.5", "training.start_rate=1")
    answer = weft("train", toy, "--run", run, f"training.start={trained}", *MORE, *harmful)
    assert answer.code == 0 and f"the model of {trained} is validated first, and kept if" in answer.err
    first, *later = validations(run)
    (own,) = (one for one in validations(trained) if one["update"] == 400)
    assert first == {"update": 0, "scores": own["scores"]}  # of the same validation data
    assert len(later) == 3 and all(one["scores"]["loss"] > own["scores"]["loss"] for one in later)  # type: ignore[index]
    assert f"the best model, that of {trained}, since no update was better, is in {run}" in answer.out
    text = b"alpha beta gamma\n"
    assert weft("predict", run, stdin=text).out == weft("predict", trained, stdin=text).out


def test_the_learning_rate_is_gentle_after_a_start_and_may_be_set(
    toy: Path, trained: Path, tmp_path: Path
) -> None:
    change = ("training.optimiser.lr=0.001", "training.schedule=constant", "training.log_every=1")
    for name, more, last in (("usual", (), 0.0003), ("set", ("training.start_rate=0.5",), 0.0005)):
        run = tmp_path / name
        answer = weft("train", toy, "--run", run, f"training.start={trained}", *MORE, *change, *more, code=0)
        assert f"are {last / 0.001:g} times those of the recipe (training.start_rate)" in answer.err
        assert rates(run) == pytest.approx([last] * 6)  # a tenth of six updates is less than one
    run = tmp_path / "new"
    assert weft("train", toy, "--run", run, *MORE, *change).code == 0
    assert rates(run) == pytest.approx([0.001] * 6)


def test_the_factor_of_the_learning_rate_after_a_start() -> None:
    new = TrainingSettings(max_updates=2000, schedule=LinearSchedule(warmup=10))
    start = TrainingSettings(max_updates=2000, schedule=LinearSchedule(warmup=10), start=Path("run"))
    parts = TrainingSettings(max_updates=2000, start=Path("run"), start_parts=("encoder",))
    for update in (1, 7, 50, 100, 150, 2000):
        done = update / 2000
        usual = new.factor(update, done, {})
        assert usual == pytest.approx(LinearSchedule(warmup=10).factor(update, done, {}))
        assert start.factor(update, done, {}) == pytest.approx(usual * 0.3 * min(1, update / 100))
        assert parts.factor(update, done, {}) == ConstantSchedule().factor(update, done, {}) == 1
    short = TrainingSettings(max_updates=50, start=Path("run"), start_rate=0.2)
    assert [short.factor(n, n / 50, {}) for n in (1, 2, 5, 6)] == pytest.approx([0.04, 0.08, 0.2, 0.2])
    endless = TrainingSettings(patience=3, start=Path("run"))
    assert endless.factor(50, 0.0, {}) == pytest.approx(0.15)


@pytest.mark.slow
def test_a_training_from_a_start_resumes_bit_identically_without_its_name(
    toy: Path, trained: Path, tmp_path: Path
) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    change = ("training.max_updates=9", "training.optimiser.lr=0.01", "training.validate_every=5")
    start = f"training.start={trained}"
    assert weft("train", toy, "--run", whole, start, *change).code == 0
    assert stopped(toy, broken, 7, start, *change).code == 143
    assert weft("train", toy, "--run", broken, *change).code == 0  # the run knows its start
    for name in ("model.safetensors", "optimiser.safetensors"):
        last = Path("checkpoints") / "step-00000009" / name
        assert (whole / last).read_bytes() == (broken / last).read_bytes(), name
    recorded = yaml.safe_load((broken / "recipe.yaml").read_text())["training"]
    assert (recorded["start"], recorded["start_rate"]) == (str(trained), 0.3)


@pytest.mark.slow
def test_a_run_that_an_earlier_version_started_keeps_its_learning_rate(
    toy: Path, trained: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    change = ("training.optimiser.lr=0.001", "training.schedule=constant", "training.log_every=1")
    start = f"training.start={trained}"
    assert weft("train", toy, "--run", run, start, "training.start_rate=1", *MORE, *change).code == 0
    recipe = (run / "recipe.yaml").read_text()
    (run / "recipe.yaml").write_text(re.sub(r"\n +start_rate: .*", "", recipe))
    assert weft("train", toy, "--run", run, start, *MORE, *change, "training.max_updates=8").code == 0
    assert rates(run)[-2:] == pytest.approx([0.001] * 2)
    again = weft("train", toy, "--run", run, *change, "training.start_rate=0.5", "training.max_updates=10")
    assert again.code == 0 and rates(run)[-1] == pytest.approx(0.0005)  # may change, as the rate may
