"""Compile the C++ sources of this folder for each instruction set; needs only Python's standard library.

The build of the package calls it (hatch_build.py); from a checkout:  python weft/native/build.py
Without a compiler no library is built, and the operations in torch are used.
"""

import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
SOURCES = (
    "cells",
    "light",
    "selective",
    "matrix",
    "energies",
    "attention",
    "dropping",
    "losses",
    "neighbours",
    "decoding",
    "choosing",
    "searching",
    "tiles",
)
WIDE = ["-mavx512f", "-mavx512bw", "-mfma", "-mprefer-vector-width=512"]
NARROW = [*WIDE, "-mavx512vl", "-mavx512bf16", "-mavx512vnni"]
SETS = {
    "avx512": WIDE,
    "avx2": ["-mavx2", "-mfma"],
    "bf16": NARROW,
    "amx": [*NARROW, "-mamx-tile", "-mamx-bf16", "-mamx-int8"],
}
OPTIONAL = {
    "amx": ("cells", "decoding", "tiles"),
    "bf16": ("cells", "decoding"),
}  # old compilers may fail on them
FLAGS = ["-std=c++17", "-O3", "-fPIC", "-shared", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti", "-w"]
COMPILERS = ("c++", "g++", "clang++")


def file_name(name: str, source: str = "cells") -> str:
    """The file name of a source's library for an instruction set."""
    return f"{source}.{name}.so"


def compiler() -> list[str] | None:
    """The C++ compiler's command: CXX, or the first one found."""
    if os.environ.get("CXX"):
        return shlex.split(os.environ["CXX"])
    return next(([found] for name in COMPILERS if (found := shutil.which(name))), None)


def build(folder: Path = HERE) -> tuple[list[Path], str]:
    """Compile every library that is missing or older than its source.

    Returns the libraries that exist now, and the reason if one could not be compiled, else "".
    """
    if platform.machine().lower() not in ("x86_64", "amd64") or sys.platform not in ("linux", "darwin"):
        return [], f"no compiled cells for {sys.platform} on {platform.machine()}"
    command = compiler()
    if command is None:
        return [], "no C++ compiler was found when Weft was installed"
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:  # each thread waits for a compiler
        done = list(pool.map(lambda each: _compiled(command, folder, *each), _targets()))
    made = [target for target, _ in done if target is not None]
    return made, next((reason for _, reason in done if reason), "")


def _compiled(command: list[str], folder: Path, source: str, name: str) -> tuple[Path | None, str]:
    """Compile a source for an instruction set: (library, ""), or (None, reason) if that failed.

    The reason is empty for an optional instruction set.
    """
    target, file = folder / file_name(name, source), HERE / f"{source}.cpp"
    newest = max(path.stat().st_mtime for path in _parts(file))
    if target.exists() and target.stat().st_mtime >= newest:
        return target, ""
    part = target.with_suffix(f".{os.getpid()}.part")
    try:
        # Run in the source's folder, so that the library contains no path of this machine.
        line = [*command, *FLAGS, *SETS[name], file.name, "-o", str(part.absolute())]
        subprocess.run(line, cwd=file.parent, check=True, capture_output=True)
        part.replace(target)
    except (OSError, subprocess.CalledProcessError) as error:
        part.unlink(missing_ok=True)
        said = getattr(error, "stderr", b"") or str(error).encode()
        said = said.decode(errors="replace").strip()[-300:]
        return None, "" if name in OPTIONAL else f"{command[0]} failed: {said}"
    return target, ""


def _parts(file: Path) -> set[Path]:
    """A source and all headers that it includes."""
    named = re.findall(r'^#include "(.+)"', file.read_text("utf-8"), re.MULTILINE)
    return {file}.union(*(_parts(HERE / name) for name in named))


def _targets() -> list[tuple[str, str]]:
    """All (source, instruction set) pairs to compile."""
    names = [name for name in SETS if name not in OPTIONAL]
    targets = [(source, name) for source in SOURCES for name in names if source != "tiles"]
    optional = [name for name in OPTIONAL if name != "amx" or sys.platform == "linux"]
    return targets + [(source, name) for name in optional for source in OPTIONAL[name]]


if __name__ == "__main__":
    libraries, reason = build()
    print(*(path.name for path in libraries), reason)
