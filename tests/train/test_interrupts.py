"""SIGTERM and Ctrl-C in any phase: saved, told, left with the right code; a second one leaves at once."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.train.toy import Notes, Task, quiet, settings
from tests.train.traces import measured
from weft.store import files
from weft.train.checkpoints import Checkpoints
from weft.train.loop import train
from weft.train.session import Interrupted, Interrupts

ROOT = Path(__file__).resolve().parents[2]


def send(number: int) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGUSR1, 138)]
)
def test_a_signal_in_training_saves_and_says_how_to_go_on(tmp_path: Path, number: int, code: int) -> None:
    notes = Notes()
    task = Task(on_batch=lambda at: send(number) if at == 4 else None)
    outcome = train(task, tmp_path, settings(), quiet(tmp_path, notes))
    assert (outcome.reason, outcome.update, outcome.exit_code) == ("interrupted", 2, code)
    assert Checkpoints(tmp_path, print).updates() == [2]
    assert any("stopped after update 2; " in text and "resumes" in text for text in notes.texts)


def test_a_signal_while_data_is_read_cuts_that_at_once(tmp_path: Path) -> None:
    class Slow(Task):
        def prepare(self, run: Path, progress: Any) -> None:
            send(signal.SIGTERM)
            raise AssertionError("the signal should have cut this")

    notes = Notes()
    outcome = train(Slow(), tmp_path, settings(), quiet(tmp_path, notes))
    assert (outcome.reason, outcome.update, outcome.exit_code) == ("interrupted", 0, 143)
    assert len(notes.texts) == 1 and "stopped before the first update" in notes.texts[0]


def test_a_signal_during_a_save_lets_it_finish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, sent = files.write_directory, []

    def write(path: Path, contents: dict[str, bytes]) -> None:
        if not sent:
            sent.append(True)
            send(signal.SIGTERM)
        plain(path, contents)

    monkeypatch.setattr(files, "write_directory", write)
    chosen = settings(save_every=2, save_in_background=False)
    outcome = train(Task(), tmp_path, chosen, quiet(tmp_path))
    assert (outcome.update, outcome.exit_code) == (2, 143)
    assert Checkpoints(tmp_path, print).updates() == [2]


def test_handlers_are_put_back(tmp_path: Path) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    train(Task(), tmp_path, settings(max_epochs=1), quiet(tmp_path))
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_a_signal_before_the_block_cuts_it_too() -> None:
    with Interrupts() as interrupts:
        send(signal.SIGINT)
        with pytest.raises(Interrupted), interrupts.at_once():
            raise AssertionError("not reached")
        assert (interrupts.asked, interrupts.exit_code) == (signal.SIGINT, 130)


def test_outside_the_main_thread_it_watches_for_nothing() -> None:
    codes = []

    def work() -> None:
        with Interrupts() as interrupts:
            codes.append(interrupts.exit_code)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert codes == [0]


TWICE = """
import os, signal, sys, time
from weft.train.session import Interrupts

with Interrupts() as interrupts:
    os.kill(os.getpid(), signal.SIGTERM)
    print(interrupts.asked, flush=True)
    os.kill(os.getpid(), int(sys.argv[1]))
    print("not reached")
    time.sleep(60)
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_second_signal_leaves_at_once(number: int, code: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", TWICE, str(int(number))],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert (done.returncode, done.stdout) == (code, f"{int(signal.SIGTERM)}\n")


def test_a_signal_before_the_first_update_has_nothing_to_save(tmp_path: Path) -> None:
    class Late(Task):
        def plan(self, seed: int) -> Any:
            made = super().plan(seed)
            plain = made.epoch

            def epoch(number: int) -> Any:
                send(signal.SIGTERM)
                return plain(number)

            made.epoch = epoch
            return made

    outcome = train(Late(), tmp_path, settings(), quiet(tmp_path))
    assert (outcome.update, outcome.exit_code) == (0, 143)
    assert Checkpoints(tmp_path, print).updates() == []
    assert train(Task(), tmp_path, settings(max_epochs=1), quiet(tmp_path)).reason == "max_epochs"
    assert [line["update"] for line in measured(tmp_path)] == [1, 2, 3, 3]
