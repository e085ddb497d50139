"""Compiled code, loaded by ctypes. No torch or Python headers, so one library fits all versions of both.

cells.cpp      recurrent layers                 nn/kernels/cells/compiled.py
light.cpp      recurrent layers with no matrix  nn/kernels/light.py
selective.cpp  Mamba's scan                     nn/kernels/light.py
matrix.cpp     cells with a matrix per head     nn/kernels/matrix.py
energies.cpp   additive attention               nn/kernels/attention.py
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

from weft.native.library import NO_TILES as NO_TILES
from weft.native.library import LoadedLibrary as LoadedLibrary
from weft.native.library import WholeStep as WholeStep
from weft.native.library import address as address
from weft.native.library import call as call
from weft.native.library import dense as dense
from weft.native.library import int8 as int8
from weft.native.library import loaded as loaded
from weft.native.library import narrow as narrow
from weft.native.library import narrow_cells as narrow_cells
from weft.native.library import pointer as pointer
from weft.native.library import slabs as slabs
from weft.native.library import tiles as tiles
