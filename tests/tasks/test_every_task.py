"""What holds for every task: a broken training goes on to the bit, an answer depends on its input alone.

Read next: every.py, the tasks; tests/train/test_resume.py, any place of the loop with a toy task.
"""

import json
import os
import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.commands.shell import Answer, weft
from tests.shared import shared_run
from tests.tasks.every import KINDS, agree_to_the_bit
from weft import rooms, tasks
from weft.inspect.comparing.measured import Evidence, evidence
from weft.run import open_run
from weft.tasks.task import Pipeline, Task, Training, training_of
from weft.train.checkpoints import Checkpoints

UPDATES = 7
SHARED = (
    f"training.max_updates={UPDATES}",
    "training.validate_every=3",
    "training.save_every=2",
    "training.accumulate=2",
    "training.log_every=1",
    "training.monitors=false",
    "training.device=cpu",
    "training.tensorboard=false",
)
BATCHES = 2 * UPDATES
"""Of a whole training; where a state is carried an update has one, and the last places are never reached."""


class Killed(BaseException):
    """As kill -9: nothing of the loop catches it, nothing is saved."""


def killed() -> None:
    raise Killed


def terminated() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def train(
    name: str,
    folder: Path,
    run: str,
    at: int = 0,
    act: Callable[[], None] = killed,
) -> Answer:
    """Train the tiny recipe of a task; `act` as its at-th training batch is made, counted from 1."""
    kind = KINDS[name]
    recipe = kind.make(folder / "toy") if not (folder / "toy").exists() else next(folder.glob("toy/*.yaml"))
    made: list[Any] = []

    def watched(pipeline: Pipeline) -> Training:
        training = training_of(pipeline)
        if "collate" in vars(training):  # asked for a second time
            return training
        collate = training.collate

        def collated(numbers: Any) -> Any:
            made.append(numbers)
            if len(made) == at:
                act()
            return collate(numbers)

        training.collate = collated  # type: ignore[method-assign]
        return training

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("weft.train.ready.training_of", watched)
        return weft("train", recipe, "--run", folder / run, *SHARED, *kind.changes)


@pytest.fixture(scope="module", params=KINDS)
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A task by its name, and a folder with its unbroken run."""
    folder = tmp_path_factory.mktemp(request.param.replace(" ", "-"))
    answer = train(request.param, folder, "whole")
    assert answer.code == 0, answer.err
    return request.param, folder


every_task = pytest.mark.parametrize("name", KINDS)


@every_task
def test_every_score_has_a_signature_an_interval_and_a_baseline(name: str, tmp_path: Path) -> None:
    run, given = shared_run(name), KINDS[name].evaluated
    drawn = ("--plot", tmp_path / "scores.png") if name in ("translate", "memory") else ()
    answer = weft("evaluate", run, *given, "--json", tmp_path / "scores.json", *drawn, code=0)
    assert not drawn or drawn[1].read_bytes().startswith(b"\x89PNG")
    found = json.loads((tmp_path / "scores.json").read_text("utf-8"))
    assert list(found)[:5] == ["title", "verdict", "scores", "outputs", "unanswered"]
    assert found["title"] and found["verdict"] and found["outputs"] > 0 and found["unanswered"] == 0
    scores = found["scores"]
    assert scores
    lines = answer.unfolded.splitlines()
    for label, score in scores.items():
        at = next(n for n, line in enumerate(lines) if line.startswith(f"  {label} "))
        assert f"({score['signature']}|n:{score['size']})" in lines[at] and score["size"] > 0, label
        if score["low"] is None:
            assert lines[at + 1].startswith("    no interval: "), label
        else:
            assert score["low"] - 1e-9 <= score["value"] <= score["high"] + 1e-9 and "[" in lines[at], label
        assert score["baselines"] or label == "coverage"  # which has an aim, not a better direction
        for row, (baseline, value) in enumerate(score["baselines"].items(), at + 1 + (score["low"] is None)):
            assert lines[row].startswith(f"    baseline: {baseline} ")
            better = score["value"] > value if score["higher_is_better"] else score["value"] < value
            assert better or "<- the model is " in lines[row], lines[row]
            assert not better or "is worse than" not in lines[row], lines[row]
    first, score = next(iter(scores.items()))
    assert any(line.startswith(f"{first} ") and " the best baseline (" in line for line in lines)
    assert "floor" not in answer.out
    paths = str(run.parent), str(tmp_path)
    assert not [one for one in answer.lines if len(one) > 80 and not any(path in one for path in paths)]


@pytest.mark.slow  # most are drawn by the tests of their commands too
@every_task
def test_every_evaluation_is_drawn(name: str, tmp_path: Path) -> None:
    weft("evaluate", shared_run(name), *KINDS[name].evaluated, "--plot", tmp_path / "scores.png", code=0)
    assert (tmp_path / "scores.png").read_bytes().startswith(b"\x89PNG")


@every_task
def test_every_evaluation_says_beforehand_what_it_shows_and_gives_its_main_score_by_item(name: str) -> None:
    opened = open_run(shared_run(name))
    found = opened.pipeline.evaluate(
        opened.model, split="test" if "test" in KINDS[name].evaluated else "valid"
    )
    assert type(found) is opened.task.evaluation and found.shows
    assert found.title and found.outputs
    assert bool(found.length) == bool(found.lengths)
    main, items = found.scores[0], found.items
    if items is None:
        assert name in ("multilingual", "embeddings")  # a mean of corpora; a correlation
    else:
        assert float(items.metric.value(items.statistics.sum(0))) == pytest.approx(main.value, rel=1e-12)
        assert items.fingerprint
        kept = evidence(items)
        assert kept is not None
        again = Evidence(**json.loads(json.dumps(kept._asdict())))
        assert float(again.metric.value(again.rows.sum(0))) == pytest.approx(main.value, rel=1e-12)


def test_every_task_stands_here() -> None:
    assert {name.split()[0] for name in KINDS} == set(rooms.parts(tasks, Task))


def samples(run: Path) -> list[list[str]]:
    """The sources that each validation has shown."""
    lines = map(json.loads, (run / "metrics.jsonl").read_text("utf-8").splitlines())
    return [[one["source"] for one in line["samples"]] for line in lines if line["event"] == "validation"]


@pytest.mark.parametrize("name", ["translate", "classify", "tag", "masked", "elmo"])
def test_a_second_validation_shows_other_samples(name: str) -> None:
    first, second = samples(shared_run(name))
    assert first != second


@pytest.mark.slow
def test_each_validation_shows_other_samples(trained: tuple[str, Path]) -> None:
    shown = samples(trained[1] / "whole")
    assert len(shown) == 3  # after updates 3, 6 and 7
    if trained[0] not in ("caption", "draw"):  # their toys have three validation examples in all
        assert shown[0] != shown[1] or shown[1] != shown[2]


@pytest.mark.slow
@pytest.mark.parametrize("act", [killed, terminated])
def test_broken_off_between_the_batches_of_an_update_it_goes_on_to_the_bit(
    trained: tuple[str, Path], act: Callable[[], None]
) -> None:
    name, folder = trained
    run = folder / act.__name__
    # The second batch of the third update; where a state is carried, an update has one batch.
    if act is killed:
        with pytest.raises(Killed):
            train(name, folder, run.name, at=6)
    else:
        assert train(name, folder, run.name, at=6, act=act).code == 143
    newest = Checkpoints(run, print).newest()
    assert newest is not None and newest.position.index > 0, "not in the middle of an epoch"
    answer = train(name, folder, run.name)
    assert answer.code == 0 and "resumes after update" in answer.err, answer.err
    agree_to_the_bit(run, folder / "whole", UPDATES)


@pytest.mark.slow
@pytest.mark.parametrize("at", range(1, BATCHES + 1))
def test_ended_at_any_batch_it_goes_on_to_the_bit(trained: tuple[str, Path], at: int) -> None:
    name, folder = trained
    run = f"at{at}"
    ended = train(name, folder, run, at=at, act=terminated)
    assert ended.code == 143 or (ended.code == 0 and at > UPDATES), ended.err
    answer = train(name, folder, run)
    assert answer.code == 0, answer.err
    agree_to_the_bit(folder / run, folder / "whole", UPDATES)


def agree(one: list[Any], other: list[Any]) -> None:
    assert [said for said, _ in one] == [said for said, _ in other]
    for (_, mine), (_, theirs) in zip(one, other, strict=True):
        assert mine == pytest.approx(theirs, abs=1e-5)


@every_task
@pytest.mark.filterwarnings("ignore:the vocabulary lacks")
def test_an_answer_does_not_depend_on_the_others_their_order_or_the_padding(name: str) -> None:
    kind = KINDS[name]
    decoding = [change for change in kind.changes if change.startswith("decoding.")]
    run = open_run(shared_run(name), device="cpu", changes=decoding)
    alone = [kind.answer(run, [each])[0] for each in kind.inputs]
    assert len({repr(each) for each in alone}) > len(alone) // 2, "the answers tell nothing"
    agree(kind.answer(run, kind.inputs), alone)
    padded = [kind.answer(run, [each, kind.inputs[-1]])[0] for each in kind.inputs]
    agree(padded, alone)
    order = random.Random(3).sample(range(len(alone)), len(alone))
    many = kind.answer(run, [kind.inputs[number] for number in order] * 3)
    agree(many, [alone[number] for number in order] * 3)
