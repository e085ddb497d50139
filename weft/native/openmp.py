"""torch's own OpenMP, which compiled code uses too: a second thread pool would compete with the first."""

import ctypes
from pathlib import Path

import torch


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
