"""Short requests are answered while a long one is computed, which is cut and takes turns with others."""

import asyncio
import threading
from typing import Any

import pytest

from weft.serve.batcher import PADDED, Batcher, BatchJob, Stopped


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
