"""The compiled ways as parameters of a test, each skipped loudly where this machine has none."""

import pytest

from weft import native

needs_native = pytest.mark.skipif(native.loaded().library is None, reason=native.loaded().reason)
needs_tiles = pytest.mark.skipif(not native.tiles(), reason=native.loaded("tiles").reason)
COMPILED = [pytest.param("native", marks=needs_native), pytest.param("tiles", marks=needs_tiles)]
needs_narrow = pytest.mark.skipif(not native.narrow_cells(), reason="no compiled cells in bfloat16 here")
