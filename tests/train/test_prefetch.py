"""Batches made in a thread are those made when they are due: same training, same errors, no thread left."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.train.toy import Task, quiet, settings
from tests.train.traces import Trace, terminate
from weft.errors import ConfigError, DataError
from weft.train import prefetch
from weft.train.loop import train
from weft.train.position import BatchGroup, Position, groups
from weft.train.prefetch import Prefetcher
from weft.train.processes import Processes, Share

USUAL = settings(validate_every=4, save_every=3, max_epochs=2)


def names() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "weft-prefetch"]


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that lets a CPU make batches ahead."""
    return lambda: monkeypatch.setattr(prefetch, "DEVICES", ("cpu", "cuda"))


@pytest.mark.slow
@pytest.mark.parametrize("graphs", [False, True])
def test_a_training_is_the_same_also_if_it_is_stopped(tmp_path: Path, ahead: Any, graphs: bool) -> None:
    rules = settings(validate_every=4, save_every=3, max_epochs=2, cuda_graphs=graphs)
    plain = Trace(tmp_path / "a", [], train(Task(), tmp_path / "a", rules, quiet(tmp_path / "a")))
    ahead()
    threads: list[list[str]] = []
    watched = Task(on_batch=lambda number: threads.append([threading.current_thread().name]))
    whole = Trace(tmp_path / "b", [], train(watched, tmp_path / "b", rules, quiet(tmp_path / "b")))
    assert whole.differs(plain) == [] and threads.count(["weft-prefetch"]) >= 14
    run = tmp_path / "c"
    assert train(Task(on_batch=terminate(8)), run, rules, quiet(run)).exit_code == 143
    assert Trace(run, [], train(Task(), run, rules, quiet(run))).differs(plain) == []
    assert names() == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", [DataError, ConfigError])
def test_a_batch_that_cannot_be_made_fails_where_it_is_due(tmp_path: Path, ahead: Any, kind: Any) -> None:
    def failing() -> Task:
        task = Task()
        bad = task.plan(1).epoch(1)[4].tolist()  # of the fifth update
        plain = task.collate

        def collate(numbers: np.ndarray) -> Any:
            if numbers.tolist() == bad:
                raise kind("line 41: expected a number")
            return plain(numbers)

        task.collate = collate  # type: ignore[method-assign]
        return task

    left = []
    for name in ("plain", "ahead"):
        run = tmp_path / name
        if name == "ahead":
            ahead()
        with pytest.raises(kind, match="line 41"):
            train(failing(), run, USUAL, quiet(run))
        left.append(sorted(one.name for one in (run / "checkpoints").iterdir()))
    assert left[0] == left[1] and names() == []


class Order:
    """Two batches an epoch; the third epoch cannot be read."""

    def epoch(self, number: int) -> list[np.ndarray]:
        if number == 2:
            raise DataError("the order is damaged")
        return [np.array([number]), np.array([number + 10])]


class Adding:
    """Training data whose batches are sums."""

    def collate(self, numbers: np.ndarray) -> int:
        return int(numbers.sum())


def prefetcher(**changes: Any) -> Prefetcher:
    given: dict[str, Any] = {
        "groups": groups(Order(), Position(), 1),
        "shares": lambda group: [Share(0, group.numbers[0])],
        "training": Adding(),
        "seed": 1,
    }
    return Prefetcher(**{**given, **changes})


def test_an_error_of_the_order_comes_after_the_groups_before_it() -> None:
    with prefetcher() as coming:
        assert [next(coming).made for _ in range(4)] == [{0: 0}, {0: 10}, {0: 1}, {0: 11}]
        with pytest.raises(DataError, match="damaged"):
            next(coming)


def test_it_ends_where_the_groups_end() -> None:
    group = BatchGroup(0, 0, [np.array([1])], 1, 1, 0)
    with prefetcher(groups=iter([group]), shares=lambda _: []) as coming:
        assert len(list(coming)) == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ZeroDivisionError])
def test_no_thread_outlives_its_training(error: Any) -> None:
    with pytest.raises(error), prefetcher() as coming:
        next(coming)
        raise error
    assert names() == []


def test_no_more_batches_than_asked_for_wait() -> None:
    begun = threading.Semaphore(0)

    class Counting(Adding):
        made = 0

        def collate(self, numbers: np.ndarray) -> int:
            self.made += 1
            begun.release()
            return super().collate(numbers)

    training = Counting()
    with prefetcher(training=training) as coming:
        next(coming)
        for _ in range(prefetch.AHEAD + 1):
            assert begun.acquire(timeout=5)
        assert training.made <= 1 + prefetch.AHEAD + 1  # taken, waiting, and the next one in hand


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("even", [False, True])
def test_each_of_several_processes_makes_its_own_share(count: int, even: bool) -> None:
    group = BatchGroup(0, 0, [np.array([1, 2, 4, 8]), np.array([16, 32, 64])], 2, 1, 0)
    total = 0
    for rank in range(count):
        processes = object.__new__(Processes)
        processes.count, processes.rank = count, rank
        mine = processes.part(group, 2, even=even)
        with prefetcher(groups=iter([group]), shares=lambda group, mine=mine: mine) as coming:
            made = next(coming).made
        assert made == {share.offset: share.numbers.sum() for share in mine} and len(made) == len(mine)
        total += sum(int(share.numbers.sum()) for share in mine if share.counts)
    assert total == 127
