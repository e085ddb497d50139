"""Compiled code, loaded by ctypes. No torch or Python headers, so one library fits all versions of both.

cells.cpp      recurrent layers                 nn/kernels/cells/compiled.py
light.cpp      recurrent layers with no matrix  nn/kernels/light.py
selective.cpp  Mamba's scan                     nn/kernels/selective.py
matrix.cpp     cells with a matrix per head     nn/kernels/matrix.py
energies.cpp   additive attention               nn/kernels/additive.py
attention.cpp  short attention                  nn/kernels/attention.py
dropping.cpp   dropout                          nn/kernels/dropout.py
losses.cpp     cross-entropy                    nn/kernels/cross_entropy.py
neighbours.cpp word2vec                         nn/kernels/neighbours.py
tiles.cpp      the linear product (AMX)         nn/kernels/linear.py
decoding.cpp   a search step                    nn/kernels/decoding.py, nn/kernels/search_step.py
choosing.cpp   the best continuations           search/candidates.py
searching.cpp  greedy and beam search           search/compiled.py

Every caller has a plain twin in torch, which is used where nothing was compiled. Read next: library.py, which
finds and loads the libraries; jobs.py, the arguments of their functions; build.py, which
compiles.
"""

from weft.native.library import (
    NO_TILES,
    LoadedLibrary,
    WholeStep,
    address,
    call,
    int8,
    loaded,
    narrow,
    narrow_cells,
    pointer,
    slabs,
    tiles,
)

__all__ = [
    "NO_TILES",
    "LoadedLibrary",
    "WholeStep",
    "address",
    "call",
    "int8",
    "loaded",
    "narrow",
    "narrow_cells",
    "pointer",
    "slabs",
    "tiles",
]
