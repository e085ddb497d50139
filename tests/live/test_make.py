"""The program that makes the models of live parts runs from start to end."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.live.pages import DOCS, STATIC


@pytest.mark.slow
def test_everything_is_made(tmp_path: Path) -> None:
    line = [sys.executable, str(DOCS / "live" / "make.py"), "--quick", str(tmp_path)]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    made = {path.name for path in (tmp_path / "models").iterdir()}
    assert made == {path.name for path in (STATIC / "models").iterdir()}
    kept = json.loads((DOCS.parent / "tests" / "live" / "expected.json").read_text("utf-8"))
    assert set(json.loads((tmp_path / "expected.json").read_text("utf-8"))) == set(kept)
