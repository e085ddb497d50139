"""A process with little memory that runs `weft`, and the error it must print for malicious files."""

import contextlib
import json
import os
import re
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 600


class Jail:
    """Runs commands in tests/attacks/worker.py; starts a new worker if one was killed or hangs."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def weft(self, *arguments: object) -> tuple[Any, str, str]:
        """Exit code (a text if there was no exit), stdout and stderr."""
        if self._process is not None and self._process.poll() is not None:
            self.close()
        if self._process is None:
            quiet = {
                "OMP_NUM_THREADS": "1",
                "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
                "MALLOC_ARENA_MAX": "1",
            }
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.attacks.worker"],
                cwd=ROOT,
                env=os.environ | quiet,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps([str(one) for one in arguments]).encode() + b"\n")
        self._process.stdin.flush()
        if not select.select([self._process.stdout], [], [], SECONDS)[0]:
            self.close()
            return "no answer", "", ""
        line = self._process.stdout.readline()
        if not line:
            return f"died with {self._process.wait()}", "", ""
        code, out, err = json.loads(line)
        return code, out, err

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            assert self._process.stdin is not None and self._process.stdout is not None
            self._process.stdout.close()
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
            self._process = None


def listing(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of everything in a folder; links are not followed."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.name not in (".lock", "cache") and "cache" not in path.parts:
            about = path.lstat()
            found[str(path.relative_to(folder))] = (
                about.st_size,
                about.st_mtime_ns if not path.is_dir() else 0,
            )
    return found


def refused(jail: Jail, folder: Path, sentence: str, *arguments: object) -> None:
    """The command must fail with one error message and change nothing in the folder."""
    before = listing(folder)
    code, out, err = jail.weft(*arguments)
    assert code == 2 and out == "", (code, out[-500:], err[-1500:])
    *rest, said = err.rstrip("\n").split("\n")
    assert said.startswith("weft: ") and len(said) < 1200, err[-1500:]
    assert not any("Traceback" in line or line.startswith("weft: ") for line in rest), err[-1500:]
    assert re.search(sentence, said), said
    assert listing(folder) == before
