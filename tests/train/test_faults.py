"""Saves are whole or not there: a full disk or kill -9 at any call leaves the newest complete checkpoint."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.train.faults import Fault, no_space
from tests.train.saved import HISTORY, newest, save
from weft.errors import CheckpointError
from weft.train.checkpoints import Checkpoints

pytestmark = pytest.mark.usefixtures("no_threads_left")

ROOT = Path(__file__).resolve().parents[2]


def calls_of_a_save(run: Path) -> int:
    save(run, 1)
    with pytest.MonkeyPatch.context() as patch:
        fault = Fault(patch, 0, no_space)
        save(run, 2)
    return fault.calls


def test_a_full_disk_at_any_call_keeps_the_old_one(tmp_path: Path) -> None:
    calls = calls_of_a_save(tmp_path / "count")
    # four files opened, written, flushed; directory made, flushed, renamed, flushed
    assert calls >= 4 * 3 + 4
    for at in range(1, calls + 1):
        run = tmp_path / str(at)
        save(run, 1)
        with pytest.MonkeyPatch.context() as patch:
            Fault(patch, at, no_space)
            with pytest.raises(CheckpointError, match=r"step-00000002: .*No space left .* update 1 is kept"):
                save(run, 2)
        # After the rename the new one is complete, though its directory could not be flushed.
        assert newest(run) == ((2 if at == calls else 1), [])
        assert [path.name for path in (run / "checkpoints").glob(".*")] == []


def test_a_full_disk_in_the_index_keeps_the_old_index_and_model(tmp_path: Path) -> None:
    save(tmp_path, 1)
    checkpoints = Checkpoints(tmp_path, print)
    history = HISTORY.add(1, {"loss": 2.0})
    checkpoints.write_index(history)
    save(tmp_path, 2)
    for at in range(1, 6):
        with pytest.MonkeyPatch.context() as patch:
            Fault(patch, at, no_space)
            with pytest.raises(CheckpointError, match="could not be written"):
                checkpoints.write_index(history.add(2, {"loss": 1.0}))
        assert checkpoints.index().best == (1 if at < 5 else 2)
        assert checkpoints.published() == "1"
    checkpoints.write_index(history.add(2, {"loss": 1.0}))
    assert checkpoints.published() == "2"


KILLS = """
import os, sys, json
from pathlib import Path
import pytest, torch
torch.set_num_threads(1)
from tests.train import faults, saved as suite
from weft.errors import CheckpointError
from weft.store import weights
from weft.train.checkpoints import Checkpoints

def in_child(work):
    child = os.fork()
    if not child:
        try:
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

base, found = Path(sys.argv[1]), []
history = suite.HISTORY.add(1, {"loss": 2.0})
for at in range(1, 1000):
    run = base / str(at)
    suite.save(run, 1)
    Checkpoints(run, print).write_index(history)

    def work():
        faults.Fault(pytest.MonkeyPatch(), at, lambda: os.kill(os.getpid(), 9))
        suite.save(run, 2, history)
        checkpoints = Checkpoints(run, print)
        checkpoints.write_index(history.add(2, {"loss": 1.0}))
        suite.save(run, 3)
        checkpoints.keep([])

    code = in_child(work)
    warnings = []
    update, told = suite.newest(run)
    index = Checkpoints(run, warnings.append).index()
    weights.load(run / "model.safetensors")
    found.append([code, update, len(told) + len(warnings), index.best])
    if code == 0:
        break
limit = base / "limit"
suite.save(limit, 1)

def full():
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
    try:
        suite.save(limit, 2)
    except CheckpointError as error:
        (base / "said").write_text(str(error))

in_child(full)
found.append([(base / "said").read_text(), *suite.newest(limit)])
print(json.dumps(found))
"""


@pytest.mark.slow
def test_kill_9_at_any_call_leaves_a_run_that_loads(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLS, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    *found, limit = json.loads(done.stdout.splitlines()[-1])
    assert len(found) > 40
    assert [code for code, *_ in found] == [-signal.SIGKILL] * (len(found) - 1) + [0]
    updates = [update for _, update, _, _ in found]
    assert updates == sorted(updates)  # never back once a newer one was complete
    assert set(updates) == {1, 2, 3}
    assert [warned for _, _, warned, _ in found] == [0] * len(found)  # killed is not damaged
    assert {best for *_, best in found} == {1, 2}
    said, update, warnings = limit
    assert "File too large" in said and "update 1 is kept" in said
    assert (update, warnings) == (1, [])
