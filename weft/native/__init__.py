"""Compiled code, loaded by ctypes. No torch or Python headers, so one library fits all versions of both.

cells.cpp      recurrent layers                 nn/kernels/cells/compiled.py
light.cpp      recurrent layers with no matrix  nn/kernels/light.py
selective.cpp  Mamba's scan                     nn/kernels/light.py
matrix.cpp     cells with a matrix per head     nn/kernels/matrix.py
energies.cpp   additive attention               nn/kernels/attention.py
attention.cpp  short attention                  nn/kernels/attention.py
dropping.cpp   dropout                          nn/kernels/dropout.py
losses.cpp     cross-entropy                    nn/kernels/losses.py
neighbours.cpp word2vec                         nn/kernels/losses.py
tiles.cpp      the linear product (AMX)         nn/kernels/linear.py
decoding.cpp   a search step                    nn/kernels/decoding.py, nn/kernels/search_step.py
choosing.cpp   the best continuations           search/candidates.py
searching.cpp  greedy and beam search           search/compiled.py

Every caller has a plain twin in torch, which is used where nothing was compiled. Each source is compiled for
several instruction sets; here the libraries for this processor are found, loaded once, and their functions
declared. Read next: jobs.py, the arguments of the functions; build.py, which compiles.
"""

import ctypes
import functools
import sys
from collections.abc import Callable
from ctypes import POINTER, Structure, addressof, byref, c_longlong, c_void_p, cast
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

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
    """The library of a source for this processor, or the reason why it is missing."""
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


TRIM, MAP = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h
LARGEST = 32 << 20  # bytes; glibc accepts no larger threshold for mapped blocks


def keep_freed() -> bool:
    """Let this process keep the memory of freed tensors of up to 32 MB for the next; False without glibc.

    Word vectors get new gradients of whole tables in every update. glibc maps such blocks each time, and
    clearing their pages takes longer than computing the gradients.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(MAP, LARGEST) and mallopt(TRIM, (1 << 31) - 1))


SOURCES = {
    function: source
    for calls in (CALLS, NARROW_CALLS)
    for source, functions in calls.items()
    for function in functions
}


def call(function: str, job: Structure) -> None:
    """Run a job, one thread per slab."""
    found = loaded(SOURCES[function])
    getattr(found.library, function)(byref(job), found.start)


def slabs(rows: int) -> int:
    """The number of slabs (threads) for this many rows."""
    return max(1, min(torch.get_num_threads(), rows))


def pointer(tensor: Tensor | None) -> int | None:
    """The address of a tensor's first element; None (NULL in C) for None."""
    if tensor is None:
        return None
    if not tensor.is_cpu:
        raise RuntimeError(f"compiled code takes tensors on the CPU, got one on {tensor.device}")
    return tensor.data_ptr()


def dense(tensor: Tensor) -> Tensor:
    """A tensor whose last axis is contiguous; copied if necessary."""
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()


def address(function: str, source: str) -> int:
    """The address of a function of a loaded library, for other compiled code that calls it."""
    found = cast(getattr(loaded(source).library, function), c_void_p).value
    assert found is not None
    return found


class WholeStep(NamedTuple):
    """A model's step for searching.cpp, which takes many without Python in between.

    take: the address of a function as Take in stepping.h.
    model: the struct that it is given.
    slabs: threads for which the model has buffers.
    classes: V.
    held: the tensors to which the struct points.
    before: prepares the model for the steps until a time; called before each call of compiled code, and may
        raise an error that ends the search.
    """

    take: int
    model: Structure
    slabs: int
    classes: int
    held: object
    before: Callable[[int], None]

    @property
    def at(self) -> int:
        """The address of the struct."""
        return addressof(self.model)
