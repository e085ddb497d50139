"""Compiled code, loaded by ctypes: no header of torch or Python, so one library serves every version of both.

cells.cpp     recurrent layers          nn/kernels/cells/compiled.py
light.cpp     those without a matrix    nn/kernels/light/compiled.py
energies.cpp  additive attention        nn/kernels/attention/energies.py
losses.cpp    cross-entropy             nn/kernels/output/cross_entropy.py
tiles.cpp     the linear product (AMX)  nn/kernels/tiles.py
decoding.cpp  a step of a search        nn/kernels/attention/decoding.py, ../nn/kernels/output/vocabulary.py
choosing.cpp  the best continuations    search/candidates.py

Every caller has a plain twin in torch, which serves where nothing was compiled. Read next: build.py.
"""

import ctypes
import functools
from ctypes import POINTER, Structure, byref, c_double, c_longlong, c_void_p
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

CELLS = {"lstm": 0, "peephole": 1, "coupled": 2, "gru": 3, "elman": 4, "relu": 5}
GATES = {"lstm": 4, "peephole": 4, "coupled": 3, "gru": 3, "elman": 1, "relu": 1}
VERSION = 3  # of the structs below
SETS = {"AVX512": ("amx", "avx512"), "AVX2": ("avx2",)}  # what torch found by cpuid, and our files' names
NO_TILES = "the processor has no tiles (AMX), or the system does not give them"
WIDTHS = {"amx": 16, "avx512": 16, "avx2": 8}  # floats in a register


class Forward(Structure):
    """As struct Forward in cells.cpp."""

    _fields_ = [
        *(
            (name, c_longlong)
            for name in ["cell", "T", "B", "H", "I", "slabs", "training", "x_row", "x_step"]
        ),
        *((name, c_void_p) for name in ["bounds", "active", "x", "panel_x", "panel_h", "bias", "bias_n"]),
        *((name, c_void_p) for name in ["peephole", "gates", "inner", "h", "c"]),
        ("halves", c_longlong),
        ("room", c_void_p),
    ]


class Backward(Structure):
    """As struct Backward in cells.cpp."""

    _fields_ = [
        *((name, c_longlong) for name in ["cell", "T", "B", "H", "slabs"]),
        *((name, c_void_p) for name in ["bounds", "active", "panel", "gates", "inner", "h", "c", "peephole"]),
        *((name, c_void_p) for name in ["dy", "dh_last", "dc", "dh", "carry", "d", "dpeephole"]),
        ("halves", c_longlong),
        ("room", c_void_p),
    ]


NORMS = ("attention_norm", "look_norm", "network_norm")
PRODUCTS = ("query", "key_value", "out", "look_query", "look_out", "first", "second")
LIGHT = {"mingru": 0, "minlstm": 1, "ssru": 2, "sru": 3}


class Light(Structure):
    """As struct Light in light.cpp."""

    _fields_ = [
        *((name, c_longlong) for name in ["kind", "T", "B", "H", "slabs", "z_row", "z_step"]),
        *((name, c_longlong) for name in ["past_row", "past_step", "c_row", "c_step"]),
        *((name, c_void_p) for name in ["bounds", "z", "past", "peep", "mask", "first", "c", "y"]),
    ]


class LightBack(Structure):
    """As struct LightBack in light.cpp."""

    _fields_ = [
        ("f", Light),
        *((name, c_longlong) for name in ["slabs", "dz_row", "dz_step", "dpast_row", "dpast_step"]),
        *((name, c_void_p) for name in ["dy", "dc", "dz", "dpast", "dpeep"]),
    ]


ACTIVATIONS = {"relu": 0, "gelu": 1, "gelu_tanh": 2, "silu": 3, "swiglu": 4}


class DecoderLayer(Structure):
    """As struct Layer in decoding.cpp: of each product its panels and bias, of each norm gain and shift."""

    _fields_ = [
        *((f"{name}_{part}", c_void_p) for name in NORMS for part in ("gain", "shift")),
        *((f"{name}_{part}", c_void_p) for name in PRODUCTS for part in ("panel", "bias")),
        *((name, c_void_p) for name in ["cache", "keys", "values"]),
        *((name, c_longlong) for name in ["cache_source", "cache_side", "cache_head"]),
        *(
            (f"{name}_{axis}", c_longlong)
            for name in ("keys", "values")
            for axis in ("source", "head", "place")
        ),
    ]


class Decode(Structure):
    """As struct Decode in decoding.cpp."""

    _fields_ = [
        *((name, c_longlong) for name in ["layers", "rows", "sources", "size", "heads", "inner", "entries"]),
        *((name, c_longlong) for name in ["positions", "places", "slabs", "before", "root", "activation"]),
        ("epsilon", c_double),
        *((name, c_void_p) for name in ["each", "gain", "shift", "path", "mask", "x", "room"]),
        ("halves", c_longlong),
        ("cut", c_void_p),
    ]


class Predict(Structure):
    """As struct Predict in decoding.cpp."""

    _fields_ = [
        *((name, c_longlong) for name in ["rows", "size", "classes", "slabs"]),
        *((name, c_void_p) for name in ["panel", "bias", "x", "logp"]),
        ("halves", c_longlong),
        ("cut", c_void_p),
    ]


class Soften(Structure):
    """As struct Soften in decoding.cpp."""

    _fields_ = [
        *((name, c_longlong) for name in ["rows", "classes", "slabs"]),
        *((name, c_void_p) for name in ["logits", "bias", "logp"]),
    ]


class Energies(Structure):
    """As struct Energies in energies.cpp."""

    _fields_ = [
        *((name, c_longlong) for name in ["sources", "queries", "places", "size"]),
        *((name, c_longlong) for name in ["keys_source", "keys_place", "slabs"]),
        *((name, c_void_p) for name in ["query", "keys", "weight", "energy", "dquery", "dkeys", "dweight"]),
    ]


class Losses(Structure):
    """As struct Losses in losses.cpp."""

    _fields_ = [
        *((name, c_longlong) for name in ["rows", "classes", "slabs", "half"]),
        ("smoothing", c_double),
        *((name, c_void_p) for name in ["logits", "bias", "target", "gradient", "dbias", "room", "sums"]),
    ]


class Product(Structure):
    """As struct Product in tiles.cpp."""

    _fields_ = [
        *((name, c_longlong) for name in ["rows", "inputs", "outputs", "slabs"]),
        *((name, c_longlong) for name in ["x_row", "x_step", "w_row", "w_step", "y_row"]),
        *((name, c_void_p) for name in ["x", "w", "bias", "packed", "room", "y"]),
    ]


class Choose(Structure):
    """As struct Choose in choosing.cpp."""

    _fields_ = [
        *((name, c_longlong) for name in ["sources", "beam", "classes", "apart", "count", "slabs"]),
        *((name, c_void_p) for name in ["logp", "base", "banned", "value", "parent", "token"]),
    ]


class Loaded(NamedTuple):
    """library: the functions, None where there are none; reason: in words; width: floats in a register."""

    library: Any
    reason: str
    width: int = 0
    start: int | None = None


CALLS: dict[str, dict[str, type[Structure]]] = {
    "cells": {"weft_forward": Forward, "weft_backward": Backward},
    "light": {"weft_light_forward": Light, "weft_light_backward": LightBack},
    "energies": {"weft_energies": Energies, "weft_energies_back": Energies},
    "losses": {"weft_losses": Losses},
    "decoding": {"weft_decode": Decode, "weft_predict": Predict, "weft_soften": Soften},
    "choosing": {"weft_choose": Choose},
    "tiles": {"weft_tiles_pack": Product, "weft_tiles_product": Product},
}
"""Of each source its functions that share work among threads, and the struct that says what is to be done."""


@functools.cache
def loaded(source: str = "cells") -> Loaded:
    """What was compiled of a source for this processor, or why it is not there.

    Args:
        source: one of CALLS.
    """
    capability = torch.backends.cpu.get_cpu_capability()
    names = SETS.get(capability, ())
    if not names:
        return Loaded(None, f"the processor has neither AVX-512 nor AVX2 (torch says {capability})")
    if source == "tiles" and "amx" not in names:
        return Loaded(None, NO_TILES)
    paths = {name: Path(__file__).parent / f"{source}.{name}.so" for name in names}
    if source != "tiles" and "amx" in names and not tiles():
        del paths["amx"]
    name = next((name for name, path in paths.items() if path.exists()), None)
    if name is None:
        return Loaded(None, "they were not compiled when Weft was installed (is there a C++ compiler?)")
    try:
        library = ctypes.CDLL(str(paths[name]))
        fits = _declared(library, source, name)
    except (OSError, AttributeError) as error:
        return Loaded(None, f"{paths[name].name} cannot be loaded ({error})")
    if not fits:
        return Loaded(None, f"{paths[name].name} was compiled from other sources; install Weft again")
    if source == "tiles" and not library.weft_tiles_allowed():
        return Loaded(None, NO_TILES)
    start = _openmp()
    spoken = {"amx": "AVX-512 and AMX", "avx512": "AVX-512", "avx2": "AVX2"}[name]
    threads = "" if start else ", on one thread: torch's OpenMP was not found"
    return Loaded(library, f"{spoken}{threads}", WIDTHS[name], start)


def tiles() -> bool:
    """Whether the processor multiplies by tiles (AMX), the system allows it and our code for it is there."""
    return loaded("tiles").library is not None


def _declared(library: Any, source: str, processor: str) -> bool:
    """Say what a library's functions take; False for one that does not fit this file."""
    version = getattr(library, f"weft_{source}_version")
    version.restype = c_longlong
    for name, struct in CALLS[source].items():
        getattr(library, name).argtypes = [POINTER(struct), c_void_p]
    if source == "cells":
        library.weft_pack_forward.argtypes = [c_longlong, c_longlong, c_longlong, c_void_p, c_void_p]
        library.weft_pack_backward.argtypes = [c_longlong, c_longlong, c_void_p, c_void_p]
        if processor == "amx":
            library.weft_pack_tiled.argtypes = [*[c_longlong] * 4, c_void_p, c_void_p]
    if source == "tiles":
        library.weft_tiles_room.argtypes = [c_longlong, c_longlong]
        library.weft_tiles_room.restype = library.weft_tiles_group.restype = c_longlong
    return bool(version() == VERSION)


def call(function: str, job: Structure) -> None:
    """Do a job, its slabs shared among as many threads.

    Args:
        function: one of those in CALLS; what holds it must have been loaded.
    """
    found = loaded(_SOURCE[function])
    getattr(found.library, function)(byref(job), found.start)


_SOURCE = {function: source for source, functions in CALLS.items() for function in functions}


def slabs(rows: int) -> int:
    """Among how many threads so many rows are shared."""
    return max(1, min(torch.get_num_threads(), rows))


def pointer(tensor: Tensor | None) -> int | None:
    """Where a tensor's numbers begin; NULL for None."""
    return None if tensor is None else tensor.data_ptr()


def _openmp() -> int | None:
    """GOMP_parallel of torch's own OpenMP: a second team of threads would fight the first."""
    libraries = [None, *sorted((Path(torch.__file__).parent / "lib").glob("libgomp*"))]
    folder = Path(torch.__file__).parent.parent / "torch.libs"
    libraries += sorted(folder.glob("libgomp*")) if folder.is_dir() else []
    for path in libraries:
        try:
            found = ctypes.CDLL(str(path) if path else None).GOMP_parallel
        except (OSError, AttributeError):
            continue
        return ctypes.cast(found, c_void_p).value
    return None
