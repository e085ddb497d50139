"""Choices of kernels, kept on disk: each is measured once per machine rather than once per process.

Each choice is one small file in the user's cache directory. Its folder is named after everything that affects
speed: processor, torch, compiled code, versions. The first file written wins: if two processes measure the
same key, the later one uses the choice of the earlier one. Read next: choice.py.
"""

import functools
import hashlib
import json
import os
import platform
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import torch

from weft import native
from weft.store import files, jsonfile
from weft.store.cache import cache_directory
from weft.version import __version__

LARGEST = 2**16
SETTINGS = ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS", "MKL_CBWR")
"""Environment variables that limit the instruction sets of the libraries."""


class Measured(NamedTuple):
    """A choice: the way, and the times or the reason that decided it."""

    way: str
    why: str


def machine() -> str:
    """What the speed and the rounding of a kernel depend on, as text for people.

    Example:
        >>> "torch" in machine()
        True
    """
    compiled = native.loaded()
    code = compiled.reason if compiled.library else "none"
    limits = [f"{name}={os.environ[name]}" for name in SETTINGS if os.environ.get(name)]
    return ", ".join(
        [
            _processor()[0],
            f"torch {torch.__version__} ({torch.backends.cpu.get_cpu_capability()})",
            f"compiled code: {code}",
            *limits,
        ]
    )


def directory() -> Path:
    """The folder of this machine's choices.

    Raises:
        RuntimeError: there is no home directory to put it in.
    """
    return cache_directory() / "kernels" / _name(str(machine()))


def find(key: str, ways: Collection[str]) -> Measured | None:
    """The choice for a key among these ways on this machine, or None if there is none yet."""
    try:
        return _read(_path(key, ways), ways)
    except RuntimeError:
        return None


def keep(key: str, ways: Collection[str], chosen: Measured) -> Measured | None:
    """Write a choice, unless another process already has; then return that one.

    Returns:
        The choice on disk, or None if it cannot be written.
    """
    try:
        path = _path(key, ways)
        path.parent.mkdir(parents=True, exist_ok=True)
        data = json.dumps({"key": key, **chosen._asdict()}).encode()
        if not files.create(path, data) and _read(path, ways) is None:  # damaged
            files.replace(path, data)
        return _read(path, ways)
    except (OSError, RuntimeError):
        return None


def writable() -> bool:
    """Whether choices can be kept."""
    try:
        folder = directory()
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return False
    return os.access(folder, os.W_OK | os.X_OK)


def everything() -> Iterator[tuple[str, Measured]]:
    """All choices stored for this machine as (key, choice), sorted by key."""
    found = []
    with suppress(OSError, RuntimeError):
        for path in directory().glob("*.json"):
            one = _parsed(path)
            if one is not None:
                found.append((str(one["key"]), Measured(one["way"], one["why"])))
    yield from sorted(found)


def _path(key: str, ways: Collection[str]) -> Path:
    name = hashlib.blake2b(f"{key} of {', '.join(ways)}".encode(), digest_size=12).hexdigest()
    return directory() / f"{name}.json"


def _read(path: Path, ways: Collection[str]) -> Measured | None:
    one = _parsed(path)
    return Measured(one["way"], one["why"]) if one is not None and one["way"] in ways else None


def _parsed(path: Path) -> dict[str, Any] | None:
    try:
        one = jsonfile.read(path, LARGEST)
    except (OSError, ValueError):
        return None
    whole = isinstance(one, dict) and all(isinstance(one.get(name), str) for name in ("key", "way", "why"))
    return one if whole else None


def _name(described: str) -> str:
    exact = f"{described} {_processor()[1]} weft {__version__} {_compiled()}"
    return f"torch-{torch.__version__}-{hashlib.blake2b(exact.encode(), digest_size=8).hexdigest()}"


@functools.cache
def _processor() -> tuple[str, str]:
    """The processor's name and its instruction-set flags."""
    name, flags = platform.processor() or platform.machine(), ""
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        for line in file:
            title, _, value = (part.strip() for part in line.partition(":"))
            if title == "model name":
                name = value
            elif title in ("flags", "Features"):
                flags = value
            elif not title:
                break  # assume that all cores are alike
    return name, flags


@functools.cache
def _compiled() -> str:
    """A digest of the compiled cells, since different code has different speeds."""
    library = native.loaded().library
    if library is None:
        return ""
    with suppress(OSError):
        return hashlib.blake2b(Path(library._name).read_bytes(), digest_size=8).hexdigest()
    return str(native.VERSION)
