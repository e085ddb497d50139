"""How a user types the command `weft` here: by its name where it is on the PATH, else by where it stands."""

import os
import shutil
import sys
from pathlib import Path


def program() -> str:
    """Such as "weft" or ".venv/bin/weft".

    Where it is not installed at all, "python -m weft".
    """
    beside = Path(sys.executable).with_name("weft")
    found = shutil.which("weft")
    if found and Path(found).resolve() == beside.resolve():
        return "weft"
    if beside.exists():
        return os.path.relpath(beside) if beside.is_relative_to(Path.cwd()) else str(beside)
    return "python -m weft"
