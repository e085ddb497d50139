"""Time sharing, counted in steps instead of seconds; and short requests while a long one is computed."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from weft.serve.batcher import PADDED, SHARES, Batcher, BatchJob, Stopped, Turns


def run_together(shares: Sequence[float], steps: Sequence[int]) -> list[int]:
    """Lanes that all begin at once, each with a number of steps: which lane did each step."""
    done: list[int] = []
    turns = Turns([*shares, 1], clock=lambda: len(done), head_start=0)
    held = len(shares)
    turns.begin(held)  # until every lane waits

    def work(lane: int) -> None:
        turns.begin(lane)
        for _ in range(steps[lane]):
            done.append(lane)
            turns.pause(lane)
        turns.end(lane)

    threads = [threading.Thread(target=work, args=(lane,)) for lane in range(len(shares))]
    for thread in threads:
        thread.start()
    while len(turns._active) <= held:
        threading.Event().wait(0.001)
    turns.end(held)
    for thread in threads:
        thread.join(20)
    return done


def test_lanes_take_turns_by_their_shares() -> None:
    done = run_together([4, 1], [40, 40])
    assert sorted(done) == [0] * 40 + [1] * 40
    first = done[:50]
    assert (first.count(0), first.count(1)) == (40, 10)
    assert done[50:] == [1] * 30


def test_three_lanes_with_work_have_the_shares_of_the_server() -> None:
    done = run_together(SHARES, [400, 400, 400])[:700]
    assert [done.count(lane) for lane in range(3)] == pytest.approx([400, 200, 100], abs=2)


def test_a_lane_that_was_idle_begins_with_a_head_start_and_has_saved_nothing() -> None:
    done: list[int] = []
    turns = Turns([4, 1], clock=lambda: len(done), head_start=5)

    def steps(lane: int, count: int, then: Callable[[], Any] = lambda: None) -> None:
        turns.begin(lane)
        for step in range(count):
            if step == count // 2:
                then()
            done.append(lane)
            turns.pause(lane)
        turns.end(lane)

    late = threading.Thread(target=steps, args=(0, 1000))

    def begin_late() -> None:
        late.start()
        while len(turns._active) < 2:
            threading.Event().wait(0.001)

    steps(1, 2000, begin_late)
    late.join(20)
    begun = done.index(0)
    assert begun <= 1001
    assert done[begun : begun + 20] == [0] * 20  # 5 seconds of a share of 4
    assert done[begun + 20 : begun + 1000].count(0) == pytest.approx(4 / 5 * 980, abs=10)


class Steps:
    """Work in steps, each noted: a number of them, or until told that it is enough."""

    def __init__(self, name: str, done: list[str], count: int = 0) -> None:
        self.name = name
        self.count = count
        self.done = done
        self.begun = threading.Event()
        self.enough = threading.Event()

    def __call__(self, items: list[Any], stopped: Stopped) -> list[Any]:
        steps = range(self.count) if self.count else iter(lambda: self.enough.wait(0.0005), True)
        for _ in steps:
            self.done.append(self.name)
            self.begun.set()
            stopped()
        return items


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The steps done; the time of the batchers made afterwards is their number."""
    done: list[str] = []
    of_a_batcher = Batcher.__init__.__globals__
    turns = lambda shares: Turns(shares, clock=lambda: len(done), head_start=0)  # noqa: E731
    monkeypatch.setitem(of_a_batcher, "Turns", turns)
    return done


def test_a_short_request_is_answered_while_a_long_one_is_computed(counted: list[str]) -> None:
    async def scene() -> None:
        batcher = Batcher("test", most=20, rows=5)
        hostile = Steps("long", counted)
        long = asyncio.ensure_future(batcher.ask(BatchJob("k", hostile, ["x" * 20_000], 60)))
        await asyncio.to_thread(hostile.begun.wait, 20)
        for number in range(30):
            short = Steps(f"short {number}", counted, 40)
            assert await batcher.ask(BatchJob("k", short, ["x"], 60)) == ["x"]
            mine = [n for n, name in enumerate(counted) if name == short.name]
            between = counted[mine[0] : mine[-1]].count("long")
            assert between <= 40 / SHARES[0] + 1  # 1.3 times the steps of the short request alone
        assert not long.done()
        hostile.enough.set()
        assert await long == ["x" * 20_000]
        batcher.drain()

    asyncio.run(scene())


def test_a_long_request_is_cut_and_other_long_ones_take_turns_with_it() -> None:
    async def scene() -> None:
        begun, go = threading.Event(), threading.Event()
        batches: list[list[str]] = []

        def work(items: list[str], stopped: Stopped) -> list[str]:
            begun.set()
            assert go.wait(20)
            batches.append(items)
            return [item.upper() for item in items]

        batcher = Batcher("test", most=200, rows=5)
        lines = [letter * (900 + n) for n, letter in enumerate("abcdefghijkl")]
        first = asyncio.ensure_future(batcher.ask(BatchJob("k", work, lines, 20)))
        await asyncio.to_thread(begun.wait, 20)
        second = asyncio.ensure_future(batcher.ask(BatchJob("k", work, ["z" * 6000] * 3, 20)))
        await asyncio.sleep(0.01)
        go.set()
        assert await first == [line.upper() for line in lines]
        assert await second == ["Z" * 6000] * 3
        assert [[item[0] for item in batch] for batch in batches] == [
            ["l", "k", "j", "i", "h"],  # the longest first
            ["g", "f", "e", "d", "c"],  # was next when the second request came
            ["z", "z"],
            ["b", "a"],
            ["z"],
        ]
        assert max(len(batch) * len(batch[0]) for batch in batches) <= PADDED
        batcher.drain()

    asyncio.run(scene())


def test_a_request_that_fails_halfway_is_refused_and_not_computed_further() -> None:
    async def scene() -> None:
        batches = []

        def work(items: list[str], stopped: Stopped) -> list[str]:
            batches.append(items)
            raise ZeroDivisionError

        batcher = Batcher("test", most=200, rows=5)
        with pytest.raises(Exception, match="the model failed"):
            await batcher.ask(BatchJob("k", work, ["x"] * 17, 20))
        while batcher.running:
            await asyncio.sleep(0.005)
        assert batches == [["x"] * 5]
        batcher.drain()

    asyncio.run(scene())
