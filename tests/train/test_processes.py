"""Two and four processes train what one trains; a signal or a dead process ends all of them."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import distributed

from tests.commands import corpus
from tests.train.several import train_toy
from tests.train.traces import measured
from weft.train.position import BatchGroup
from weft.train.processes import Processes, fresh

ROOT = Path(__file__).resolve().parents[2]
USUAL = {"double": True, "size": 4, "dropout": 0.0, "max_epochs": 0, "max_updates": 50}


def started(run: Path, count: int, **asked: Any) -> list[subprocess.Popen[bytes]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    base = dict(os.environ) | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.train.several", str(run), json.dumps(USUAL | asked)]
    own = [{"WORLD_SIZE": str(count), "RANK": str(rank)} for rank in range(count)]
    return [subprocess.Popen(command, cwd=ROOT, env=base | env, stderr=subprocess.PIPE) for env in own]


def trained(run: Path, count: int, **asked: Any) -> dict[str, torch.Tensor]:
    if count == 1 and not asked.get("compile"):  # spares a process that imports torch
        train_toy(run, USUAL | asked)
        return load_file(run / "model.safetensors")
    for child in started(run, count, **asked):
        _, said = child.communicate(timeout=300)
        assert child.returncode == 0, said.decode()
    return load_file(run / "model.safetensors")


def furthest(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> float:
    assert one.keys() == other.keys()
    return max(float((one[name] - other[name]).abs().max()) for name in one)


@pytest.mark.slow
def test_whole_batches_are_dealt_out_and_dropout_goes_with_the_batch(tmp_path: Path) -> None:
    """Three batches an update, an epoch's last one alone: 50 updates of one process, in float64."""
    one = trained(tmp_path / "one", 1, dropout=0.3)
    two = trained(tmp_path / "two", 2, dropout=0.3)
    assert furthest(one, two) < 1e-6
    assert json.loads((tmp_path / "two" / "outcome.json").read_text()) == ["max_updates", 50]


@pytest.mark.slow
def test_with_fewer_batches_than_processes_rows_are_dealt_out(tmp_path: Path) -> None:
    """One batch of 4 rows an update, the last one of 3, so that one of four processes has nothing."""
    one = trained(tmp_path / "one", 1, accumulate=1)
    assert furthest(one, trained(tmp_path / "four", 4, accumulate=1)) < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["skip", "roll_back"])
def test_a_loss_that_is_not_finite_on_one_process_is_left_out_by_all(tmp_path: Path, policy: str) -> None:
    asked = {"model": "stumbling", "non_finite": policy, "max_skips": 99, "max_updates": 12, "save_every": 1}
    one = trained(tmp_path / "one", 1, **asked)
    assert furthest(one, trained(tmp_path / "two", 2, **asked)) < 1e-6
    assert max(line.get("skipped", 0) for line in measured(tmp_path / "two")) > 2, "no batch stumbled"


@pytest.mark.slow
def test_a_loss_that_is_not_finite_on_one_process_ends_all(tmp_path: Path) -> None:
    ends = []
    for child in started(tmp_path / "run", 2, model="stumbling", non_finite="raise"):
        _, said = child.communicate(timeout=300)
        ends.append((child.returncode != 0, b"the loss is inf" in said))
    assert [failed for failed, _ in ends] == [True, True] and any(named for _, named in ends), ends


@pytest.mark.slow
def test_a_run_goes_on_with_another_number_of_processes(tmp_path: Path) -> None:
    whole = trained(tmp_path / "whole", 1, double=False, dropout=0.3)
    for count, updates in ((1, 20), (2, 35), (1, 50)):
        parts = trained(tmp_path / "parts", count, double=False, dropout=0.3, max_updates=updates)
    assert furthest(whole, parts) < 1e-5


def test_every_example_is_in_one_part() -> None:
    numbers = [np.arange(at, at + 3) for at in (0, 3, 6)]
    group = BatchGroup(0, 0, numbers, 9, 0, 3)
    for accumulate in (1, 3):
        parts = []
        for rank in range(2):
            one = Processes(torch.device("cpu"))
            one.rank, one.count = rank, 2
            parts += [number for share in one.part(group, accumulate) for number in share.numbers.tolist()]
        assert sorted(parts) == list(range(9))


def command(recipe: Path, run: Path) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "weft", "train", str(recipe), "--run", str(run), "--processes", "2"]
    env = dict(os.environ) | {"WEFT_CACHE": str(run.parent / "cache"), "OMP_NUM_THREADS": "2"}
    long = ["training.max_updates=100000", "training.validate_every=50", "data.validate_rows=2"]
    return subprocess.Popen(
        [*words, *long], cwd=ROOT, env=env, stderr=subprocess.PIPE, stdout=subprocess.PIPE
    )


def trains(run: Path, seconds: float = 240.0) -> None:
    """Wait until updates are logged."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        path = run / "metrics.jsonl"
        if path.exists() and b'"update"' in path.read_bytes():
            return
        time.sleep(0.1)
    raise AssertionError("training did not begin")


def children(parent: int) -> list[int]:
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, text=True)
    return [int(word) for word in listed.stdout.split()]


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_saves_once_and_ends_all(tmp_path: Path, number: int, code: int) -> None:
    run = tmp_path / "run"
    with command(corpus.make(tmp_path / "toy"), run) as parent:
        trains(run)
        parent.send_signal(number)
        _, said = parent.communicate(timeout=120)
    assert parent.returncode == code, said.decode()
    assert said.count(b"stopped after update") == 1
    assert b"the same command resumes" in said and b"--processes 2" in said
    assert list((run / "checkpoints").glob("step-*"))


@pytest.mark.slow
def test_a_dead_process_ends_all_with_one_sentence(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with command(corpus.make(tmp_path / "toy"), run) as parent:
        trains(run)
        os.kill(children(parent.pid)[1], signal.SIGKILL)
        begun = time.monotonic()
        _, said = parent.communicate(timeout=120)
    # A second or two where there is a free core; the parent's own end took 20 s at a load of 22.
    assert parent.returncode == 128 + signal.SIGKILL and time.monotonic() - begun < 60
    assert said.count(b"weft: ") == 1 and b"Traceback" not in said, said.decode()
    assert b"weft: process 1 of 2 ended (killed by signal 9); all were stopped" in said


@pytest.mark.slow
def test_a_killed_process_is_replaced_and_all_go_on_from_the_newest_checkpoint(tmp_path: Path) -> None:
    """torchrun --max-restarts: process 1 kills itself once, in its 25th batch.

    An epoch has 3 updates, in which it has 2 batches, and ends with a checkpoint: it dies in update 37.
    """
    one = trained(tmp_path / "one", 1)
    run = tmp_path / "two"
    asked = {"double": True, "size": 4, "dropout": 0.0, "max_epochs": 0, "max_updates": 50, "save_every": 10}
    asked["dies"] = {"rank": 1, "batch": 24}
    starter = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--max-restarts", "1"]
    command = [sys.executable, *starter, "-m", "tests.train.several", str(run), json.dumps(asked)]
    env = dict(os.environ) | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert (run / "died").exists()
    notes = (run / "notes.txt").read_text()
    begun = [int(word) for word in re.findall(r"training resumes after update (\d+)", notes)]
    assert notes.count("training starts") == 1 and begun == [36]
    assert furthest(one, load_file(run / "model.safetensors")) < 1e-6


@pytest.mark.slow
def test_a_training_on_two_hosts_goes_on_after_one_of_its_processes_was_killed(tmp_path: Path) -> None:
    """Two torchruns, as on two hosts: both start their processes anew, and count their restarts apart."""
    run = tmp_path / "two"
    asked = {"double": True, "size": 4, "dropout": 0.0, "max_epochs": 0, "max_updates": 40, "save_every": 10}
    asked["dies"] = {"rank": 1, "batch": 14}
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    starter = ["-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1", "--max-restarts", "2"]
    starter += ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}", "--rdzv-id", "two-hosts"]
    command = [sys.executable, *starter, "-m", "tests.train.several", str(run), json.dumps(asked)]
    env = dict(os.environ) | {"OMP_NUM_THREADS": "1"}
    log = tmp_path / "said.txt"
    with log.open("wb") as said:
        hosts = [subprocess.Popen(command, cwd=ROOT, env=env, stdout=said, stderr=said) for _ in range(2)]
        try:
            codes = [host.wait(timeout=300) for host in hosts]
        finally:
            for host in hosts:
                host.kill()
    assert codes == [0, 0], log.read_text("utf-8", "replace")
    assert (run / "died").exists()
    notes = (run / "notes.txt").read_text()
    assert notes.count("training starts") == 1 and notes.count("training resumes after update") >= 1
    one = trained(tmp_path / "one", 1, max_updates=40)
    assert furthest(one, load_file(run / "model.safetensors")) < 1e-6


def test_what_dead_processes_left_in_a_store_is_not_read() -> None:
    """Three starts through one store, of which the first was killed before it was done."""
    store = distributed.TCPStore("127.0.0.1", 0, is_master=True, timeout=timedelta(seconds=30))
    store.set("weft/asks/1", "weft/dead")  # asked, and was killed
    store.set("weft/dead/name", "weft/dead-first")
    store.set("weft/dead-first/has/1", "")

    def start(rank: int) -> tuple[str, str]:
        own = distributed.TCPStore("127.0.0.1", store.port, is_master=False, timeout=timedelta(seconds=30))
        found = fresh(own, rank, 3)
        before = found.get("address").decode() if found.check(["address"]) else ""
        found.set(f"here/{rank}", "")
        if rank == 0:
            found.wait(["here/1", "here/2"])
            found.set("address", f"{time.monotonic()}")
        return before, found.get("address").decode()

    seen = []
    for _ in range(2):
        with ThreadPoolExecutor(3) as several:
            told = list(several.map(start, range(3)))
        assert {before for before, _ in told} == {""}
        assert len({address for _, address in told}) == 1
        seen.append(told[0][1])
    assert seen[0] != seen[1]
