"""The public names have types: a program of a user passes mypy --strict."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.slow
def test_a_program_of_a_user_is_strictly_typed(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="mypy is not installed: make setup-dev")
    program = ROOT / "tests" / "typing" / "user_program.py"
    settings = tmp_path / "mypy.ini"  # not those of Weft: a user has others
    settings.write_text("[mypy]\nfollow_imports = silent\n", "utf-8")
    words = ["--strict", "--config-file", str(settings), "--cache-dir", str(tmp_path / "cache"), str(program)]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr
