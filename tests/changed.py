"""Run the slow tests of the packages of weft that changed lately, one after the other, until the time is up.

    python -m tests.changed --seconds 480

CI runs this after `make test`. What changed is read from the commits of the four hours before the last one,
so that a clone with no other branch to compare with can tell.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.source import ROOT

HOURS = 4
ELSEWHERE = {
    "nn": ["laws", "oracles", "nn"],
    "native": ["nn"],
    "models": ["laws"],
    "recipes": ["test_recipes.py"],
}
"""Where the tests of a package are, if not in the folder of its name."""


def git(*words: str) -> list[str]:
    """Lines that git prints."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.split("\n")


def changed_files() -> list[str]:
    """Files of the commits in the hours before HEAD, HEAD's own included."""
    since = int(git("log", "-1", "--format=%ct")[0]) - HOURS * 3600
    return sorted(set(git("log", f"--since=@{since}", "--format=", "--name-only")) - {""})


def folders_of(files: list[str]) -> list[Path]:
    """The folders and files of tests that belong to changed files."""
    names = set()
    for first, *rest in (Path(file).parts for file in files):
        if first == "tests" and len(rest) > 1:
            names.add(rest[0])
        elif first in ("weft", "recipes"):
            room = rest[0].removesuffix(".py") if first == "weft" else first
            names |= set(ELSEWHERE.get(room, [room, f"test_{room}.py"]))
    return [ROOT / "tests" / name for name in sorted(names) if (ROOT / "tests" / name).exists()]


def run(path: Path, seconds: float) -> int | None:
    """Pytest's exit code for the slow tests there, or None if the time was up."""
    words = ["-q", "-n", "auto", "--maxprocesses", "8", "--dist", "worksteal", "-m", "slow", str(path)]
    command = [sys.executable, "-m", "pytest", *words]
    with subprocess.Popen(command, cwd=ROOT, start_new_session=True) as tests:
        try:
            return tests.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(tests.pid, signal.SIGKILL)  # its workers and what they started too
            return None


def main() -> int:
    """Exit code 1 if a test failed."""
    parser = argparse.ArgumentParser(description="Run the slow tests of what changed lately.")
    parser.add_argument("--seconds", type=float, default=480.0, help="stop after this time")
    end = time.monotonic() + parser.parse_args().seconds
    paths = folders_of(changed_files())
    print("The slow tests of what changed lately:", ", ".join(path.name for path in paths), flush=True)
    codes = {}
    for place, path in enumerate(paths):  # what one folder leaves of its share, the others have
        codes[path.name] = run(path, max(0.1, end - time.monotonic()) / (len(paths) - place))
    left = [name for name, code in codes.items() if code is None]
    failed = [name for name, code in codes.items() if code not in (None, 0, 5)]  # 5: nothing slow there
    if left:
        print("The time was up for", ", ".join(left), "- make test-all runs them.")
    print(f"Failed: {', '.join(failed)}" if failed else "None of those that ran has failed.")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
