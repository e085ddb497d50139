"""The queue: bounded, batched, left by whoever leaves; one at fault spoils nobody's answer."""

import asyncio
import threading
from typing import Any

import pytest

from weft.errors import ConfigError
from weft.serve.batcher import PADDED, Batcher, BatchJob, ClientLeft, Stopped
from weft.serve.limits import Refusal


class Held:
    """Work that waits to be let go, so that others queue up behind it."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.begun = threading.Event()
        self.batches: list[list[Any]] = []

    def __call__(self, items: list[Any], stopped: Stopped) -> list[Any]:
        self.begun.set()
        assert self.go.wait(20)
        self.batches.append(list(items))
        if "bad" in items:
            raise ConfigError("bad: expected good")
        if "broken" in items:
            raise ZeroDivisionError
        return [f"{item}!" for item in items]

    @staticmethod
    def at_once(items: list[Any], stopped: Stopped) -> list[Any]:
        return [f"{item}!" for item in items]


def test_what_waits_is_answered_in_one_batch_each_with_its_own() -> None:
    async def scene() -> None:
        work, batcher = Held(), Batcher("test", most=20, rows=5)
        first = asyncio.ensure_future(batcher.ask(BatchJob("k", work, ["a"], 20)))
        await asyncio.to_thread(work.begun.wait, 20)
        waiting = [
            asyncio.ensure_future(batcher.ask(BatchJob(key, work, items, 20)))
            for key, items in (("k", ["b", "c"]), ("k", ["d"]), ("other", ["e"]), ("k", ["f", "g", "h"]))
        ]
        await asyncio.sleep(0.01)
        assert batcher.waiting == 7
        work.go.set()
        answers = await asyncio.gather(first, *waiting)
        assert answers == [["a!"], ["b!", "c!"], ["d!"], ["e!"], ["f!", "g!", "h!"]]
        assert work.batches == [["a"], ["b", "c", "d"], ["e"], ["f", "g", "h"]]
        batcher.drain()

    asyncio.run(scene())


def test_one_at_fault_spoils_nobodys_answer(capsys: pytest.CaptureFixture[str]) -> None:
    async def scene() -> None:
        work, batcher = Held(), Batcher("test", most=20, rows=5)
        jobs = [
            asyncio.ensure_future(batcher.ask(BatchJob("k", work, [item], 20))) for item in ("a", "bad", "b")
        ]
        await asyncio.sleep(0.01)
        work.go.set()
        found = await asyncio.gather(*jobs, return_exceptions=True)
        assert [found[0], found[2]] == [["a!"], ["b!"]]
        assert isinstance(found[1], Refusal)
        assert (found[1].status, found[1].sentence) == (400, "bad: expected good")
        with pytest.raises(Refusal, match="the model failed"):
            await batcher.ask(BatchJob("k", work, ["broken"], 20))
        assert await batcher.ask(BatchJob("k", work, ["c"], 20)) == ["c!"]
        batcher.drain()

    asyncio.run(scene())
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_a_full_queue_says_when_to_come_again_and_who_leaves_makes_room() -> None:
    async def scene() -> None:
        work, batcher = Held(), Batcher("test", most=2, rows=5)
        first = asyncio.ensure_future(batcher.ask(BatchJob("k", work, ["a"], 20)))
        await asyncio.to_thread(work.begun.wait, 20)
        leaver = asyncio.ensure_future(batcher.ask(BatchJob("k", work, ["b", "c"], 20)))
        await asyncio.sleep(0.01)
        with pytest.raises(Refusal, match="2 waiting texts, maximum 2") as full:
            await batcher.ask(BatchJob("k", work, ["d"], 20))
        assert (full.value.status, full.value.retry_after) == (429, 1)
        leaver.cancel()
        await asyncio.sleep(0.01)
        second = asyncio.ensure_future(batcher.ask(BatchJob("k", work, ["e"], 20)))
        await asyncio.sleep(0.01)
        work.go.set()
        assert [await first, await second] == [["a!"], ["e!"]]
        assert work.batches == [["a"], ["e"]]
        batcher.drain()
        with pytest.raises(Refusal, match="shutting down") as ending:
            await batcher.ask(BatchJob("k", work, ["f"], 20))
        assert ending.value.status == 503

    asyncio.run(scene())


def test_clients_take_turns_and_none_fills_the_queue_of_another() -> None:
    async def scene() -> None:
        work, batcher = Held(), Batcher("test", most=16, rows=5)

        def ask(client: str, item: str, count: int = 1) -> Any:
            job = BatchJob(object(), work, [item] * count, 20, client=client)
            return asyncio.ensure_future(batcher.ask(job))

        jobs = [ask("alice", "a0")]
        await asyncio.to_thread(work.begun.wait, 20)
        jobs += [ask("alice", f"a{number}") for number in range(1, 17)]
        jobs += [ask("bob", "b1"), ask("bob", "b2"), ask("carol", "c1")]
        await asyncio.sleep(0.01)
        assert batcher.waiting == 19
        for client, count in (("alice", 1), ("bob", 1), ("dave", 3)):
            with pytest.raises(Refusal, match="19 waiting texts, maximum 16"):
                await ask(client, "x", count)
        jobs.append(ask("dave", "d1", 2))
        await asyncio.sleep(0.01)
        work.go.set()
        await asyncio.gather(*jobs)
        order = [batch[0] for batch in work.batches]
        assert order[:8] == ["a0", "b1", "c1", "d1", "a1", "b2", "a2", "a3"]
        batcher.drain()

    asyncio.run(scene())


def test_work_that_nobody_waits_for_is_given_up_within_a_step() -> None:
    steps = []

    def endless(items: list[Any], stopped: Stopped) -> list[Any]:
        while not stopped():
            steps.append(1)
            threading.Event().wait(0.01)
        raise ClientLeft

    async def scene() -> None:
        batcher = Batcher("test", most=2, rows=5)
        asked = asyncio.ensure_future(batcher.ask(BatchJob("k", endless, ["a"], 20)))
        while not steps:
            await asyncio.sleep(0.005)
        asked.cancel()
        before = len(steps)
        while batcher.running:
            await asyncio.sleep(0.005)
        assert len(steps) - before <= 2
        with pytest.raises(Refusal, match="time limit") as late:
            await batcher.ask(BatchJob("k", endless, ["a"], 0.05))
        assert (late.value.status, late.value.retry_after) == (503, 5)
        batcher.drain()

    asyncio.run(scene())


class Panic(BaseException):
    """As compiled code raises it: no `except Exception` stops it."""


def test_a_worker_that_dies_is_replaced_and_its_requests_are_answered(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def panics(items: list[Any], stopped: Stopped) -> list[Any]:
        raise Panic("retry-limit-in-match over")

    async def scene() -> None:
        batcher = Batcher("test", most=20, rows=5)
        for _ in range(3):
            with pytest.raises(Refusal, match="the model failed") as failed:
                await batcher.ask(BatchJob("k", panics, ["a"], 20))
            assert failed.value.status == 500
            assert await batcher.ask(BatchJob("k", Held.at_once, ["b"], 20)) == ["b!"]
            assert not batcher.trouble
        batcher.drain()
        while not batcher.trouble:
            await asyncio.sleep(0.005)
        assert "has ended" in batcher.trouble

    asyncio.run(scene())
    assert capsys.readouterr().err.count("Panic: retry-limit-in-match over") == 3


def test_a_deadline_holds_although_the_work_never_looks_and_a_stuck_batch_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scene() -> None:
        work, batcher = Held(), Batcher("test", most=20, rows=5)
        with pytest.raises(Refusal, match="time limit") as late:
            await batcher.ask(BatchJob("k", work, ["a"], 0.05))
        assert late.value.status == 503
        assert batcher.running and not batcher.trouble
        monkeypatch.setattr("weft.serve.batcher.STUCK_SECONDS", 0.1)
        while not batcher.trouble:
            await asyncio.sleep(0.005)
        assert "does not finish" in batcher.trouble
        work.go.set()
        assert await batcher.ask(BatchJob("k", work, ["b"], 20)) == ["b!"]
        assert not batcher.trouble
        batcher.drain()

    asyncio.run(scene())


def test_a_short_request_is_answered_while_a_long_one_is_computed() -> None:
    async def scene() -> None:
        begun, enough = threading.Event(), threading.Event()

        def hostile(items: list[Any], stopped: Stopped) -> list[Any]:
            begun.set()
            assert enough.wait(20)
            return items

        batcher = Batcher("test", most=20, rows=5)
        long = asyncio.ensure_future(batcher.ask(BatchJob("k", hostile, ["x" * 20_000], 60)))
        await asyncio.to_thread(begun.wait, 20)
        for _ in range(30):
            job = BatchJob("k", lambda items, stopped: items, ["x"], 60)
            assert await batcher.ask(job) == ["x"]
        assert not long.done()
        enough.set()
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
