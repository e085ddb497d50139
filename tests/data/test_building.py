"""Stores are byte-identical for any number of processes, and building resumes after a kill."""

import json
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.data.test_store import PAIRS, both, build
from weft.data import building
from weft.data.building import EncodedPairs
from weft.data.store import TokenStore
from weft.errors import DataError

ROOT = Path(__file__).resolve().parents[2]


def many(count: int) -> Iterator[tuple[int, str, str]]:
    for number in range(count):
        yield number, "a bb " * (number % 7), f"{'c' * (1 + number % 11)} d"


def content(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_several_processes_build_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(tmp_path / "one", many(1000), processes=1, max_length=11)
    monkeypatch.setattr(building, "PIECE", 37)
    monkeypatch.setattr(building, "BATCH", 10)
    forks: list[int] = []
    fork = os.fork
    monkeypatch.setattr(os, "fork", lambda: forks.append(1) or fork())
    build(tmp_path / "three", many(1000), processes=3, max_length=11)
    assert len(forks) == 3  # for 28 shards, the last one shorter; the first is encoded here
    assert content(tmp_path / "one") == content(tmp_path / "three")
    assert sorted(os.listdir(tmp_path)) == ["one", "three"]


def test_a_mistake_in_another_process_is_told_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "PIECE", 4)

    def wrong(sources: list[str], targets: list[str]) -> EncodedPairs:
        if "ccccc d" in targets:
            raise DataError("'\\ud800' contains half a surrogate pair")
        return both(sources, targets)

    with pytest.raises(DataError, match="half a surrogate pair"):
        TokenStore.build(tmp_path / "s", many(20), wrong, max_length=9, key="k", processes=2)
    assert os.listdir(tmp_path) == []

    def killed(sources: list[str], targets: list[str]) -> EncodedPairs:
        if "ccccc d" in targets:
            os.kill(os.getpid(), 9)
        return both(sources, targets)

    with pytest.raises(DataError, match="a process that encoded text was killed by signal 9; run the same"):
        TokenStore.build(tmp_path / "s", many(20), killed, max_length=9, key="k", processes=2)


def test_a_worker_of_a_pool_builds_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "PIECE", 4)
    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", True)
    assert (
        len(build(tmp_path / "store", many(20), processes=0, max_length=11)) == 20 - 3 - 2
    )  # three empty, two too long


KILLED = """
import os, sys, time
from pathlib import Path
from tests.data import test_building as suite
from weft.data import building

building.PIECE, building.JOURNAL, building.BATCH = 50, 100, 10
place = Path(sys.argv[1])

def slow():
    for pair in suite.many(1000):
        if pair[0] == 700:
            assert (place.parent / ".store.building" / "done.json").exists()
            os.kill(os.getpid(), 9)
        yield pair

suite.build(place, slow(), processes=2, max_length=11)
"""


def test_a_build_that_was_killed_goes_on_where_it_stopped(tmp_path: Path) -> None:
    place = tmp_path / "store"
    done = subprocess.run([sys.executable, "-c", KILLED, str(place)], cwd=ROOT, check=False)
    assert done.returncode == -9 and not place.exists()
    left = json.loads((tmp_path / ".store.building" / "done.json").read_text())["report"]["pairs"]
    assert left in range(100, 700)
    encoded: list[int] = []

    def counted(sources: list[str], targets: list[str]) -> EncodedPairs:
        encoded.append(len(sources))
        return both(sources, targets)

    TokenStore.build(place, many(1000), counted, max_length=11, key="k", processes=1)
    assert sum(encoded) == 1000 - left
    build(tmp_path / "unbroken", many(1000), max_length=11, processes=1)
    assert content(place) == content(tmp_path / "unbroken")
    assert sorted(os.listdir(tmp_path)) == ["store", "unbroken"]


def test_what_was_left_under_another_key_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / ".store.building").mkdir()
    note = {"key": "other", "report": {"pairs": 2, "kept": 2, "too_long": 0, "empty": 0, "cut": 0}}
    note |= {"version": building.VERSION, "bytes": dict.fromkeys(building.FILES, 8)}
    (tmp_path / ".store.building" / "done.json").write_text(json.dumps(note))
    for name in building.FILES:
        (tmp_path / ".store.building" / name).write_bytes(bytes(16))
    assert len(build(tmp_path / "store", PAIRS)) == 3
