"""weft predict --output: order kept, and after a kill no line is lost, doubled or answered twice."""

import importlib.util
import os
import re
import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import pytest

from tests.commands import corpus
from tests.commands.shell import refused, weft
from weft.commands import bulk

LINES = 1300  # three chunks, the last one ragged


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """With empty lines, and one that begins a chunk with a byte order mark."""
    words = list(corpus.WORDS)
    lines = [" ".join(words[(n * k) % 9] for k in range(1, 2 + n % 4)) if n % 7 else "" for n in range(LINES)]
    lines[bulk.CHUNK] = "\ufeffalpha"
    path = tmp_path / "large.txt"
    path.write_text("\n".join(lines), "utf-8")  # no final newline
    return path


@pytest.mark.slow
def test_killed_and_gone_on_with_by_two_processes_is_what_one_answers(
    trained: Path, large: Path, tmp_path: Path
) -> None:
    expected = weft("predict", trained, large, "--beam", 1, "--scores")
    assert expected.code == 0 and len(expected.lines) == LINES
    out = tmp_path / "out.txt"
    command = ["predict", str(trained), str(large), "--beam", "1", "--scores", "--output", str(out)]
    first = subprocess.Popen([sys.executable, "-m", "weft", *command], start_new_session=True)
    deadline = time.monotonic() + 120
    while not list(bulk.parts_of(out).glob("0*")) and first.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    os.killpg(first.pid, signal.SIGKILL)
    assert first.wait() == -signal.SIGKILL
    assert not out.exists()
    before = {path.name: path.stat().st_mtime_ns for path in bulk.parts_of(out).glob("0*")}
    assert 1 <= len(before) < 3
    again = subprocess.run(
        [sys.executable, "-m", "weft", *command, "--processes", "2"], capture_output=True, text=True
    )
    assert again.returncode == 0, again.stderr
    answered = re.search(r"^([\d,]+) lines answered by process 0", again.stderr, re.M)
    assert answered and int(answered[1].replace(",", "")) < LINES
    assert f"{LINES:,} lines: {out}" in again.stderr
    assert out.read_text("utf-8") == expected.out
    assert not bulk.parts_of(out).exists()


def test_what_stands_there_is_used_and_only_by_the_same_command(
    trained: Path, large: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "CHUNK", 7)
    large.write_text("".join(f"{line}\n" for line in large.read_text("utf-8").split("\n")[1:30]), "utf-8")
    expected = weft("predict", trained, large, "--beam", 1)
    out = tmp_path / "out.txt"
    monkeypatch.setattr(bulk, "join", lambda file, output: bulk.JoinedOutput(0, []))
    assert weft("predict", trained, large, "--beam", 1, "--output", out).code == 0
    monkeypatch.undo()
    monkeypatch.setattr(bulk, "CHUNK", 7)
    parts = bulk.parts_of(out)
    assert sorted(path.name[:9] for path in parts.glob("0*")) == [f"{n:09}" for n in range(5)]
    other = weft("predict", trained, large, "--beam", 2, "--output", out)
    assert re.search(r"out\.txt\.parts: has chunks of a command with different options", refused(other))
    zero = weft("predict", trained, large, "--beam", 1, "--no-repeat-ngram", 0, "--output", out)
    assert "different options" in refused(zero)
    next(parts.glob("000000003-*")).unlink()
    again = weft("predict", trained, large, "--beam", 1, "--output", out)
    assert again.code == 0 and "7 lines answered\n29 lines: " in again.err and again.out == ""
    assert out.read_text("utf-8") == expected.out and not parts.exists()


def test_a_file_of_answers_may_have_pictures_and_alignments(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("alpha\nbeta gamma\n")
    plain = weft("predict", trained, tmp_path / "in.txt").out
    drawn = "--pictures", tmp_path / "pictures", "--alignments", tmp_path / "out.pharaoh"
    answer = weft("predict", trained, tmp_path / "in.txt", "--output", tmp_path / "out.txt", *drawn, code=0)
    assert (tmp_path / "out.txt").read_text() == plain
    assert "2 pictures" in answer.err and (tmp_path / "pictures" / "2.png").is_file()
    assert len((tmp_path / "out.pharaoh").read_text().splitlines()) == 2


def test_what_cannot_go_together_is_refused(trained: Path, large: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    assert "need a FILE and an --output" in refused(
        weft("predict", trained, "--output", out, "--ray", "local")
    )
    assert "need a FILE and an --output" in refused(weft("predict", trained, large, "--processes", 2))
    said = refused(
        weft("predict", trained, large, "--output", out, "--pictures", tmp_path / "p", "--processes", 2)
    )
    assert "leave out --processes" in said
    large.rename(tmp_path / "x.tsv")
    said = refused(weft("predict", trained, tmp_path / "x.tsv", "--output", out, "--processes", 1))
    assert "line by line" in said and [path.name for path in tmp_path.iterdir()] == ["x.tsv"]
    assert "no such directory" in refused(weft("predict", trained, tmp_path / "x.tsv", "--output", out / "a"))


@pytest.mark.slow
def test_of_several_processes_each_refuses(
    trained: Path, large: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    large.rename(tmp_path / "x.tsv")
    answer = weft("predict", trained, tmp_path / "x.tsv", "--output", tmp_path / "out", "--processes", 2)
    said = answer.err + capfd.readouterr().err  # of the children, too
    assert answer.code == 2 and "line by line" in said and "Traceback" not in said
    assert [path.name for path in tmp_path.iterdir()] == ["x.tsv"]


def test_what_is_not_read_line_by_line_is_written_whole(trained: Path, large: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    expected = weft("predict", trained, large)
    piped = weft("predict", trained, "--output", out, stdin=large.read_bytes())
    assert piped.code == 0 and piped.out == "" and out.read_text("utf-8") == expected.out
    large.rename(tmp_path / "x.tsv")  # perhaps a table, which only the task can tell
    table = weft("predict", trained, tmp_path / "x.tsv")
    assert weft("predict", trained, tmp_path / "x.tsv", "--output", out).code == table.code == 0
    assert out.read_text("utf-8") == table.out
    refused(weft("predict", trained, "--output", out, stdin=b"\0\nalpha\n"))
    assert out.read_text("utf-8") == table.out


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
