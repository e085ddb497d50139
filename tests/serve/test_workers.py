"""Several processes: one copy of the weights, one address, and no request lost when they change."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.commands.shell import refused, weft
from tests.export.runs import translator
from tests.serve.client import Reply, ask, post
from tests.serve.test_reloading import ASKED, changed, until
from weft.store import files, weights

ROOT = Path(__file__).resolve().parent.parent.parent

pytestmark = pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="reads Linux's /proc")


@contextlib.contextmanager
def workers(run: Path, count: int) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server with several workers that listen, and its address."""
    command = [sys.executable, "-m", "weft", "serve", str(run), "--port", "0", "--workers", str(count)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        try:
            address = re.findall(r"http://\S+", process.stderr.readline())[0]
            until(lambda: len(children(process.pid)) == count)
            yield process, address
        finally:
            process.kill()


def children(process: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def private_mb(process: int) -> float:
    """The memory that a process shares with no other."""
    found = re.findall(r"^Private_\w+:\s+(\d+) kB", Path(f"/proc/{process}/smaps_rollup").read_text(), re.M)
    return sum(map(int, found)) / 1024


def resident_mb(process: int) -> float:
    found = re.findall(r"^Rss:\s+(\d+) kB", Path(f"/proc/{process}/smaps_rollup").read_text(), re.M)
    return int(found[0]) / 1024


@pytest.mark.slow
def test_workers_share_one_copy_of_the_weights(library: None, tmp_path: Path) -> None:
    run = translator(tmp_path / "wide", inner=600_011)
    weights_mb = (run / "model.safetensors").stat().st_size / 2**20
    assert weights_mb > 220
    with workers(run, 2) as (process, address):
        asked = {"q": "Open the file.", "source": "en", "target": "es"}
        statuses = [post(f"{address}/translate", asked).status for _ in range(6)]
        assert statuses == [200] * 6
        for worker in children(process.pid):
            assert resident_mb(worker) > weights_mb
            assert private_mb(worker) < weights_mb / 2


@pytest.mark.slow
def test_a_worker_that_dies_is_started_again_and_a_signal_ends_all(library: None, runs: Path) -> None:
    with workers(runs / "toy", 2) as (process, address):
        assert post(f"{address}/translate", ASKED).body == {"translatedText": "uno due"}
        first, second = children(process.pid)
        os.kill(first, signal.SIGKILL)
        assert process.stderr is not None
        assert process.stderr.readline() == "a worker ended by signal 9; another one starts\n"
        until(lambda: len(children(process.pid)) == 2)
        assert first not in children(process.pid)
        assert second in children(process.pid)
        for _ in range(6):
            assert post(f"{address}/translate", ASKED).status == 200

        def counted(line: str) -> bool:  # by all workers, whoever answers
            return (
                re.search(rf"^{re.escape(line)} [67]\.0$", ask(f"{address}/metrics").body, re.M) is not None
            )

        until(lambda: counted('weft_requests_total{path="/translate",status="200"}'))
        until(lambda: counted("weft_answers_items_total"))
        replies: list[Reply] = []
        many = {**ASKED, "q": ["alpha beta gamma delta alpha beta"] * 128}
        thread = threading.Thread(target=lambda: replies.append(post(f"{address}/translate", many)))
        thread.start()
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        thread.join(60)
        assert process.wait(60) == 0
        assert process.stderr.read() == ""
        assert [one.status for one in replies] == [200]


@pytest.mark.slow
def test_new_workers_take_over_a_changed_model_and_no_request_is_dropped(
    library: None, runs: Path, tmp_path: Path
) -> None:
    shutil.copytree(runs / "toy", tmp_path / "toy")
    model = tmp_path / "toy" / "model.safetensors"
    with workers(tmp_path / "toy", 2) as (process, address):
        old = children(process.pid)
        replies: list[Reply] = []
        enough = threading.Event()

        def ask_on() -> None:
            while not enough.is_set():
                replies.append(post(f"{address}/translate", ASKED))

        threads = [threading.Thread(target=ask_on) for _ in range(3)]
        for thread in threads:
            thread.start()
        until(lambda: len(replies) > 9)
        files.replace(model, changed(model, 401))

        def taken_over() -> bool:
            return not set(old) & set(children(process.pid))

        until(taken_over)
        versions = [ask(f"{address}/api/runs").body[0]["version"]["update"] for _ in range(6)]
        enough.set()
        for thread in threads:
            thread.join(60)
        assert versions == [401] * 6
        assert {one.status for one in replies} == {200}
        assert replies[0].body != replies[-1].body
        new = children(process.pid)
        assert len(new) == 2
        os.kill(process.pid, signal.SIGKILL)  # workers end with their parent
        until(lambda: not any(Path(f"/proc/{one}").exists() for one in new))


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2])
def test_neither_a_model_that_is_no_number_nor_sighup_ends_the_server(
    library: None, runs: Path, tmp_path: Path, count: int
) -> None:
    shutil.copytree(runs / "toy", tmp_path / "toy")
    model = tmp_path / "toy" / "model.safetensors"
    command = [sys.executable, "-m", "weft", "serve", str(tmp_path / "toy"), "--port", "0"]
    command += ["--workers", str(count)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        try:
            address = re.findall(r"http://\S+", process.stderr.readline())[0]
            assert post(f"{address}/translate", ASKED).body == {"translatedText": "uno due"}
            found = weights.load(model)
            files.replace(model, weights.pack({name: one * torch.nan for name, one in found.items()}))
            said = process.stderr.readline()
            assert said.startswith("toy: the change on disk is not used: ") and "are not finite" in said
            for one in (process.pid, *children(process.pid)):
                os.kill(one, signal.SIGHUP)
            time.sleep(0.5)
            assert post(f"{address}/translate", ASKED).body == {"translatedText": "uno due"}
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0 and process.stderr.read() == ""
        finally:
            process.kill()


def test_workers_are_refused_on_a_gpu(library: None, runs: Path) -> None:
    said = refused(weft("serve", runs / "toy", "--port", 0, "--workers", 2, "--device", "cuda"))
    assert "--workers: expected 1 with --device cuda" in said
