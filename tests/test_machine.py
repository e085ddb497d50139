"""kill -9 of a launcher (weft's or torchrun) leaves no process that keeps running or keeps the run locked."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.commands import corpus
from tests.commands.shell import weft

ROOT = Path(__file__).parents[1]
PYTHON = sys.executable
TORCHRUN = [
    PYTHON,
    "-m",
    "torch.distributed.run",
    "--standalone",
    "--nproc-per-node",
    "2",
    "--no-python",
    "--",
    str(Path(PYTHON).with_name("weft")),
]
ENDLESS = ("training.max_updates=1000000", "training.validate_every=50", "data.validate_rows=2")

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")


def until(happened: Callable[[], bool], seconds: float, what: str) -> None:
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def descendants(pid: int) -> list[int]:
    """All descendants of a process."""
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True)
    parents = {int(own): int(above) for own, above in (line.split() for line in listed.stdout.splitlines())}
    found, todo = [], [pid]
    while todo:
        above = todo.pop()
        below = [own for own, one in parents.items() if one == above and own != above]
        found += below
        todo += below
    return found


def alive(pids: Sequence[int]) -> list[int]:
    asked = ["ps", "-o", "pid=,stat=", "-p", ",".join(map(str, pids))]
    listed = subprocess.run(asked, capture_output=True, text=True)
    found = [line.split() for line in listed.stdout.splitlines()]
    return [int(pid) for pid, state in found if not state.startswith("Z")]


def killed(command: Sequence[str], working: Callable[[], bool], folder: Path) -> None:
    """Start a launcher, kill it once its processes are running, and check that they end."""
    env = os.environ | {"WEFT_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
    with (folder / "said.txt").open("wb") as said:
        launcher = subprocess.Popen(command, cwd=ROOT, env=env, stdout=said, stderr=said)
    started: list[int] = []
    try:
        until(lambda: working() or launcher.poll() is not None, 240, "the work did not begin")
        assert launcher.poll() is None, (folder / "said.txt").read_text("utf-8", "replace")
        started = descendants(launcher.pid)
        assert len(started) >= 2
        launcher.kill()
        assert launcher.wait() == -signal.SIGKILL
        until(lambda: not alive(started), 60, f"{alive(started)} work on without their launcher")
    finally:
        launcher.kill()
        launcher.wait()
        for pid in alive(started) if started else ():
            os.kill(pid, signal.SIGKILL)


def trains(run: Path) -> Callable[[], bool]:
    log = run / "metrics.jsonl"
    return lambda: log.exists() and b'"update"' in log.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["--processes", "torchrun"])
def test_processes_of_a_training_end_with_their_launcher(launcher: str, tmp_path: Path) -> None:
    recipe, run = corpus.make(tmp_path / "toy"), tmp_path / "run"
    words = ["train", str(recipe), "--run", str(run), *ENDLESS]
    ours = [PYTHON, "-m", "weft", *words, "--processes", "2"]
    killed(ours if launcher == "--processes" else [*TORCHRUN, *words], trains(run), tmp_path)
    saved = max(int(path.name.removeprefix("step-")) for path in (run / "checkpoints").glob("step-*"))
    # no process keeps it locked
    again = weft("train", recipe, "--run", run, *ENDLESS[1:], f"training.max_updates={saved + 3}", code=0)
    assert f"resumes after update {saved}" in again.err, again.err


@pytest.mark.slow
def test_processes_of_a_bulk_prediction_end_with_their_launcher(tmp_path: Path) -> None:
    weft("train", corpus.make(tmp_path / "toy"), "--run", tmp_path / "run", "training.max_updates=1", code=0)
    text, out = tmp_path / "in.txt", tmp_path / "out.txt"
    text.write_text("alpha beta gamma\n" * 2_000_000)
    words = ["predict", str(tmp_path / "run"), str(text), "--output", str(out), "--processes", "2"]
    parts = tmp_path / "out.txt.parts"
    killed([PYTHON, "-m", "weft", *words], lambda: len(list(parts.glob("0*"))) >= 2, tmp_path)
    before = sorted(path.name for path in parts.glob("0*"))
    time.sleep(0.5)
    assert sorted(path.name for path in parts.glob("0*")) == before and not out.exists()


CHILD = """
import os, signal, sys, time
from weft import machine
machine.POLL_SECONDS, machine.GRACE_SECONDS = 0.05, {grace}
if {alone}:
    machine._signalled_by_kernel = lambda: False
signal.signal(signal.SIGTERM, {handler})
machine.end_with_parent()
print("begun", flush=True)
while True:
    time.sleep(0.01)
"""
PARENT = """
import os, subprocess, sys, time
env = os.environ | {{"WEFT_LAUNCHED": str(os.getpid())}}
child = subprocess.Popen([sys.executable, "-c", {child!r}], env=env, stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("alone", [False, True], ids=["told by the kernel", "by its own thread"])
@pytest.mark.parametrize("handler", ["signal.SIG_DFL", "signal.SIG_IGN"])
def test_a_process_ends_with_its_parent_also_if_it_does_not_listen(alone: bool, handler: str) -> None:
    child = CHILD.format(grace=30.0 if handler == "signal.SIG_DFL" else 0.1, alone=alone, handler=handler)
    with subprocess.Popen(
        [PYTHON, "-c", PARENT.format(child=child)], cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
    ) as launcher:  # fmt: skip
        assert launcher.stdout is not None
        pid = int(launcher.stdout.readline())
        assert alive([pid])
        launcher.kill()
        launcher.wait()
        until(lambda: not alive([pid]), 15, "the child works on")


def test_a_process_whose_parent_has_died_already_ends_at_once() -> None:
    env = os.environ | {"WEFT_LAUNCHED": "1" if os.getppid() != 1 else "2", "PYTHONPATH": str(ROOT)}
    code = "from weft import machine; machine.end_with_parent(); print('works on')"
    done = subprocess.run([PYTHON, "-c", code], env=env, capture_output=True, text=True)
    assert done.returncode == 143 and not done.stdout


def test_a_process_that_no_launcher_started_outlives_its_parent() -> None:
    child = CHILD.format(grace=0.1, alone=False, handler="signal.SIG_DFL")
    parent = PARENT.format(child=child).replace("WEFT_LAUNCHED", "NOTHING")
    launched = ("WEFT_LAUNCHED", "TORCHELASTIC")
    env = {key: value for key, value in os.environ.items() if not key.startswith(launched)}
    with subprocess.Popen(
        [PYTHON, "-c", parent], cwd=ROOT, env=env | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE
    ) as launcher:
        assert launcher.stdout is not None
        pid = int(launcher.stdout.readline())
        launcher.kill()
        launcher.wait()
        time.sleep(0.5)
        assert alive([pid])
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("count", ["1", "2"])
def test_a_process_leaves_with_its_code_and_its_output(count: str) -> None:
    program = (
        "import atexit, sys; from weft.machine import leave; atexit.register(print, 'handler');"
        "print('written', end=' '); sys.stderr.write('told'); leave(3)"
    )
    environment = {**os.environ, "WORLD_SIZE": count, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([PYTHON, "-c", program], env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (3, b"written handler\n", b"told")


def test_one_of_several_processes_does_not_shut_python_down() -> None:
    """Where gloo's threads could abort it; an object left in a module tells of the shutdown."""
    program = (
        "import sys; from weft.machine import leave\n"
        "class Kept:\n    def __del__(self): print('shut down', flush=True)\n"
        "kept = Kept(); leave(0)"
    )
    for count, told in (("1", b"shut down\n"), ("2", b"")):
        environment = {**os.environ, "WORLD_SIZE": count, "PYTHONPATH": str(ROOT)}
        done = subprocess.run([PYTHON, "-c", program], env=environment, capture_output=True, check=True)
        assert done.stdout == told
