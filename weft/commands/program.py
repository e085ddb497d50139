"""How to type the command `weft` on this machine: its name if it is on the PATH, else its path."""

import os
import shlex
import shutil
import sys
from pathlib import Path


def program() -> list[str]:
    """The words that start weft, such as ["weft"], [".venv/bin/weft"] or ["python3", "-m", "weft"]."""
    beside = Path(sys.executable).with_name("weft")
    found = shutil.which("weft")
    if found and Path(found).resolve() == beside.resolve():
        return ["weft"]
    if beside.exists():
        return [_near(beside)]
    return [_python(), "-m", "weft"]


def typed(*words: object) -> str:
    """A weft command to paste into a shell, with every word quoted as needed.

    Example:
        >>> typed("predict", Path("my runs/en-de")).partition("weft")[2]
        " predict 'my runs/en-de'"
    """
    return shlex.join([*program(), *map(str, words)])


def piped(line: str, *words: object) -> str:
    r"""A weft command that reads one line.

    Example:
        >>> piped("it is", "predict", "a").partition(" |")[0]
        "echo 'it is'"
    """
    if "\t" not in line and "\\" not in line:
        return f"echo {shlex.quote(line)} | {typed(*words)}"
    shown = line.replace("\\", "\\\\").replace("%", "%%").replace("\t", "\\t")
    return f"printf {shlex.quote(shown + chr(92) + 'n')} | {typed(*words)}"


def _python() -> str:
    """This interpreter: its name if it is on the PATH, else its path."""
    for name in ("python", "python3"):
        found = shutil.which(name)
        if found and Path(found).parent.resolve() == Path(sys.executable).parent.resolve():
            return name
    return _near(Path(sys.executable))


def _near(path: Path) -> str:
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)
