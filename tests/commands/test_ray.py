"""weft predict --ray: what one process answers, in its order, and on after a kill."""

import importlib.util
import os
import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import pytest

from tests.commands.shell import refused, weft
from tests.commands.test_bulk import LINES, large
from weft.commands import bulk

__all__ = ["large"]
# Ray lowers its workers' priority by 15, which on a busy machine is to stand still.
ENV = dict(os.environ) | {"RAY_worker_niceness": "0"}
ROOT = Path(__file__).resolve().parents[2]
HERE = importlib.util.find_spec("ray") is not None
needs_ray = pytest.mark.skipif(not HERE, reason="RAY IS NOT INSTALLED: pip install 'weft-seq[ray]'")


@needs_ray
@pytest.mark.slow
def test_two_workers_answer_in_order_and_go_on_after_a_kill(
    trained: Path, large: Path, tmp_path: Path
) -> None:
    expected = weft("predict", trained, large, "--beam", 1, "--scores")
    assert expected.code == 0 and len(expected.lines) == LINES
    out = tmp_path / "out.txt"
    words = ["predict", str(trained), str(large), "--beam", "1", "--scores", "--output", str(out)]
    command = [sys.executable, "-m", "weft", *words, "--processes", "2", "--ray", "local"]
    with subprocess.Popen(
        command, cwd=ROOT, env=ENV, start_new_session=True, stderr=subprocess.DEVNULL
    ) as first:
        until = time.monotonic() + 400
        while not list(bulk.parts_of(out).glob("0*")) and first.poll() is None and time.monotonic() < until:
            time.sleep(0.002)
        os.killpg(first.pid, signal.SIGKILL)
    before = len(list(bulk.parts_of(out).glob("0*")))
    assert not out.exists() and 1 <= before <= 3
    again = subprocess.run(
        command, cwd=ROOT, env=ENV, capture_output=True, text=True, check=False, timeout=300
    )
    assert again.returncode == 0, again.stderr
    assert f"{3 - before} chunks answered by 2 Ray workers" in again.stderr
    assert f"{LINES:,} lines: {out}" in again.stderr
    assert out.read_text("utf-8") == expected.out and not bulk.parts_of(out).exists()


@needs_ray
@pytest.mark.slow
def test_a_wrong_line_is_told_as_without_ray(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_bytes(b"alpha\n" * 600 + b"caf\xe9\nbeta\n")
    command = [sys.executable, "-m", "weft", "predict", str(trained), str(tmp_path / "x.txt")]
    command += ["--output", str(tmp_path / "out.txt")]
    told = []
    for more in ([], ["--ray", "local"]):
        done = subprocess.run(
            [*command, *more], cwd=ROOT, env=ENV, capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 3 and "x.txt:601: not UTF-8" in done.stderr, done.stderr
        text = (tmp_path / "out.txt").read_text("utf-8")
        told.append((text, [line for line in done.stderr.splitlines() if line.startswith("weft: ")]))
    assert told[0] == told[1] and told[0][0] == "uno\n" * 600 + "\ndue\n"


@pytest.mark.skipif(HERE, reason="Ray is installed")
def test_without_ray_it_says_what_to_install(trained: Path, large: Path, tmp_path: Path) -> None:
    said = refused(weft("predict", trained, large, "--output", tmp_path / "out.txt", "--ray", "local"))
    assert "--ray: ray is not installed; pip install 'weft-seq[ray]'" in said


def test_a_cluster_that_does_not_start_is_told_in_one_sentence(
    trained: Path, large: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def init(*args: object, **settings: object) -> None:
        raise Exception("The current node timed out during startup")  # as Ray 2.60 on a busy machine

    ray, data = types.ModuleType("ray"), types.ModuleType("ray.data")
    monkeypatch.setattr(ray, "init", init, raising=False)
    monkeypatch.setattr(ray, "data", data, raising=False)
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setitem(sys.modules, "ray.data", data)
    said = refused(weft("predict", trained, large, "--output", tmp_path / "out.txt", "--ray", "local"))
    assert "--ray local: Ray does not start (The current node timed out during startup); try again" in said
