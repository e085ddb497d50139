"""The compiled libraries: find those for this processor, load them once and declare their functions.

Each source is compiled for several instruction sets (build.py); one library fits all versions of Python and
torch. Read next: calls.py.
"""

import ctypes
import functools
from ctypes import POINTER, c_longlong, c_void_p
from pathlib import Path
from typing import Any, NamedTuple

import torch

from weft.native.jobs import CALLS, NARROW_CALLS, VERSION, VERSIONS

FOLDER = Path(__file__).parent
SETS = {"AVX512": ("amx", "bf16", "avx512"), "AVX2": ("avx2",)}
"""torch's name of the processor's instruction set, and the names in our files, best first."""

NARROW = ("amx", "bf16")
"""The sets whose compiled code multiplies in bfloat16."""
WIDTHS = {"amx": 16, "bf16": 16, "avx512": 16, "avx2": 8}  # floats in a register
DISPLAY_NAMES = {
    "amx": "AVX-512 with AMX, bfloat16 and int8",
    "bf16": "AVX-512 with bfloat16 and int8",
    "avx512": "AVX-512",
    "avx2": "AVX2",
}
NO_TILES = "the processor has no tiles (AMX), or the system does not allow them"


class LoadedLibrary(NamedTuple):
    """A library, or the reason why there is none.

    library: its functions, or None.
    reason: the instruction set that it uses, or why it is missing, as text.
    width: floats in a register.
    start: the address of the function that starts threads; None means one thread.
    """

    library: Any
    reason: str
    width: int = 0
    start: int | None = None


@functools.cache
def loaded(source: str = "cells") -> LoadedLibrary:
    """The library of a source for this processor, or the reason why it is missing.

    Args:
        source: one of CALLS.
    """
    capability = torch.backends.cpu.get_cpu_capability()
    names = SETS.get(capability, ())
    if not names:
        return LoadedLibrary(None, f"the processor has neither AVX-512 nor AVX2 (torch says {capability})")
    if source == "tiles":
        names = tuple(name for name in names if name == "amx")
        if not names:
            return LoadedLibrary(None, NO_TILES)
    elif "amx" in names and not tiles():
        names = tuple(name for name in names if name != "amx")
    found = LoadedLibrary(None, "it was not compiled when Weft was installed (is there a C++ compiler?)")
    for path in (FOLDER / f"{source}.{name}.so" for name in names):
        if found.library is None and path.exists():
            found = _load(path, source)
    return found


def tiles() -> bool:
    """Whether tiles (AMX) can be used: processor and system support them and our code was compiled."""
    return loaded("tiles").library is not None


@functools.cache  # asking a library for a function that it lacks takes microseconds
def narrow() -> bool:
    """Whether a search can multiply in bfloat16 and int8 in compiled code (native/narrow.h)."""
    return hasattr(loaded("decoding").library, "weft_narrow_allowed")


@functools.cache
def int8() -> bool:
    """Whether a search can multiply in int8 in compiled code, by VNNI or by older instructions."""
    return hasattr(loaded("decoding").library, "weft_narrow_pack")


@functools.cache
def narrow_cells() -> bool:
    """Whether recurrent layers can multiply in bfloat16 in compiled code (native/narrow.h)."""
    return hasattr(loaded().library, "weft_forward_words")


def _load(path: Path, source: str) -> LoadedLibrary:
    instructions = path.suffixes[0].removeprefix(".")
    try:
        library = ctypes.CDLL(str(path))
        fits = _declare(library, source, instructions)
    except OSError as error:
        return LoadedLibrary(None, f"{path.name} cannot be loaded ({error})")
    except AttributeError:  # a function is missing
        fits = False
    if not fits:
        return LoadedLibrary(None, f"{path.name} was compiled from other sources; install Weft again")
    if source == "tiles" and not library.weft_tiles_allowed():
        return LoadedLibrary(None, NO_TILES)
    if instructions == "bf16" and not library.weft_narrow_allowed():  # tiles look themselves
        return LoadedLibrary(None, "the processor has no AVX512_BF16 or no VNNI")
    start = parallel()
    threads = "" if start else ", on one thread: torch's OpenMP was not found"
    return LoadedLibrary(library, f"{DISPLAY_NAMES[instructions]}{threads}", WIDTHS[instructions], start)


def _declare(library: Any, source: str, instructions: str) -> bool:
    """Declare the argument types of a library's functions; False if it was compiled for other structs."""
    version = getattr(library, f"weft_{source}_version")
    version.restype = c_longlong
    calls = CALLS[source] | (NARROW_CALLS.get(source, {}) if instructions in NARROW else {})
    for name, struct in calls.items():
        getattr(library, name).argtypes = [POINTER(struct), c_void_p]
    if source == "cells":
        library.weft_pack_forward.argtypes = [c_longlong, c_longlong, c_longlong, c_void_p, c_void_p]
        library.weft_pack_backward.argtypes = [c_longlong, c_longlong, c_void_p, c_void_p]
        if instructions == "amx":
            library.weft_pack_tiled.argtypes = [*[c_longlong] * 4, c_void_p, c_void_p]
        if instructions in NARROW:
            library.weft_pack_words.argtypes = [*[c_longlong] * 3, c_void_p, c_void_p]
            library.weft_row_words.argtypes, library.weft_row_words.restype = [c_longlong], c_longlong
    if source == "matrix":
        library.weft_matrix_room.argtypes, library.weft_matrix_room.restype = [c_longlong] * 3, c_longlong
    if source == "decoding" and hasattr(library, "weft_narrow_pack"):
        for name in ("rows", "panel"):
            sized = getattr(library, f"weft_narrow_{name}")
            sized.argtypes, sized.restype = [c_longlong] * 3, c_longlong
        library.weft_narrow_pack.argtypes = [*[c_longlong] * 3, c_void_p, c_void_p]
    if source == "tiles":
        library.weft_tiles_room.argtypes = [c_longlong, c_longlong]
        library.weft_tiles_room.restype = library.weft_tiles_group.restype = c_longlong
    return bool(version() == VERSIONS.get(source, VERSION))


def parallel() -> int | None:
    """The address of GOMP_parallel, or None if torch does not ship it."""
    libraries = [None, *sorted((Path(torch.__file__).parent / "lib").glob("libgomp*"))]
    folder = Path(torch.__file__).parent.parent / "torch.libs"
    libraries += sorted(folder.glob("libgomp*")) if folder.is_dir() else []
    for path in libraries:
        try:
            found = ctypes.CDLL(str(path) if path else None).GOMP_parallel
        except (OSError, AttributeError):
            continue
        return ctypes.cast(found, ctypes.c_void_p).value
    return None
