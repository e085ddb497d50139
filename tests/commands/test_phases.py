"""SIGTERM while a store is built and while a validation is under way: the process a user started ends soon.

Training itself, saving, and signals at any batch: test_resume.py and tests/train/test_interrupts.py.
"""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.commands import corpus

ROOT = Path(__file__).resolve().parents[2]
SOON = 10.0
"""Seconds that a process may take to end; on a free machine it is a fraction of one."""

BUILDING = """
import sys
from weft import cli
from weft.data import building

building.PIECE, building.JOURNAL = 2**10, 2**12
taken_up = building._resumed

def told(directory, key):
    report = taken_up(directory, key)
    print("TAKEN UP", report["pairs"], file=sys.stderr, flush=True)
    return report

building._resumed = told
cli.main(sys.argv[1:])
"""

VALIDATING = """
import sys
from weft import cli
from weft.tasks.seq2seq.base import PairTraining

validate = PairTraining.validate

def told(self, model):
    print("VALIDATING", file=sys.stderr, flush=True)
    found = validate(self, model)
    print("VALIDATED", file=sys.stderr, flush=True)
    return found

PairTraining.validate = told
cli.main(sys.argv[1:])
"""


class Process:
    """`weft ARGUMENTS` in a process of its own, with something told on the way."""

    def __init__(self, program: str, cache: Path, *arguments: object) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", program, *map(str, arguments)],
            cwd=ROOT,
            env=dict(os.environ) | {"WEFT_CACHE": str(cache), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def until(self, word: str) -> str:
        """What it says, up to the line with this word."""
        assert self._process.stderr is not None
        said = []
        for line in self._process.stderr:
            said.append(line)
            if word in line:
                return "".join(said)
        raise AssertionError(f"{word!r} was not said: {''.join(said)}")

    def terminated(self) -> tuple[int, str]:
        """SIGTERM: its exit code and last words, if it ends soon."""
        begun = time.monotonic()
        self._process.send_signal(signal.SIGTERM)
        return self.ended(SOON - (time.monotonic() - begun))

    def ended(self, seconds: float = 300) -> tuple[int, str]:
        """Its exit code and what else it says."""
        try:
            said = self._process.communicate(timeout=seconds)[1]
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise
        return self._process.returncode, said


@pytest.mark.slow
def test_while_a_store_is_built_it_ends_soon_and_the_next_start_goes_on(tmp_path: Path) -> None:
    recipe = corpus.make(tmp_path / "toy")
    for side in ("xx", "yy"):
        path = tmp_path / "toy" / f"train.{side}"
        path.write_text(path.read_text() * 600)  # 238,200 pairs: seconds of work
    cache = tmp_path / "cache"
    given = "train", recipe, "--run", tmp_path / "run", "training.max_updates=1", "data.validate_rows=1"
    first = Process(BUILDING, cache, *given)
    assert "TAKEN UP 0\n" in first.until("TAKEN UP")
    until = time.monotonic() + 60
    while not list(cache.rglob("done.json")):  # something is written, and noted
        assert time.monotonic() < until
        time.sleep(0.01)
    code, said = first.terminated()
    assert code == 143, said
    assert "stopped before the first update" in said
    assert said.splitlines()[-1].startswith("resume with: ") and "Traceback" not in said
    assert not list(cache.rglob("piece-*"))  # what its children were making went with them
    second = Process(BUILDING, cache, *given)
    told = re.search(r"TAKEN UP (\d+)", second.until("TAKEN UP"))
    assert told and 4096 <= int(told[1]) < 238_200
    code, said = second.ended()
    assert code == 0, said


@pytest.mark.slow
def test_while_a_validation_is_under_way_it_ends_soon_and_the_next_start_does_it(tmp_path: Path) -> None:
    recipe = corpus.make(tmp_path / "toy")
    corpus.write(tmp_path / "toy", "valid", 2000, 3)
    given = (
        "train", recipe, "--run", tmp_path / "run", "training.max_updates=2", "training.validate_every=2",
        "decoding.beam=9", "data.validate_rows=2000",
    )  # fmt: skip
    first = Process(VALIDATING, tmp_path / "cache", *given)
    first.until("VALIDATING")
    time.sleep(0.3)
    code, said = first.terminated()
    assert code == 143 and "VALIDATED" not in said, said
    assert "stopped after update 2; " in said
    assert said.splitlines()[-1].startswith("resume with: ") and "Traceback" not in said
    assert [path.name for path in (tmp_path / "run" / "checkpoints").iterdir()] == ["step-00000002"]
    second = Process(VALIDATING, tmp_path / "cache", *given)
    assert "resumes after update 2" in second.until("VALIDATING")
    code, said = second.ended()
    assert code == 0 and said.count("VALIDATED") == 1, said
